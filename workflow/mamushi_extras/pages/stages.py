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
    Raises ``UserError`` for scores that rank other examples.
    """
    from functools import partial

    from mamushi.evidence.manifest import read_calibrated
    from mamushi.evidence.ranking import read_ranking, read_texts_of
    from mamushi.evidence.verdict import ranking_words, separation_by
    from mamushi.io.files import write_text
    from mamushi.io.tables import read_metadata
    from mamushi_extras.pages.ranking_page import page_data, ranking_html

    rankings = {}
    texts = None if calibrated is None else read_calibrated(calibrated).texts
    refits_of = {path.stem: path for path in refits}
    for name, path, stable in zip(settings.selectors, scores, stability, strict=True):
        why = settings.compared[name]
        separates = separation_by(texts, read_metadata(stable)["separation"])
        words = ranking_words(separates, why, texts.words() if texts else "")
        rankings[name] = read_ranking(
            path, refits_of.get(name), verdict=words, compared=why is not None
        )
    read = partial(read_texts_of, examples)
    data = page_data(rankings, read, settings.budgets, {"provenance": job.origin})
    title = f"Ranking of {settings.dataset} by {settings.model}, seed {settings.seed}"
    write_text(out, ranking_html(title, data))
