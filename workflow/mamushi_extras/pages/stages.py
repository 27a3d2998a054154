"""The page to browse a run's ranking."""

from mamushi.config import grid
from mamushi.config.kinds import setting
from mamushi.config.selectors import leading_first
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import Cell


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
    from functools import partial

    from mamushi.evidence.calibration import read_scores
    from mamushi.evidence.ranking import rankings
    from mamushi.evidence.verdict import COMPARISON
    from mamushi.io import schemas
    from mamushi.io.files import read_json, write_text
    from mamushi.io.tables import read_table
    from mamushi.selection.removals import read_texts_of
    from mamushi_extras.pages.ranking_page import page_data, ranking_html

    refits_of = {path.stem: path for path in refits}
    selectors = []
    for name, path, manifest in zip(settings.selectors, scores, manifests, strict=True):
        judged, table = read_json(manifest)["judgement"], read_table(path, schemas.SCORES)
        ids, ranks = rankings(table, read_scores(path, refits_of.get(name)).refits)
        selector = {"name": name, "verdict": judged["ranking"], "ranks": ranks}
        selector["compared"] = judged["act"] == COMPARISON
        selector["scores"] = table["score"].filter(table["rank"].is_valid()).to_numpy()
        selectors.append(selector)
    read, named = partial(read_texts_of, examples), {"provenance": job.origin}
    data = page_data(ids, selectors, read, settings.budgets, named)
    title = f"Ranking of {settings.dataset} by {settings.model}, seed {settings.seed}"
    write_text(out, ranking_html(title, data))
