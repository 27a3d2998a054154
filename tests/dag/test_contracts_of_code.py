"""A change of code runs again the stages that reach it, and what comes after them; nothing else."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from mamushi.config.questions import QUESTIONS
from mamushi.registry import ENTRIES, FOLDERS, plugins
from mamushi.running.identity import PACKAGE, Code, Module, Unit
from mamushi.running.stage import stages
from tests.support.contract_grid import TARGETS
from tests.support.dry_runs import Snakemake
from tests.support.imports import MODULES
from tests.support.workflow import ROOT

ENTERED: Mapping[str, tuple[str, ...]] = {
    # What digests are made of: the stages, the questions to models, and the plug-ins.
    **{name.replace("-", "_"): (one.entry,) for name, one in stages().items()},
    **{f"questions/{name}": (f"mamushi.stages._questions.{name}",) for name in QUESTIONS},
    **{f"{kind}/{name}": (p.module,) for kind in FOLDERS for name, p in plugins(kind).items()},
}


class Changed(Code):
    """The package with other texts for some modules. The rest is not read again; nor, if only
    ``bodies`` differ, what it refers to."""

    def __init__(self, texts: Mapping[str, str], bodies: bool = False) -> None:
        super().__init__(PACKAGE)
        self.texts, self.bodies = texts, bodies

    def module(self, name: str) -> Module | None:
        if name not in self.texts:
            return plain().module(name)
        if name not in self._modules:
            inside = name in MODULES and MODULES[name].name == "__init__.py"
            found = Module(name, name if inside else name.rpartition(".")[0])
            found.read(ast.parse(self.texts[name]).body)
            self._modules[name] = found
        return self._modules[name]

    def form(self, unit: Unit) -> tuple[bytes, list[Unit]]:
        if self.bodies and unit.module not in self.texts:
            return plain().form(unit)
        return super().form(unit)


@cache
def plain() -> Code:
    return Code(PACKAGE)


def digests(code: Code) -> dict[str, list[str]]:
    return {
        entered: [code.digest(unit) for name in names for unit in code.entries(name)]
        for entered, names in ENTERED.items()
    }


def changed_by(texts: Mapping[str, str], bodies: bool = False) -> set[str]:
    """What has another digest when modules have these texts."""
    before = digests(plain())
    return {name for name, now in digests(Changed(texts, bodies)).items() if now != before[name]}


def text_of(module: str) -> str:
    return MODULES[module].read_text(encoding="utf-8")


# What changes nothing -----------------------------------------------------------------------------


def unused(text: str) -> str:
    """A function and a constant more, be it a path, the columns of a table or a colour."""
    return f"{text}\n\ndef _added(value):\n    return ADDED + value\n\n\nADDED = len([])\n"


def reworded(text: str) -> str:
    """Other docstrings, formatting, annotations and messages; comments are lost on the way."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.Expr(ast.Constant("Something else."))
            node.body = [said, *node.body[1 if ast.get_docstring(node) is not None else 0 :]]
        # The annotations of a stage say what its settings and files are.
        if isinstance(node, ast.FunctionDef) and "settings" not in {a.arg for a in node.args.args}:
            node.returns = ast.Constant(None)
            for argument in (*node.args.args, *node.args.kwonlyargs):
                argument.annotation = ast.Name("object")
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            texts = ast.Constant | ast.JoinedStr
            said_now = [ast.Constant("!") if isinstance(a, texts) else a for a in node.exc.args]
            node.exc.args = said_now
            node.exc.keywords = [k for k in node.exc.keywords if k.arg not in ("do", "where")]
    return ast.unparse(ast.fix_missing_locations(tree))


def test_what_nothing_uses_changes_nothing() -> None:
    """In all modules at once, since each that mattered would show."""
    assert changed_by({name: unused(text_of(name)) for name in MODULES}) == set()


def test_words_change_nothing() -> None:
    texts = {name: reworded(text_of(name)) for name in MODULES}
    assert all(texts[name] != text_of(name) for name in MODULES)
    assert changed_by(texts) == set()


def moved(module: str, name: str) -> dict[str, str]:
    """A definition in a module of its own, which the one that it comes from imports it from."""
    tree = ast.parse(text_of(module))
    found = plain().module(module)
    assert found is not None
    (definition,) = found.definitions[name]
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom | ast.If)]
    imports = [node for node in imports if getattr(node, "module", None) != "__future__"]
    others = ", ".join(sorted(found.definitions.keys() - {name}))
    kept = [node for node in tree.body if ast.dump(node) != ast.dump(definition)]
    assert len(kept) == len(tree.body) - 1
    head = "\n".join(map(ast.unparse, imports))
    back = f"from {module} import {others}" if others else ""
    return {
        module: f"{ast.unparse(ast.Module(kept, []))}\nfrom mamushi.elsewhere import {name}",
        "mamushi.elsewhere": f"{head}\n{back}\n{ast.unparse(definition)}",
    }


@pytest.mark.parametrize(
    "definition",
    [
        *("io.paths.FRONTIER", "evidence.geometry.SAME_SPAN"),
        *("selection.pool.Scored", "evidence.frontier.Frontier", "selection.mlp.Split"),
        *("selection.metrics.auc", "evaluation.sad.standard_error", "io.files.atomic"),
        *("lm.tokens.encode", "unlearning.relearning.choose"),
    ],
)
def test_moving_a_definition_changes_nothing(definition: str) -> None:
    module, _, name = f"mamushi.{definition}".rpartition(".")
    assert changed_by(moved(module, name)) == set()


# What changes the stages that reach it ------------------------------------------------------------

WORDS = "selector/auto selector/lexical"
LINEAR = f"{WORDS} selector/linear selector/mamushi_words"
CROSS_FITTED = f"selector/lr_maha selector/mamushi selector/mamushi_lr {LINEAR}"
LOADERS = "dataset/jigsaw dataset/newsgroups dataset/synthetic dataset/table"
FIGURES = (
    "figure/diagnostics figure/discrimination figure/frontier figure/sad figure/subspaces "
    "figure/variance"
)
REACHED_BY = {
    # Read from the code, not computed: definition -> the stages and plug-ins that reach it.
    "io.paths.CALIBRATION": "evidence",
    "io.paths.SCORES": "tables qualitative corpus_manifest figure/diagnostics",
    "data.expression.parse": "dataset/table",
    "data.mixture.log_density_ratio": "dataset/synthetic",
    "data.raw.Raw": LOADERS,
    "data.readers.read": "dataset/jigsaw dataset/table examples unlearn",
    "lm.embed.pool": "embed embed_layers",
    "lm.generate.log_likelihoods": "judge",
    "lm.perplexity.perplexity_table": ("evaluate retrain unlearn questions/relearn"),
    "lm.tokens.encode": "tokens base_model questions/generate",
    "selection.crossfit.middle": f"diagnostics {CROSS_FITTED}",
    "selection.folds.balanced_weights": "selector/mamushi selector/auto",
    "selection.folds.stratified_folds": (
        f"calibrate frontier predict selector/token_unigram {CROSS_FITTED}"
    ),
    "selection.metrics.auc": (
        "score calibrate stability token_manifests corpus_manifest diagnostics "
        f"figure/diagnostics {CROSS_FITTED}"
    ),
    "selection.metrics.average_ranks": (
        "score calibrate stability token_manifests corpus_manifest diagnostics confounds "
        f"figure/diagnostics {CROSS_FITTED}"
    ),
    "selection.mlp.Split": "selector/mamushi selector/auto",
    "selection.linear.logistic": f"{LINEAR} selector/mamushi_lr",
    "selection.linear.ngrams": WORDS,
    "selection.selectors.auto.estimate_choice": "selector/auto",
    "selection.refits.of_table": (
        "refits calibrate frontier stability corpus_manifest ranking qualitative"
    ),
    "selection.removals.digest": "manifests corpus_manifest",
    "selection.removals.removals": "remove manifests corpus_manifest",
    "selection.selectors.random.BY_CHANCE": "selector/random",
    "selection.statistics.centroids": (
        "selector/coreset selector/cos_mu2 selector/lr_cos selector/lr_maha"
    ),
    "unlearning.relearning.choose": "questions/relearn",
    "unlearning.unlearners.salun.SALIENCY": "unlearner/salun",
    "evaluation.curves.read_perplexity": "tables half_gap probes refine",
    "evaluation.cohort.RETRAINING": "half_gap judge left probes subgroups",
    "evaluation.sad.area": "tables",
    "evaluation.sad.standard_error": "tables probes",
    "evidence.bootstrap.resample": "calibrate frontier",
    "evidence.calibration.platt": "calibrate frontier",
    "evidence.diagnostics.calibration_error": "diagnostics figure/diagnostics",
    "evidence.frontier.phi": "calibrate frontier manifests",
    "evidence.geometry.reaches": "geometry evidence figure/discrimination",
    "evidence.manifest.read_calibrated": "diagnostics frontier manifests",
    "figures.style.per_cent": "figure/discrimination figure/variance",
    "figures.style.HOUSE": "figure",
    "figures.style.facets": "figure/frontier figure/sad",
    "figures.style.label": FIGURES,
    "config.complete.complete": "",
    "cli.main": "",
    "errors.UserError": "",
    "running.progress.Progress": "",
}


def edited(module: str, name: str) -> str:
    """A module in which the definition of a name does something more."""
    tree = ast.parse(text_of(module))
    found = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            node.body += ast.parse("len([])").body
            found += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == name:
                node.value = ast.Tuple([node.value])
                found += 1
    assert found == 1
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.parametrize("definition", REACHED_BY)
def test_a_definition_changes_what_reaches_it(definition: str) -> None:
    module, _, name = f"mamushi.{definition}".rpartition(".")
    assert changed_by({module: edited(module, name)}, bodies=True) == {
        *REACHED_BY[definition].split()
    }


def test_modules_are_loaded_by_a_computed_name_where_that_is_known() -> None:
    """Else a digest would lack what no name refers to."""
    computed = re.compile(r"import_module|run_module|(?<![.\w])(__import__|eval|exec|globals)\(")
    found = {name for name in MODULES if computed.search(text_of(name))}
    # What these load is passed to the digest by its name, or a library.
    loading = {"__main__", "cli", "registry", "stages._asking", "commands.export"}
    loading |= {"running.stage", "running.warm"}
    assert found <= {f"mamushi.{name}" for name in loading}


@pytest.mark.parametrize("kind", ["dataset", "selector", "unlearner"])
def test_each_flag_of_a_plugin_counts_or_is_the_configurations(kind: str) -> None:
    configured = {"SETTINGS", "FILES", "EVALUATION_SECTION", "KNOWS_TRUTH", "DOWNLOADS", "SPLIT"}
    configured |= {"RETAIN_SCORES", "COMPARISON", "DEPTHS", "NETWORKS", "SHARDS", "UNIT"}
    for name, found in plugins(kind).items():
        for flag in found.literals.keys() - configured - {*ENTRIES[kind]}:
            changed = changed_by({found.module: edited(found.module, flag)}, bodies=True)
            assert changed == {f"{kind}/{name}"}, flag


# What runs again ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def snakemake() -> Iterator[Snakemake]:
    """It has not loaded the package, since each run has a copy of its own."""
    with Snakemake(package=False) as started:
        yield started


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The workflow in another folder, to be changed."""
    for name in ("workflow", "envs", "profiles"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("Snakefile", "config.yaml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


RUNS_AGAIN = {
    # Definitions, and all jobs that a change of them runs again.
    "lm.perplexity.perplexity_table": (
        "effects 1, evaluate 21, figure_sad 1, figure_study 2, half_gap 1, judge 2, probes 1, "
        "refine 6, relearn 2, retrain 59, retrain_and_probe 2, study_tables 2, subgroups 1, "
        "tables 1, unlearn 10, unlearn_and_probe 2, unlearn_list 6, unlearn_whole 6"
    ),
    "selection.selectors.lr_maha.score": (
        "figure_study 1, manifests 1, refits 1, remove 1, retrain 1, score 1, stability 1, "
        "study_tables 1"
    ),
    "stages._questions.generate": (
        "generate 6, half_gap 1, judge 2, probes 1, refine 2, unlearn_and_probe 2"
    ),
    "figures.gallery.sad.draw": "figure_sad 1, figure_study 2",
}


@pytest.mark.parametrize("definition", RUNS_AGAIN)
def test_a_change_runs_what_reaches_it(
    snakemake: Snakemake, finished: Path, copy: Path, definition: str
) -> None:
    module, _, name = f"mamushi.{definition}".rpartition(".")
    path = copy / "workflow" / MODULES[module].relative_to(PACKAGE.parent)
    path.write_text(edited(module, name), encoding="utf-8")
    seen = snakemake.would_run(finished, targets=TARGETS, snakefile=copy / "Snakefile")
    assert ", ".join(f"{rule} {seen[rule]}" for rule in sorted(seen)) == RUNS_AGAIN[definition]


def test_words_and_what_nothing_uses_run_nothing(
    snakemake: Snakemake, finished: Path, copy: Path
) -> None:
    """In all modules; and captions, other packages, README, profiles."""
    for path in (copy / "workflow/mamushi").rglob("*.py"):
        path.write_text(unused(reworded(path.read_text(encoding="utf-8"))), encoding="utf-8")
    for path in (copy / "workflow/mamushi_runs").rglob("*.py"):
        path.write_text(unused(path.read_text(encoding="utf-8")), encoding="utf-8")
    captions = list((copy / "workflow/report").glob("*.rst"))
    assert captions
    others = [copy / "README.md", copy / "Makefile", *(copy / "profiles").rglob("*.yaml")]
    for path in captions + others:
        path.write_text(path.read_text(encoding="utf-8") + "\n# Another line.\n", encoding="utf-8")
    assert snakemake.would_run(finished, targets=TARGETS, snakefile=copy / "Snakefile") == {}


def test_a_command_counts(snakemake: Snakemake, finished: Path, copy: Path) -> None:
    """What a rule calls is code as well."""
    path = copy / "workflow/rules/evidence.smk"
    text = path.read_text(encoding="utf-8")
    assert 'command("geometry")' in text
    path.write_text(text.replace('command("geometry")', 'command("geometry") + " "'))
    seen = snakemake.would_run(finished, targets=TARGETS, snakefile=copy / "Snakefile")
    assert seen["geometry"] == 8
    assert "retrain" not in seen
