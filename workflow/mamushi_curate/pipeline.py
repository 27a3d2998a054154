"""The ranking of one cell, one stage after another in this process, which needs no Snakemake.

Files, settings and origins are those of the rules in ``workflow/rules``: Snakemake takes what is
made here as it is, and what it has made is not made again here.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mamushi.config import grid, selectors
from mamushi.config.sources import is_unlabelled
from mamushi.io import paths
from mamushi.running.locks import claim_outputs, lease_gpus, visible_gpus
from mamushi.running.machine import VISIBLE, WORKERS, require_cuda, set_variables
from mamushi.running.progress import Progress
from mamushi.running.stage import Stage, job_of, stages
from mamushi_cluster import hooks
from mamushi_cluster.commands import _run
from mamushi_cluster.forecast import core_hours
from mamushi_cluster.record import Record
from mamushi_curate.vectors.stages import vector_files

MAKERS = {
    **dict.fromkeys((paths.EXAMPLES, paths.DUPLICATES), "examples"),
    **{paths.MODEL_CARD: "model-card", paths.TOKENS: "tokens", paths.EMBEDDINGS: "embed"},
    **{paths.SCORES: "score", paths.POSTERIOR: "posterior", paths.REFITS: "refits"},
    **{paths.REMOVAL: "remove", paths.STABILITY: "stability", paths.MANIFEST: "manifests"},
    **{paths.TOKEN_SCORES: "token-scores", paths.SPANS: "spans", paths.INFLUENCE: "influence"},
    paths.CROSS_ENTROPY: "cross-entropy",
    **{paths.SPANS_MANIFEST: "token-manifests", paths.CALIBRATED: "calibrate"},
    **{paths.FRONTIER: "frontier", paths.PREDICTED: "predict", paths.RANKING: "ranking"},
}
"""The stage that makes the files of a pattern."""
USUAL = {
    **{"examples": paths.EXAMPLES, "duplicates": paths.DUPLICATES, "card": paths.DATA_CARD},
    **{"model_card": paths.MODEL_CARD, "tokens": paths.TOKENS, "embeddings": paths.EMBEDDINGS},
    **{"scores": paths.SCORES, "posterior": paths.POSTERIOR, "stability": paths.STABILITY},
    **{"calibrated": paths.CALIBRATED, "checks": paths.CALIBRATION},
    **{"ratio": paths.SCORES, "cache": "results/downloads/{dataset}"},
}
"""By the name of an option that a stage needs, its file where nothing else is said."""

COST = """cross-entropy trains models without a GPU: up to {hours:.1f} hours of a core. A smaller
one is named by --judge. What is stopped goes on with the same command."""


class Pipeline:
    """The stages of a cell of a complete configuration, whose files lie in the folder ``root``.
    Without a ``record`` of what is current, as in the folder of ``mamushi.rank``, all is made."""

    def __init__(
        self,
        config: Mapping[str, Any],
        cell: Mapping[str, Any],
        root: Path = paths.RESULTS,
        record: Record | None = None,
    ) -> None:
        self.config, self.cell, self.root, self.record = config, cell, root, record
        self.done: set[tuple[Any, ...]] = set()
        self.planned: dict[tuple[Any, ...], Any] = {}
        self.is_corpus = is_unlabelled(config["datasets"][cell["dataset"]])
        self.model = config["models"][cell["model"]]
        self.is_language_model = "embeddings" not in self.model
        self.of_texts = selectors.leading_first(config)
        self.budgets = [paths.beta(budget) for budget in grid.budgets(config)]
        self.ranking_pattern = paths.POSTERIOR if self.is_corpus else paths.SCORES
        """Of what lists are the top of."""

    # What a ranking consists of -------------------------------------------------------------------

    def want_lists(self) -> None:
        """Plan the lists of every selector of the grid, with their manifests."""
        for name in self.of_texts:
            for beta in self.budgets:
                self.want(paths.REMOVAL, selector=name, beta=beta)
        for name in self.of_texts:
            self.want(paths.STABILITY, selector=name)
            for beta in self.budgets:
                # Of labelled texts one stage writes those of all budgets.
                at = {"beta": beta} if self.is_corpus else {}
                self.want(paths.MANIFEST, selector=name, **at)
        for name in selectors.grid_selectors(self.config, tokens=True):
            for beta in self.budgets:
                self.want(paths.SPANS, selector=name, beta=beta)
            self.want(paths.SPANS_MANIFEST, selector=name)

    def want_advice(self) -> None:
        """Plan the files that predict a list's effects, frontier and prediction, if labelled."""
        if not self.is_corpus:
            self.want(paths.FRONTIER)
            if self.is_language_model:
                self.want(paths.PREDICTED)

    def make_likely_list(self, name: str) -> str:
        """Write the list of all that is more likely than not of the domain, with its manifest.
        Return its budget. Raises ``UserError`` where that is nothing, or all."""
        beta = likely_budget(self.cell, name, self.root)
        for pattern in (paths.REMOVAL, paths.MANIFEST):
            self.want(pattern, selector=name, beta=beta)
        self.make()
        return beta

    # How a file is made ---------------------------------------------------------------------------

    def want(self, pattern: str, **wildcards: Any) -> None:
        """Plan what makes a file of this cell, after what makes its inputs."""
        name = MAKERS[pattern]
        if pattern == paths.EMBEDDINGS and not self.is_language_model:
            name = "import-embeddings"
        elif pattern == paths.MANIFEST and self.is_corpus:
            name = "corpus-manifest"
        elif pattern in (paths.SCORES, paths.TOKEN_SCORES):
            of = selectors.kind_of(self.config, selector := wildcards["selector"])
            if of.measured:
                judge = self.config["selectors"][selector].get("judge")
                self.want(of.measured, model=judge or self.cell["model"])
                name = "measured-scores" if of.unit == "texts" else name
        own = {k: v for k, v in wildcards.items() if f"{{{k}}}" in pattern}
        at = {**self.cell, **own}
        step = (name, *at.values())
        # No page where its room is not.
        if step in self.done or step in self.planned or name not in stages():
            return
        files = self._files(name, pattern, at)
        for parameter in stages()[name].parameters:
            usual = USUAL.get(parameter.name, pattern) if parameter.is_required else None
            file = files.setdefault(parameter.name, usual)
            for one in file if isinstance(file, list) else [file]:
                of, selector = one if isinstance(one, tuple) else (one, at.get("selector"))
                if parameter.role == "input" and of in MAKERS:
                    self.want(of, selector=selector, model=at["model"])
        self.planned[step] = (stages()[name], at, files)

    def _files(self, name: str, pattern: str, at: Mapping[str, Any]) -> dict[str, Any]:
        """Return the files of a stage that its parameters' names do not say: patterns of ``paths``,
        with a selector where that is another one than the stage's."""
        config, texts, rankings = self.config, self.of_texts, self.ranking_pattern
        ratio, tokens = config["removal"]["ratio"], selectors.grid_selectors(config, tokens=True)
        of_tokens = dict.fromkeys(tokens, paths.TOKEN_SCORES)
        selector = at.get("selector", ratio)
        base = selectors.parent_of(config, selector)
        manifests = [pattern.replace("{beta}", beta) for beta in self.budgets]
        measured = selectors.measured_table(config, selector)
        first_manifest = paths.MANIFEST.replace("{beta}", self.budgets[0])
        foreseen = stages()[name].settings.of(config, **at).selectors if name == "predict" else []
        files: dict[str, dict[str, Any]] = {
            "import-embeddings": {"data_card": paths.DATA_CARD},
            **{key: {"base": base and (pattern, base)} for key in ("score", "refits")},
            "remove": {"scores": rankings},
            "stability": {"ranked": paths.POSTERIOR if self.is_corpus else None},
            "manifests": {"out": manifests},
            "calibrate": {"scores": (paths.SCORES, ratio)},
            "spans": {"scores": paths.TOKEN_SCORES},
            "token-manifests": {"scores": paths.TOKEN_SCORES, "out": manifests},
            "frontier": {
                "scores": [(paths.SCORES, other) for other in texts],
                "ratio": (paths.SCORES, ratio),
            },
            "predict": {"scores": [(of_tokens.get(o, paths.SCORES), o) for o in foreseen]},
            "ranking": {
                "scores": [(rankings, other) for other in texts],
                "manifests": [(first_manifest, other) for other in texts],
            },
        }
        refitted = (*texts,) if name == "ranking" else (selector,)
        refits = [(paths.REFITS, o) for o in refitted if selectors.is_refitted(config, o)]
        vectors = None if self.is_language_model else vector_files(self.model)
        return {"refits": refits, "vectors": vectors, "measured": measured, **files.get(name, {})}

    def make(self) -> None:
        """Run the stages that are planned, and tell how far it is."""
        steps, self.planned = self.planned, {}
        with Progress(len(steps), "rank", "step") as progress:
            for step, planned in steps.items():
                self._run(*planned)
                self.done.add(step)
                progress.advance(note=str(step[0]))

    def _run(self, stage: Stage, at: Mapping[str, Any], patterns: Mapping[str, Any]) -> None:
        """Run a stage, unless its outputs are current."""
        files = {p.name: self._place(patterns[p.name], at) for p in stage.parameters}
        # Influence is measured along the training of beta 0, or at the model's weights.
        wildcards = {**at, "role": "beta0"} if stage.name == "influence" else at
        settings = stage.settings_text(self.config, **wildcards)
        job = job_of(stage, settings, json.dumps(self.config["execution"]), **files)
        name = stage.name.replace("-", "_")
        log = self.root.joinpath("logs", name, *map(str, wildcards.values()))
        log = log.with_name(f"{log.name}.log")
        sees_gpu = stage.is_on_gpu and job.execution.device == "auto"
        if sees_gpu:
            require_cuda(visible_gpus(), job.files["model_card"])
        with set_variables(**({} if sees_gpu else {VISIBLE: ""})), claim_outputs(job.outputs):
            if self.record is None or not self.record.is_current(job):
                if stage.name == "cross-entropy" and not visible_gpus():
                    hours = core_hours(self.config, "cross_entropy", **at)
                    print(COST.format(hours=hours), file=sys.stderr, flush=True)
                log.parent.mkdir(parents=True, exist_ok=True)
                with log.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
                    job.run()
            if self.record is not None:
                self.record.add(job, wildcards)

    def path(self, pattern: str, **wildcards: Any) -> Path:
        """Return the file of a pattern of ``paths`` in the folder of this cell."""
        return paths.under(self.root, pattern, **{**self.cell, **wildcards})

    def _place(self, files: Any, at: Mapping[str, Any]) -> Any:
        """Return patterns, also those of another selector, as the files of a cell."""
        if isinstance(files, list):
            return [self._place(file, at) for file in files]
        pattern, selector = files if isinstance(files, tuple) else (files, at.get("selector"))
        if isinstance(pattern, str):
            return paths.under(self.root, pattern, **{**at, "selector": selector})
        return files


def likely_budget(cell: Mapping[str, Any], selector: str, root: Path = paths.RESULTS) -> str:
    """Return the budget of all texts of a corpus that are more likely than not of the domain.
    Raises ``UserError`` where that is nothing, or all, or no corpus is ranked."""
    from mamushi.io.files import read_json
    from mamushi.io.tables import read_metadata
    from mamushi.selection.removals import share_of

    about = read_metadata(paths.under(root, paths.POSTERIOR, **cell, selector=selector))
    counts = read_json(paths.under(root, paths.DATA_CARD, **cell))["counts"]
    return share_of(int(about["likely"]), counts["corpus"])


def fits_one_process(how: _run.How, config: Mapping[str, Any]) -> bool:
    """Tell whether the grid of a configuration is one cell, whose model is not to be trained or
    divided and whose texts are not drawn, and nothing is asked of Snakemake."""
    if how.snakemake_args or how.profile != _run.How.profile or how.dry_run:
        return False
    cells, is_divided = [*grid.cells(config["grid"])], config["execution"]["gpus_per_job"] > 1
    model = config["models"][cells[0]["model"]]
    is_ready = "embeddings" in model or (model["contaminated"] and model["base"] is None)
    is_drawn = config["datasets"][cells[0]["dataset"]].get("draws")
    return len(cells) == 1 and is_ready and not is_divided and not is_drawn


@contextlib.contextmanager
def open_pipeline(
    how: _run.How, configfile: Path, config: Mapping[str, Any]
) -> Iterator[Callable[[Mapping[str, Any]], Pipeline]]:
    """Hold this folder, and a GPU where the model can use one. Give what makes the pipeline of the
    grid's one cell. Raises ``UserError`` where a run works in this folder."""
    _run.fetch([configfile])
    (cell,) = grid.cells(config["grid"])
    if how.cores:
        os.environ[WORKERS] = str(how.cores)
    # A judge is one, where vectors are ranked.
    is_on_gpu = any("source" in model for model in config["models"].values())
    is_on_gpu = is_on_gpu and config["execution"]["device"] == "auto"
    with hooks.only_run(), lease_gpus(is_on_gpu):
        yield partial(Pipeline, cell=cell, record=Record())
    shutil.rmtree(paths.CLAIMS, ignore_errors=True)
