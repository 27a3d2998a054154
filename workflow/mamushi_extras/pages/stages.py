"""The page to browse a run's ranking."""

from mamushi.config import grid
from mamushi.config.kinds import setting
from mamushi.config.selectors import comparison, leading_first
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import Cell


class RankingPage(Cell):
    """Selectors, first the one to act on, why each is there for comparison alone, if so, and the
    budgets of all lists."""

    selectors: list[str] = setting(leading_first)
    compared: dict[str, str | None] = setting(
        lambda config: {name: comparison(config, name) for name in leading_first(config)}
    )
    budgets: list[float] = setting(grid.budgets)


def ranking(
    *,
    examples: Input,
    scores: list[Input],
    refits: list[Input] = (),  # type: ignore[assignment]
    stability: list[Input],
    calibrated: Input | None = None,
    out: Output,
    settings: RankingPage,
    job: Job,
) -> None:
    """Make the page to browse a run's ranking of the forget set: one HTML file that opens offline.

    ``scores`` and ``stability`` are in the order of the settings' ``selectors``, ``refits`` have
    the name of the selector that has any; ``calibrated`` knows how texts depend on each other.
    """
    from functools import partial

    from mamushi.evidence.manifest import read_calibrated
    from mamushi.evidence.ranking import rankings
    from mamushi.evidence.verdict import ranking_words, separation_by
    from mamushi.io import schemas
    from mamushi.io.files import write_text
    from mamushi.io.tables import read_metadata, read_table
    from mamushi.selection.refits import read_refits
    from mamushi.selection.removals import read_texts_of
    from mamushi_extras.pages.ranking_page import page_data, ranking_html

    dependence = None if calibrated is None else read_calibrated(calibrated).texts
    refits_of = {path.stem: path for path in refits}
    selectors = []
    for name, path, stable in zip(settings.selectors, scores, stability, strict=True):
        why, table = settings.compared[name], read_table(path, schemas.SCORES)
        separates = separation_by(dependence, read_metadata(stable)["separation"])
        words = ranking_words(separates, why, dependence)
        ids, ranks = rankings(table, read_refits(refits_of.get(name)))
        selector = {"name": name, "verdict": words, "compared": why is not None, "ranks": ranks}
        selector["scores"] = table["score"].filter(table["rank"].is_valid()).to_numpy()
        selectors.append(selector)
    read, named = partial(read_texts_of, examples), {"provenance": job.origin}
    data = page_data(ids, selectors, read, settings.budgets, named)
    title = f"Ranking of {settings.dataset} by {settings.model}, seed {settings.seed}"
    write_text(out, ranking_html(title, data))
