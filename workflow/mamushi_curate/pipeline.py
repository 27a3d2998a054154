"""The ranking of one cell, one stage after another in this process, which needs no Snakemake.

Files, settings and origins are those of the rules in ``workflow/rules``: Snakemake takes what is
made here as it is, and what it has made is not made again here.
"""

import contextlib
import json
import os
import shutil
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mamushi.config import grid, selectors
from mamushi.config.sources import local_vectors, unlabelled
from mamushi.io import paths
from mamushi.running.locks import claim_outputs, lease_gpus
from mamushi.running.machine import VISIBLE, WORKERS, require_cuda, scheduled, variables
from mamushi.running.progress import Progress
from mamushi.running.stage import Stage, job_of, stages
from mamushi_cluster import hooks
from mamushi_cluster.commands import _run
from mamushi_cluster.record import Record

FIGURE = "diagnostics"
"""The figure of a cell that shows how far the scores of the two domains are apart."""
INFLUENCE = ("influence", "token_influence")
"""Selectors that a stage of their own scores."""

USUAL = {
    "examples": paths.EXAMPLES,
    "duplicates": paths.DUPLICATES,
    "card": paths.DATA_CARD,
    "model_card": paths.MODEL_CARD,
    "tokens": paths.TOKENS,
    "embeddings": paths.EMBEDDINGS,
    "influence": paths.INFLUENCE,
    "scores": paths.SCORES,
    "posterior": paths.POSTERIOR,
    "calibrated": paths.CALIBRATED,
    "stability": paths.STABILITY,
}
"""By the name of an option that a stage needs, its file where none is named."""


class Pipeline:
    """The stages of a cell of a complete configuration, whose files lie in the folder ``root``.
    Without a ``record`` of what is current (``mamushi.rank`` has a folder of its own), all is made.
    ``gpus`` are the names of those that this process holds, if any.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        cell: Mapping[str, Any],
        root: Path = paths.RESULTS,
        record: Record | None = None,
        gpus: str | None = None,
    ) -> None:
        self.config, self.cell, self.root, self.record = config, cell, root, record
        self.gpus = gpus
        self.done: set[tuple[Any, ...]] = set()
        self.planned: dict[tuple[Any, ...], Any] = {}
        self.is_corpus = unlabelled(config["datasets"][cell["dataset"]])
        self.model = config["models"][cell["model"]]
        self.is_language_model = "embeddings" not in self.model
        self.ratio = config["removal"]["ratio"]
        self.refitted = config["evidence"]["refits"]["whole"] > 0
        self.of_texts = selectors.leading_first(config)
        self.of_tokens = selectors.token_rankings(config)
        kinds = {name: selectors.kind_of(config, name).name for name in config["selectors"]}
        self.by_influence = [name for name, kind in kinds.items() if kind in INFLUENCE]
        self.budgets = [paths.beta(budget) for budget in grid.budgets(config)]

    # What a ranking consists of, in the order of the data: each plans what ``make`` runs ----------

    def make_lists(self) -> None:
        """Rank by every selector of the grid, and write lists with manifests."""
        self.make_vectors()
        for name in self.of_texts:
            self.make_scores(name)
            for beta in self.budgets:
                self.make_list(name, beta)
        for name in self.of_texts:
            self.make_refits(name)
            self.make_manifests(name)
        for name in self.of_tokens:
            self.make_masks(name)

    def make_evidence(self) -> None:
        """Add what is to be expected of the lists: frontier, prediction, figure."""
        figure = paths.CELL_FIGURE.replace("{figure}", FIGURE)
        self.make_scores(self.ratio)
        self.plan("figure", tables=self.root, out=figure, name=FIGURE)
        if self.is_corpus:
            return
        self.make_frontier()
        if self.is_language_model:
            self.make_prediction()

    def make_examples(self) -> None:
        """Read, clean and split the table."""
        self.plan("examples", cache="results/downloads/{dataset}")

    def make_vectors(self) -> None:
        """Embed the texts: by the model, by vectors of another program, or by their words."""
        self.make_examples()
        if not self.is_language_model:
            vectors, out = local_vectors(self.model), paths.EMBEDDINGS
            self.plan("import-embeddings", vectors=vectors, data_card=paths.DATA_CARD, out=out)
            return
        self.plan("model-card", out=paths.MODEL_CARD)
        self.plan("tokens", out=paths.TOKENS)
        self.plan("embed", out=paths.EMBEDDINGS)
        if {*self.of_texts, *self.of_tokens} & {*self.by_influence}:
            self.plan("influence", role="beta0", out=paths.INFLUENCE)

    def make_scores(self, name: str) -> None:
        """Rank by a selector, after the one that it derives from."""
        if name in self.by_influence:
            self.plan("influence-scores", selector=name, out=paths.SCORES)
            return
        if base := selectors.derives(self.config, name):
            self.make_scores(base)
        scores = _of(paths.SCORES, base) if base else None
        self.plan("score", selector=name, base=scores, out=paths.SCORES)
        if self.is_corpus:
            self.plan("posterior", selector=name, out=paths.POSTERIOR)

    def make_list(self, name: str, beta: str) -> None:
        """Write the list of a selector at a budget."""
        scores = self.ranking_pattern
        self.plan("remove", selector=name, beta=beta, scores=scores, out=paths.REMOVAL)

    def make_refits(self, name: str) -> None:
        """Rank again by a selector, with other seeds."""
        if not self.refits_of(name):
            return
        if base := selectors.derives(self.config, name):
            self.make_refits(base)
        refits = _of(paths.REFITS, base) if base else None
        self.plan("refits", selector=name, base=refits, out=paths.REFITS)

    def make_manifests(self, name: str) -> None:
        """Write how certain a selector's lists are, and what to expect of them."""
        ranked = paths.POSTERIOR if self.is_corpus else None
        files = {"ranked": ranked, "refits": self.refits_of(name), "out": paths.STABILITY}
        self.plan("stability", selector=name, **files)
        if self.is_corpus:
            for beta in self.budgets:
                self.make_corpus_manifest(name, beta)
            return
        self.make_ratio()
        manifests = [paths.MANIFEST.replace("{beta}", beta) for beta in self.budgets]
        self.plan("manifests", selector=name, out=manifests)

    def make_corpus_manifest(self, name: str, beta: str) -> None:
        """Write what a list of a corpus without labels holds."""
        files = {"refits": self.refits_of(name), "out": paths.MANIFEST}
        self.plan("corpus-manifest", selector=name, beta=beta, **files)

    def make_likely_list(self, name: str) -> str:
        """Write the list of all that is more likely than not of the domain, with its manifest.
        Return its budget. Raises ``UserError`` where that is nothing, or all."""
        beta = likely_budget(self.cell, name, self.root)
        self.make_list(name, beta)
        self.make_corpus_manifest(name, beta)
        self.make()
        return beta

    def make_ratio(self) -> None:
        """Calibrate the scores that estimate the log-density ratio."""
        self.make_scores(self.ratio)
        self.make_refits(self.ratio)
        files = {"out": paths.CALIBRATED, "checks": paths.CALIBRATION}
        self.plan("calibrate", **files, **self._ratio_files("scores"))

    def make_masks(self, name: str) -> None:
        """Rank tokens, and write the spans to leave out of the loss with their manifests."""
        measured = paths.INFLUENCE if name in self.by_influence else None
        self.plan("token-scores", selector=name, influence=measured, out=paths.TOKEN_SCORES)
        scores = paths.TOKEN_SCORES
        for beta in self.budgets:
            self.plan("spans", selector=name, beta=beta, scores=scores, out=paths.SPANS)
        manifests = [paths.SPANS_MANIFEST.replace("{beta}", beta) for beta in self.budgets]
        self.plan("token-manifests", selector=name, scores=scores, out=manifests)

    def make_page(self) -> None:
        """Make the page to browse the ranking, where the room of pages is there."""
        if "ranking" not in stages():
            return
        names = self.of_texts
        files: dict[str, Any] = {"out": paths.RANKING}
        files["scores"] = [_of(self.ranking_pattern, name) for name in names]
        files["refits"] = [path for name in names for path in self.refits_of(name)]
        files["stability"] = [_of(paths.STABILITY, name) for name in names]
        files["calibrated"] = None if self.is_corpus else paths.CALIBRATED
        self.plan("ranking", **files)

    def make_frontier(self) -> None:
        """Predict from the scores what removal and preservation a budget brings."""
        self.make_ratio()
        scores = [_of(paths.SCORES, name) for name in self.of_texts]
        self.plan("frontier", scores=scores, out=paths.FRONTIER, **self._ratio_files("ratio"))

    def make_prediction(self) -> None:
        """Predict from the tokens what retraining would do."""
        names = selectors.foreseen(self.config)
        rankings = [grid.ranking_pattern(self.config, name) for name in names]
        self.plan("predict", scores=rankings, out=paths.PREDICTED)

    @property
    def ranking_pattern(self) -> str:
        """Return the pattern of what lists are the top of."""
        return paths.POSTERIOR if self.is_corpus else paths.SCORES

    def refits_of(self, name: str) -> list[str]:
        """Return the refits of a selector; none where nothing is to be refitted."""
        is_refitted = self.refitted and selectors.is_refitted(self.config, name)
        return [_of(paths.REFITS, name)] if is_refitted else []

    def _ratio_files(self, scores: str) -> dict[str, Any]:
        return {scores: _of(paths.SCORES, self.ratio), "refits": self.refits_of(self.ratio)}

    # How a stage runs -----------------------------------------------------------------------------

    def plan(self, name: str, /, **options: Any) -> None:
        """Plan a stage. ``options`` are its files, by patterns of ``paths``, and the wildcards
        beside those of the cell."""
        stage = stages()[name]
        parameters = {parameter.name for parameter in stage.parameters}
        wildcards = {**self.cell, **{k: v for k, v in options.items() if k not in parameters}}
        if (step := (name, *wildcards.values())) not in self.done:
            self.planned[step] = (stage, wildcards, options)

    def make(self, *recipes: Callable[[], None]) -> None:
        """Run the stages that these methods plan, and tell how far it is."""
        for recipe in recipes:
            recipe()
        steps, self.planned = self.planned, {}
        with Progress(len(steps), "rank", "step") as progress:
            for step, planned in steps.items():
                self._run(*planned)
                self.done.add(step)
                progress.advance(note=str(step[0]))

    def _run(self, stage: Stage, wildcards: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Run a stage, unless its outputs are current."""
        files = {}
        for parameter in stage.parameters:
            usual = USUAL.get(parameter.name) if parameter.is_required else parameter.default
            placed = self._place(options.get(parameter.name, usual), wildcards)
            is_single = isinstance(placed, list) and not parameter.is_list
            files[parameter.name] = next(iter(placed), None) if is_single else placed
        if self.gpus and stage.name == "embed":
            require_cuda(self.gpus, self.path(paths.MODEL_CARD))
        settings = stage.settings_text(self.config, **wildcards)
        execution = json.dumps(self.config["execution"])
        job = job_of(stage, Namespace(**files, settings=settings, execution=execution))
        name = stage.name.replace("-", "_")
        log = self.root.joinpath("logs", name, *map(str, wildcards.values()))
        sees_gpu = stage.is_on_gpu and job.execution.device == "auto"
        with variables(**({} if sees_gpu else {VISIBLE: ""})), claim_outputs(job.outputs):
            if self.record is None or not self.record.is_current(job):
                with _logged(log.with_name(f"{log.name}.log")):
                    job.run()
            if self.record is not None:
                self.record.add(job, wildcards)

    def path(self, pattern: str, **wildcards: Any) -> Path:
        """Return the file of a pattern of ``paths`` in the folder of this cell."""
        return paths.under(self.root, pattern, **{**self.cell, **wildcards})

    def _place(self, files: Any, wildcards: Mapping[str, Any]) -> Any:
        """Return patterns as the files of a cell."""
        if isinstance(files, str):
            return paths.under(self.root, files, **wildcards)
        many = isinstance(files, list)
        return [self._place(file, wildcards) for file in files] if many else files


def likely_budget(cell: Mapping[str, Any], selector: str, root: Path = paths.RESULTS) -> str:
    """Return the budget of all texts of a corpus that are more likely than not of the domain.
    Raises ``UserError`` where that is nothing, or all, or no corpus is ranked."""
    from mamushi.io.files import read_json
    from mamushi.io.tables import read_metadata
    from mamushi.selection.removals import share_of

    about = read_metadata(paths.under(root, paths.POSTERIOR, **cell, selector=selector))
    counts = read_json(paths.under(root, paths.DATA_CARD, **cell))["counts"]
    return share_of(int(about["likely"]), counts["corpus"])


def _of(pattern: str, selector: str) -> str:
    return pattern.replace("{selector}", selector)


@contextlib.contextmanager
def _logged(log: Path) -> Iterator[None]:
    """Write into ``log`` what a stage prints within the block, but for its progress."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        yield


def fits_one_process(args: Namespace, config: Mapping[str, Any]) -> bool:
    """Tell whether the grid of a configuration is one cell, whose model is not to be trained or
    divided, and nothing is asked of Snakemake."""
    if args.snakemake_args or args.profile != _run.PROFILE or args.dry_run:
        return False
    models = [config["models"][name] for name in config["grid"]["models"]]
    trains = any(
        "embeddings" not in model and not (model["contaminated"] and model["base"] is None)
        for model in models
    )
    is_divided = config["execution"]["gpus_per_job"] > 1
    return len([*grid.cells(config["grid"])]) == 1 and not trains and not is_divided


@contextlib.contextmanager
def open_pipeline(
    args: Namespace, configfile: Path, config: Mapping[str, Any]
) -> Iterator[Callable[[Mapping[str, Any]], Pipeline]]:
    """Hold this folder, and a GPU where the model can use one. Give what makes the pipeline of the
    grid's one cell, of this configuration or of another one for the same. Raises ``UserError``
    where a run works in this folder."""
    _run.fetch([configfile])
    (cell,) = grid.cells(config["grid"])
    if args.cores:
        os.environ[WORKERS] = str(args.cores)
    is_on_gpu = "source" in config["models"][cell["model"]]
    is_on_gpu = is_on_gpu and config["execution"]["device"] == "auto"
    with hooks.only_run(), lease_gpus(is_on_gpu) as lease:
        gpus = (lease or scheduled()) if is_on_gpu else None
        yield partial(Pipeline, cell=cell, record=Record([configfile]), gpus=gpus)
    shutil.rmtree(paths.CLAIMS, ignore_errors=True)
