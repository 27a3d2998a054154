"""Make the page to browse a run's ranking of the forget set: one HTML file that opens offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, reads, writes
from mamushi.stages._settings import Cell, Config


class Ranking(Cell):
    """Settings of the stage ``ranking``."""

    budgets: list[float]


def settings(config: Config, dataset: str, model: str, seed: int) -> Ranking:
    return Ranking(
        dataset=dataset,
        model=model,
        seed=seed,
        budgets=grid.budgets(config),
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("the examples table")
    scores: list[Path] = reads("scores tables", named_by="selectors")
    refits: list[Path] = reads("their refits", named_by="selectors")
    triage: Path = reads("the triage table")
    calibrated: Path = reads("the calibrated log-density ratio, with the verdict")
    selectors: list[str] = option("their selectors, in the same order")
    out: Path = writes("the HTML file to write")


def run(files: Files, settings: Ranking, job: Job) -> None:
    """Write the page. Raises ``UserError`` for a missing or damaged file, and for scores that rank
    other examples."""
    from functools import partial

    from mamushi.artifacts.files import atomic
    from mamushi.evidence.ranking import (
        labels_to_look_at,
        page,
        page_data,
        read_ranking,
        texts_of,
        verdict_of,
    )

    made = zip(files.selectors, files.scores, files.refits, strict=True)
    rankings = {name: read_ranking(path, again) for name, path, again in made}
    named = {
        "provenance": job.origin,
        "triage": labels_to_look_at(files.triage),
        "verdict": f"By {files.selectors[0]}: {verdict_of(files.calibrated)}.",
    }
    data = page_data(rankings, partial(texts_of, files.examples), settings.budgets, named)
    title = f"Ranking of {settings.dataset} by {settings.model}, seed {settings.seed}"
    with atomic(files.out) as part:
        part.write_text(page(title, data), encoding="utf-8", newline="\n")
