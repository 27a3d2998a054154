"""A change of code runs again the stages that import it, and what comes after them; nothing else.

What a stage imports is derived here from the bytecode of the package, independently of
``mamushi.running.identity``, which reads syntax trees.
"""

from __future__ import annotations

import ast
import dis
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType

import pytest

from mamushi.registry import plugins
from mamushi.running.identity import MESSAGES, PACKAGE, closure, digest
from tests.support import contract_grid
from tests.support.contract_grid import TARGETS
from tests.support.contracts import ALL_DATA, FIGURES, NOTHING, jobs
from tests.support.dry_runs import Snakemake
from tests.support.workflow import ROOT


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()
STAGES = [name for name in MODULES if name.startswith("mamushi.stages.")]
UNITS = {
    # What rules take digests of: a stage, with the plug-in that it loads by name.
    **{stage: (stage,) for stage in STAGES},
    **{
        f"{stage} {plugin.name}": (f"mamushi.stages.{stage}", plugin.module)
        for stage, kind in {
            "examples": "dataset",
            "score": "selector",
            "unlearn": "unlearner",
            "figure": "figure",
        }.items()
        for plugin in plugins(kind).values()
    },
}


# Which modules a stage imports --------------------------------------------------------------------


@cache
def imported(name: str) -> frozenset[str]:
    """The modules of the package that a module's bytecode imports, at any depth; its parents."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    parts = name.split(".")
    found = {".".join(parts[:depth]) for depth in range(1, len(parts))}
    codes = [compile(path.read_bytes(), str(path), "exec")]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        constants: list[object] = []
        for step in dis.get_instructions(code):
            if step.opname == "LOAD_CONST":
                constants.append(step.argval)
            elif step.opname == "IMPORT_NAME":
                level, names = constants[-2:]
                assert isinstance(level, int)
                origin = importlib.util.resolve_name("." * level + step.argval, package)
                found |= {origin, *(f"{origin}.{each}" for each in names or ())}
    return frozenset(found & MODULES.keys())


def reached(*names: str) -> set[str]:
    """All modules that these import directly or through others, but for those of messages."""
    silent = {f"mamushi.{name}" for name in MESSAGES}
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found |= waiting
        waiting = {each for name in waiting for each in imported(name)} - found - silent
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_a_stage_depends_on_what_it_imports(unit: str) -> None:
    assert closure(*UNITS[unit]) == reached(*UNITS[unit])


def test_all_modules_are_of_some_use() -> None:
    """Else a module would be named in no contract."""
    aside = {"mamushi.__main__", *(f"mamushi.{name}" for name in MESSAGES)}
    aside.add("mamushi.configuration.settings")  # is the Snakefile's, and compared by what it says
    assert set().union(*(reached(*unit) for unit in UNITS.values())) == MODULES.keys() - aside


# What changes a module's digest -------------------------------------------------------------------


def statement(text: str) -> str:
    return f"{text}\n_added = len([])\n"


def comment(text: str) -> str:
    return f"# A comment.\n{text}\n\n# Another.\n"


def docstrings(text: str) -> str:
    """Every docstring replaced, and one where there was none; comments are lost on the way."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.Expr(ast.Constant("Something else."))
            node.body = [said, *node.body[1 if ast.get_docstring(node) is not None else 0 :]]
    return ast.unparse(ast.fix_missing_locations(tree))


def formatting(text: str) -> str:
    """Line breaks, quotes and parentheses as Python's own writer sets them."""
    return ast.unparse(ast.parse(text))


COUNTED = [name for name in MODULES if name.removeprefix("mamushi.") not in MESSAGES]
SAME: list[Callable[[str], str]] = [comment, docstrings, formatting]


@cache
def alone(name: str, text: str) -> tuple[tuple[str, str], ...]:
    """A module and the packages around it, as files of a package of its own."""
    parts = name.split(".")
    parents = [".".join(parts[:depth]) for depth in range(1, len(parts))]
    return (*((parent, "") for parent in parents), (name, text))


def digest_of(folder: Path, name: str, text: str) -> str:
    package = folder / f"{len(list(folder.iterdir()))}" / "mamushi"
    for module, content in alone(name, text):
        where = package.joinpath(*module.split(".")[1:])
        is_package = MODULES[module].name == "__init__.py"
        path = where / "__init__.py" if is_package else where.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return digest(name, package=package)


@pytest.mark.parametrize("name", COUNTED)
def test_code_counts_and_words_do_not(tmp_path: Path, name: str) -> None:
    text = MODULES[name].read_text(encoding="utf-8")
    before = digest_of(tmp_path, name, text)
    assert digest_of(tmp_path, name, statement(text)) != before
    for change in SAME:
        assert change(text) != text or not text.strip()
        assert digest_of(tmp_path, name, change(text)) == before


# What runs again ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all targets of the small configuration are done, by this package."""
    folder = tmp_path_factory.mktemp("finished")
    contract_grid.make(folder)
    with Snakemake() as snakemake:
        snakemake.finish(folder, targets=TARGETS)
    return folder


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


PERPLEXITY = """
    retrain 55, evaluate 21, tables 1, figure_sad 1, figure_perplexity 1, study_tables 2,
    figure_study 2, unlearn 18, unlearn_and_probe 2, unlearn_whole 10, unlearn_list 10, refine 10,
    half_gap 1, figure_half_gap 1, relearn 2, judge 2, probes 1, figure_relearning 1
"""
FINETUNE = """
    contaminate 6, gold 10, beta0 10, embed 6, score 21, remove 31, manifests 19, retrain 55,
    evaluate 20, tables 1, figure_sad 1, figure_perplexity 1, study_tables 2, figure_study 2,
    frontier 4, diagnostics 4, geometry 4, runtime 2, ranking 2, qualitative 1, evidence_tables 1,
    figure_frontier 1, figure_diagnostics 2, figure_variance 2, figure_discrimination 2,
    figure_subspaces 2, unlearn 9, unlearn_and_probe 1, unlearn_whole 5, unlearn_list 5, refine 10,
    half_gap 1, figure_half_gap 1, generate 3, relearn 2, judge 2, probes 1, figure_relearning 1
"""
EXPECTED = {
    # Modules -> the jobs that a statement added to them runs again.
    "errors": NOTHING,
    "progress": NOTHING,
    "cli": NOTHING,
    "__main__": NOTHING,
    "settings": NOTHING,
    "selection.selectors.vmf": NOTHING,
    "data.clean": ALL_DATA,
    "lm.finetune": FINETUNE,
    "lm.perplexity": PERPLEXITY,
    "selection.selectors.kcenter": """
        score 1, remove 1, manifests 1, retrain 1, study_tables 1, figure_study 1
    """,
    "selection.selectors.random": """
        score 10, remove 18, manifests 10, retrain 18, tables 1, figure_sad 1, figure_perplexity 1,
        study_tables 1, figure_study 1, frontier 8, diagnostics 8, runtime 4, ranking 4,
        evidence_tables 1, figure_frontier 1
    """,
    "selection.removals": """
        remove 55, manifests 31, retrain 55, tables 1, figure_sad 1, figure_perplexity 1,
        study_tables 2, figure_study 2, frontier 8, evidence_tables 1, figure_frontier 1,
        unlearn 18, unlearn_and_probe 2, refine 10, half_gap 1, figure_half_gap 1, judge 2,
        probes 1, figure_relearning 1
    """,
    "selection.frontier": """
        manifests 31, tables 1, figure_sad 1, figure_perplexity 1, study_tables 2, figure_study 2,
        frontier 8, evidence_tables 1, figure_frontier 1
    """,
    "unlearning.unlearners.salun": """
        unlearn 4, unlearn_whole 2, unlearn_list 2, refine 2, half_gap 1, figure_half_gap 1
    """,
    "stages._probing": """
        unlearn_and_probe 2, refine 2, half_gap 1, figure_half_gap 1, judge 2, probes 1,
        figure_relearning 1
    """,
    "evaluation.half_gap": "half_gap 1, figure_half_gap 1",
    "evaluation.ranking": "ranking 4, qualitative 1",
    "figures.style": FIGURES,
    "figures.gallery.sad": "figure_sad 1, figure_study 2",
}


@pytest.mark.parametrize("module", EXPECTED)
def test_a_statement_runs_what_imports_it(
    snakemake: Snakemake, finished: Path, copy: Path, module: str
) -> None:
    path = copy / "workflow" / MODULES[f"mamushi.{module}"].relative_to(PACKAGE.parent)
    path.write_text(statement(path.read_text(encoding="utf-8")), encoding="utf-8")
    seen = snakemake.would_run(finished, targets=TARGETS, snakefile=copy / "Snakefile")
    assert seen == jobs(EXPECTED[module])


def test_words_run_nothing(snakemake: Snakemake, finished: Path, copy: Path) -> None:
    """Comments and docstrings everywhere, captions, other packages, README, profiles."""
    for path in (copy / "workflow/mamushi").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # Literals that are assigned stay as they are, and so do the docstrings of plug-ins.
        path.write_text(comment(docstrings(text)), encoding="utf-8")
    for path in (copy / "workflow/mamushi_runs").rglob("*.py"):
        path.write_text(statement(path.read_text(encoding="utf-8")), encoding="utf-8")
    captions = list((copy / "workflow/report").glob("*.rst"))
    assert captions
    others = [copy / "README.md", copy / "Makefile", *(copy / "profiles").rglob("*.yaml")]
    for path in captions + others:
        path.write_text(path.read_text(encoding="utf-8") + "\n# Another line.\n", encoding="utf-8")
    assert snakemake.would_run(finished, targets=TARGETS, snakefile=copy / "Snakefile") == {}


def test_threads_and_memory_run_nothing(snakemake: Snakemake, finished: Path, copy: Path) -> None:
    changed = 0
    for path in (copy / "workflow/rules").glob("*.smk"):
        text = path.read_text(encoding="utf-8")
        other = text.replace("cores(8)", "cores(2)").replace("64000", "32000")
        other = other.replace("minutes(60, ", "minutes(90, ")
        changed += other != text
        path.write_text(comment(other), encoding="utf-8")
    assert changed > 5
    assert snakemake.would_run(finished, targets=TARGETS, snakefile=copy / "Snakefile") == {}


def test_a_command_counts(snakemake: Snakemake, finished: Path, copy: Path) -> None:
    """What a rule calls is code as well."""
    path = copy / "workflow/rules/evidence.smk"
    text = path.read_text(encoding="utf-8")
    assert "python -m mamushi geometry" in text
    path.write_text(text.replace("mamushi geometry", "mamushi geometry  "), encoding="utf-8")
    seen = snakemake.would_run(finished, targets=TARGETS, snakefile=copy / "Snakefile")
    assert seen["geometry"] == 8
    assert "retrain" not in seen
