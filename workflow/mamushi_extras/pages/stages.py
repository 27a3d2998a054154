"""The page to browse a run's ranking."""

from __future__ import annotations

from typing import Any

from mamushi.config import grid
from mamushi.config.selectors import comparison, leading_first
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import Cell, Config


class Ranking(Cell):
    """Budgets of all lists, and of each selector why it is there for comparison alone, if so."""

    selectors: list[str]
    budgets: list[float]
    compared: dict[str, str | None]

    @classmethod
    def of(cls, config: Config, *, dataset: str, model: str, seed: int) -> Ranking:
        """Return which rankings of a cell the page shows."""
        names = config["grid"]["selectors"]
        return cls(
            dataset=dataset,
            model=model,
            seed=seed,
            selectors=leading_first(config),
            budgets=grid.budgets(config),
            compared={name: comparison(config, name) for name in names},
        )


def ranking(
    *,
    examples: Input,
    scores: list[Input],
    refits: list[Input] = (),  # type: ignore[assignment]
    stability: list[Input],
    tokens: list[Input] = (),  # type: ignore[assignment]
    out: Output,
    settings: Ranking,
    job: Job,
) -> None:
    """Make the page to browse a run's ranking of the forget set: one HTML file that opens offline.

    ``scores``, their ``stability`` and, if there are any, ``refits`` are in the order of the
    settings' ``selectors``; ``tokens`` is what is shown of rankings of tokens (JSON). It opens with
    the first selector, and says of each what its own ranking is worth. Raises ``UserError`` for
    scores that rank other examples.
    """
    from functools import partial

    from mamushi.evidence.judgement import ranking_words
    from mamushi.evidence.ranking import read_ranking, texts_of
    from mamushi.io.files import atomic, read_json
    from mamushi.io.tables import read_metadata
    from mamushi_extras.pages.ranking_page import page, page_data

    refitted = dict(zip(settings.selectors, refits, strict=True)) if refits else {}
    rankings = {}
    for name, path, stable in zip(settings.selectors, scores, stability, strict=True):
        reason = settings.compared.get(name)
        verdict = ranking_words(read_metadata(stable)["separation"], reason)
        rankings[name] = read_ranking(
            path, refitted.get(name), verdict=verdict, compared=reason is not None
        )
    metadata: dict[str, Any] = {
        "provenance": job.origin,
        "tokens": [read_json(path) for path in tokens],
    }
    data = page_data(rankings, partial(texts_of, examples), settings.budgets, metadata)
    title = f"Ranking of {settings.dataset} by {settings.model}, seed {settings.seed}"
    with atomic(out) as part:
        part.write_text(page(title, data), encoding="utf-8", newline="\n")
