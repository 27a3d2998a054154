"""Write the manifest of a selector's removal list at every budget.

A manifest says what the list was made from (digests of data, model, embeddings and scores, which
the scores carry along; settings; versions), the digest of the list itself, and the removal and
preservation to expect of it, predicted from the scores of a selector that estimates the
log-density ratio, and how much of it a second run would list. It is apart from the list, because
these estimates change no list: another one must not retrain anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mamushi.configuration import grid
from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Cell, Config, SelectorSettings, selector


class Manifests(SelectorSettings, Cell):
    """Settings of the stage ``manifests``."""

    budgets: list[float]


def settings(config: Config, dataset: str, model: str, seed: int, name: str) -> Manifests:
    definition = selector(config, name)
    if grid.action(config, name) != "remove":
        definition.settings["action"] = grid.action(config, name)
    return Manifests(
        dataset=dataset,
        model=model,
        seed=seed,
        **vars(definition),
        budgets=grid.budgets(config),
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    scores: Path = reads("scores to rank by")
    calibrated: Path = reads("the calibrated log-density ratio")
    stability: Path = reads("how often each text is listed by the scores' refits")
    duplicates: Path = reads("the dataset's duplicates table")
    out: list[Path] = writes("manifests (JSON), one a budget")


def run(files: Files, settings: Manifests, job: Job) -> None:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.files import write_json
    from mamushi.artifacts.paths import beta as written
    from mamushi.artifacts.tables import read_metadata, read_table
    from mamushi.evidence.manifest import manifest, read_calibrated
    from mamushi.selection.removals import budget_of

    scores = read_table(files.scores, schemas.SCORES)
    ratio = read_calibrated(files.calibrated)
    if action := settings.settings.get("action"):
        # What is expected is of whole texts, the top of the ranking.
        ratio = replace(ratio, withheld=f"retraining does not remove this list (action: {action})")
    duplicates = read_table(files.duplicates, schemas.DUPLICATES)
    stable = read_metadata(files.stability)
    ranked, estimated = read_metadata(files.scores), read_metadata(files.calibrated)
    sources = ranked["provenance"]["inputs"]
    for name in ("examples", "embeddings"):
        if estimated["sources"][name] != sources[name]:
            raise UserError(
                f"was made from other {name} than {files.scores}",
                where=files.calibrated,
                do="delete both and score again",
            )
    embedded = ranked["embedded"]
    made = {
        **job.origin,
        "inputs": {**embedded["inputs"], **sources, **job.origin["inputs"]},
        "embedding": embedded["settings"]["embedding"],
    }
    by_chance = bool(plugin("selector", settings.kind).literals.get("BY_CHANCE", False))
    selector = {"selector": settings.selector, "kind": settings.kind, "settings": settings.settings}
    for path, beta in zip(files.out, settings.budgets, strict=True):
        again = {"rankings": stable["rankings"], **stable["budgets"][written(beta)]}
        about = {**settings.cell, **selector, "beta": beta, "provenance": made}
        about |= {"conditions": ranked["conditions"], "stability": again}
        k = budget_of(beta, scores)
        write_json(path, manifest(scores, ratio, duplicates, k, by_chance, about))
