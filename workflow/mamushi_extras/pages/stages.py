"""The page to browse a run's ranking."""

from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import setting
from mamushi.config.selectors import leading_first
from mamushi.io import paths
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import Cell

MOST_TEXTS = 20_000
"""Texts on the page, the first of the ranking: some 10 MB, which a browser opens at once."""


class RankingPage(Cell):
    """Selectors, first the one to act on, and the budgets of all lists."""

    selectors: list[str] = setting(leading_first)
    budgets: list[float] = setting(grid.budgets)


def ranking(
    *,
    examples: Input,
    scores: list[Input],
    refits: list[Input] = (),  # type: ignore[assignment]
    manifests: list[Input],
    out: Output,
    settings: RankingPage,
    job: Job,
) -> None:
    """Make the page to browse a run's ranking of the forget set: one HTML file that opens offline.

    ``scores`` and ``manifests``, of a list of each, are in the order of the settings'
    ``selectors``; ``refits`` have the name of the selector that has any.
    """
    import numpy as np

    from mamushi.evidence.calibration import read_scores
    from mamushi.evidence.ranking import refit_ranks
    from mamushi.evidence.verdict import COMPARISON
    from mamushi.io import schemas
    from mamushi.io.files import read_json, write_text
    from mamushi.io.tables import read_table
    from mamushi.selection.removals import read_texts_of
    from mamushi_extras.pages.ranking_page import page_texts, render

    refits_of = {path.stem: path for path in refits}
    selectors, rows = list[dict[str, Any]](), np.empty(0, np.int64)
    for name, path, manifest in zip(settings.selectors, scores, manifests, strict=True):
        judged, table = read_json(manifest)["judgement"], read_table(path, schemas.SCORES)
        ids, ranks = refit_ranks(table, read_scores(path, refits_of.get(name)).refits)
        rows = rows if selectors else np.argsort(ranks[0])[:MOST_TEXTS]
        own = table["score"].filter(table["rank"].is_valid()).to_numpy()[rows]
        selectors.append(
            {
                **{"name": name, "verdict": judged["ranking"]},
                "compared": judged["act"] == COMPARISON,
                "ranks": ranks[0][rows].tolist(),
                "again": ranks[1:, rows].tolist(),
                "scores": [float(f"{score:.6g}") for score in own],
            }
        )
    shown = [ids[row] for row in rows]
    data = {
        **{"provenance": job.origin, "selectors": selectors, "total": len(ids)},
        "budgets": [paths.beta(budget) for budget in settings.budgets],
        **page_texts(shown, read_texts_of(examples, shown)),
    }
    title = f"Ranking of {settings.dataset} by {settings.model}, seed {settings.seed}"
    write_text(out, render("page", title=title, data=data))
