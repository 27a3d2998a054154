"""Rankings of tokens in the place of texts: scores, spans to leave out, and what to expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import Settings, setting
from mamushi.config.selectors import selector_settings, why_baseline
from mamushi.errors import UserError
from mamushi.io.domains import FORGET
from mamushi.registry import plugin
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages.select import Score, rank_pool


class TokenScores(Settings):
    """A selector of tokens, the seed, and the length at which trainings cut texts."""

    PLUGIN = ("selector", "kind")
    selector: str
    kind: str = setting("selectors.{selector}.kind")
    settings: dict[str, Any] = setting(selector_settings)
    seed: int
    max_length: int = setting("models.{model}.training.max_length")


def token_scores(
    *,
    examples: Input,
    tokens: Input,
    measured: Input | None = None,
    out: Output,
    settings: TokenScores,
    job: Job,
) -> None:
    """Score every token of the forget set by one selector of tokens; by what was ``measured`` those
    of the retain texts as well. Raises ``UserError`` as the selector, and where other tokens were
    measured: those of a judge, or of a contaminated model with another tokenizer than its base."""
    import pyarrow as pa

    from mamushi.lm.tokens import COUNTED
    from mamushi_extras.tokens.masks import read_token_pool

    pool = read_token_pool(examples, tokens, settings.max_length)
    texts = pool.texts
    if measured is not None:
        values, _ = read_measured(measured, texts.ids.tolist())
        if [*map(len, values)] != texts.counted.tolist():
            problem = "the model that was asked makes other tokens of these texts than the trained"
            raise UserError(problem, where=measured, do="rank texts")
        pool = replace(pool, measured=[*values])
    scores = plugin("selector", settings.kind).code.score_tokens(
        pool, settings.settings, settings.seed
    )
    columns = {"id": texts.ids, "domain": texts.domains}
    columns["score"] = pa.array(scores, pa.list_(pa.float32()))
    if not texts.weights.all():
        counted = [texts.weights_of(row) > 0 for row in range(len(texts))]
        columns[COUNTED] = pa.array(counted, pa.list_(pa.bool_()))
    metadata = {"provenance": job.origin, "cut": settings.max_length}
    parquet.write_table(out, schemas.TOKEN_SCORES, columns, metadata=metadata)


def read_measured(path: Path, ids: Sequence[str]) -> tuple[list[Any], Any]:
    """Return the values (predicted,) of each text's tokens, the last column of a table of what a
    model says of them, and the ``fold`` (n,) of each text, if all have one, in the order of
    ``ids``. Raises ``KeyError`` for an id that was not measured."""
    table = parquet.read_table(path, None)
    places = {name: place for place, name in enumerate(table["id"].to_pylist())}
    table = table.take([places[name] for name in ids])
    fold, values = table["fold"], table.column(table.num_columns - 1)
    return [of.values.to_numpy() for of in values], None if fold.null_count else fold.to_numpy()


def measured_scores(
    *,
    examples: Input,
    embeddings: Input,
    measured: Input,
    out: Output,
    settings: Score,
    job: Job,
) -> None:
    """Rank the forget set by the sum of what a model says of each text's tokens; the embeddings say
    which texts are ranked. Raises as ``read_measured``."""
    import numpy as np

    from mamushi.selection.scores import read_pool

    pool = read_pool(embeddings, examples)
    values, fold = read_measured(measured, pool.ids.tolist())
    columns = {"measured": np.array([of.sum(dtype=np.float64) for of in values])}
    columns |= {} if fold is None else {"fold": fold}
    rank_pool(job, replace(pool, columns={**pool.columns, **columns}))


class Spans(Settings):
    """Spans depend on what they are made from and the budget alone."""

    beta: float = setting(lambda config, beta: float(beta))


def spans(*, scores: Input, out: Output, settings: Spans, job: Job) -> None:
    """List the spans to leave out of the loss at one budget: the tokens of the highest scores."""
    import numpy as np
    import pyarrow.compute as pc

    from mamushi.lm.tokens import COUNTED
    from mamushi.selection.removals import budget_size
    from mamushi_extras.tokens.masks import highest_spans

    table = parquet.read_table(scores, schemas.TOKEN_SCORES)
    table = table.filter(pc.equal(table["domain"], FORGET))
    by_text = [text.values.to_numpy() for text in table["score"]]
    places = None
    if COUNTED in table.column_names:
        places = [np.flatnonzero(text[1:]) + 1 for text in table[COUNTED].to_pylist()]
    k = budget_size(settings.beta, sum(map(len, by_text)))
    rows = highest_spans(table["id"].to_pylist(), by_text, k, places)
    parquet.write_table(out, schemas.SPANS, rows, metadata=job.origin)


class TokenManifests(TokenScores):
    """Why the selector is there for comparison alone, if so, the budgets, and how many refits."""

    dataset: str
    model: str
    compared: str | None = setting(why_baseline)
    budgets: list[float] = setting(grid.budgets)
    whole: int = setting("evidence.refits.whole")


def token_manifests(
    *,
    examples: Input,
    tokens: Input,
    duplicates: Input,
    scores: Input,
    out: list[Output],
    settings: TokenManifests,
    job: Job,
) -> None:
    """Write the manifest of the mask at every budget of a selector of tokens: how well it tells the
    domains apart, its part of the retain texts, and how much of it refits mask as well."""
    from mamushi.data.labels import read_texts
    from mamushi.io.files import write_json
    from mamushi.selection.refits import refit_seed
    from mamushi_extras.tokens.masks import read_token_pool
    from mamushi_extras.tokens.token_ranking import mask_manifests

    pool = read_token_pool(examples, tokens, settings.max_length)
    column = parquet.read_table(scores, schemas.TOKEN_SCORES)["score"]
    by_text = [text.values.to_numpy() if text.is_valid else None for text in column]
    cross_fitted = "folds" in settings.settings
    score = plugin("selector", settings.kind).code.score_tokens
    seeds = [refit_seed(settings.seed, i) for i in range(settings.whole if cross_fitted else 0)]
    refits = [score(pool, settings.settings, seed) for seed in seeds]
    properties = read_texts(examples, pool.texts.ids.tolist(), duplicates)
    known = (properties, settings.budgets, cross_fitted, settings.compared)
    about = settings.model_dump(exclude={"compared", "budgets", "whole"})
    of_masks = mask_manifests(pool.texts, by_text, refits, *known)
    for path, beta, manifest in zip(out, settings.budgets, of_masks, strict=True):
        write_json(path, {**about, "beta": beta, **manifest, "provenance": job.origin})
