"""From embeddings to a ranking, and to what is removed at each budget."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config import grid
from mamushi.errors import UserError
from mamushi.io.domains import CONTAMINATION, FORGET, INFERENCE
from mamushi.registry import plugin
from mamushi.running.stage import Files, Job, reads, writes
from mamushi.stages._models import TextFiles
from mamushi.stages._settings import (
    Cell,
    SelectorSettings,
    Settings,
    code_with,
    comparison,
    setting,
)

if TYPE_CHECKING:
    from mamushi.selection.pool import Pool
    from mamushi_extras.tokens.masks import TokenPool


def cut_read(config: Mapping[str, Any], kind: str, model: str) -> int | None:
    """Return the length at which trainings cut texts, for a selector that reads their tokens."""
    reads_them = plugin("selector", kind).literals.get("READS_TOKENS")
    return config["models"][model]["training"]["max_length"] if reads_them else None


class Score(SelectorSettings, Settings):
    """A selector and the seed."""

    seed: int
    max_length: int | None = setting(cut_read, default=None)
    code: str = setting(code_with("selector"), default="")


class RankedFiles(Files):
    examples: Path = reads("the examples table")
    embeddings: Path = reads("their embeddings")
    layers: Path | None = reads("the texts at other depths of the model", default=None)
    tokens: Path | None = reads("token cache of the model", default=None)
    base: Path | None = reads("the same of the selector that this derives from", default=None)
    out: Path = writes("the table to write")


def score(files: RankedFiles, settings: Score, job: Job) -> None:
    """Rank the forget set by one selector.

    One full ranking, from which the removals at every budget are taken. The file's metadata say
    what it was made from, how well the score separates the domains (AUC) and, for synthetic data,
    how well it follows the truth (Spearman).
    """
    from mamushi.io import schemas
    from mamushi.io.tables import read_metadata, write_table
    from mamushi.running.machine import conditions
    from mamushi.selection.metrics import quality
    from mamushi.selection.pool import table_of
    from mamushi_extras.windows.documents import scored_by

    found = plugin("selector", settings.kind)
    derives = found.literals.get("DERIVES")
    if (derives is None) != (files.base is None):
        raise UserError(
            f"selector {settings.kind!r} "
            + ("derives from no other" if derives is None else "derives from another"),
            where="--base",
            do="leave it out" if derives is None else f"give the scores of its setting {derives!r}",
        )
    pool = _pool(files, settings, files.base)
    scored = scored_by(settings.kind, pool, settings.settings, settings.seed)
    table = table_of(pool, scored)
    about = {
        "provenance": job.origin,
        # Carried along, so that a removal list names its model without opening the embeddings.
        "embedded": read_metadata(files.embeddings),
        "details": quality(pool, scored),
        "conditions": conditions(),
        # How documents were divided, if they were.
        "windows": read_metadata(files.examples).get("windows"),
    }
    write_table(files.out, schemas.SCORES, table, metadata=about)


def _pool(files: RankedFiles, settings: Score, base: Path | None = None) -> Pool:
    from mamushi.selection.pool import read_pool

    return read_pool(
        files.embeddings,
        files.examples,
        base,
        layers=files.layers,
        texts=plugin("selector", settings.kind).literals.get("READS_TEXTS", False),
        tokens=files.tokens,
        max_length=settings.max_length,
    )


class Refits(Score):
    """Those of the scores, and the numbers of refits."""

    whole: int = setting("evidence.refits.whole")
    halves: int = setting("evidence.refits.halves")


def refits(files: RankedFiles, settings: Refits, job: Job) -> None:
    """Score again by one selector with other seeds, and cross-fitted on halves of the examples.

    The lists rest on the scores alone. From these refits comes how far chance decides a ranking:
    which texts are in the list for sure, how much of it a second run would list, and the
    estimator's own part in the intervals of what is expected.
    """
    from mamushi.io import schemas
    from mamushi.io.tables import write_table
    from mamushi.selection.refits import as_table, read_refits, refits

    pool = _pool(files, settings)
    bases = read_refits(files.base)
    how = (settings.kind, settings.settings, settings.seed, settings.whole, settings.halves)
    table = as_table(pool, refits(pool, *how, bases), schemas.REFITS.schema)
    write_table(files.out, schemas.REFITS, table, metadata={"provenance": job.origin})


def share_asked(beta: str) -> float:
    return float(beta)


class Posterior(Settings):
    """Whether the examples are hits of a blocklist."""

    hits: bool = setting(lambda config, dataset: "terms" in config["datasets"][dataset]["forget"])


class PosteriorFiles(Files):
    examples: Path = reads("the examples table")
    scores: Path = reads("scores of the examples and of the corpus")
    out: Path = writes("the posterior table to write")


def posterior(files: PosteriorFiles, settings: Posterior, job: Job) -> None:
    """Rank a corpus in which nobody marked the domain, by the scores of examples against it.

    Each text has the probability to be of the domain. The file's metadata say what share of the
    corpus is, as far as that can be known.
    """
    from mamushi.io import schemas
    from mamushi.io.tables import read_metadata, read_table, write_table
    from mamushi_extras.unlabelled.corpus import read_corpus

    scores = read_table(files.scores, schemas.SCORES)
    corpus = read_corpus(scores, files.examples, hits=settings.hits)
    about = {
        "provenance": job.origin,
        "share": corpus.share(),
        "blocklist": corpus.blocklist(),
        "likely": corpus.likely,
        "conditions": read_metadata(files.scores)["conditions"],
    }
    write_table(files.out, schemas.POSTERIOR, corpus.table(scores), metadata=about)


class Remove(Settings):
    """These depend on what they read and the budget alone."""

    beta: float = setting(share_asked)


class ListFiles(Files):
    examples: Path = reads("the examples table")
    scores: Path = reads("scores to rank by")
    duplicates: Path = reads("the dataset's duplicates table")
    out: Path = writes("the table to write")


def remove(files: ListFiles, settings: Remove, job: Job) -> None:
    """List the examples to remove at one budget: the top of a ranking, with all their copies.

    A list stands alone: it says what its ids are, and has the digest of every text that goes.
    Raises ``UserError`` for files of several runs.
    """
    import pyarrow as pa

    from mamushi.io import schemas
    from mamushi.io.tables import read_groups, read_metadata, read_table, write_table
    from mamushi.selection.removals import budget_of, removals, text_digests

    scores = read_table(files.scores, schemas.SCORES)
    duplicates = read_table(files.duplicates, schemas.DUPLICATES)
    of_copies = read_metadata(files.duplicates)
    ranked = read_metadata(files.scores)["provenance"]["inputs"]["examples"]
    for path, known in (
        (files.duplicates, of_copies["examples"]),
        (files.examples, job.origin["inputs"]["examples"]),
    ):
        if known != ranked:
            what, do = f"is of other examples than {files.scores}", "rank again"
            raise UserError(what, where=path, do=do)
    k = budget_of(settings.beta, scores)
    if k == 0:
        # The budgets of the grid are refused where the texts are counted; between two of a sweep
        # there may be one so small, and unlearning then measures the start.
        n1 = len(scores) - scores["rank"].null_count
        said = f"a budget of {settings.beta:g} is less than one of {n1} forget texts"
        print(f"{files.out}: {said}: the list is empty", file=sys.stderr)
    table = removals(scores, duplicates, k)
    examples = read_groups(files.examples, schemas.EXAMPLES, ["id", "text"])
    texts = text_digests(examples, table["id"].to_pylist())
    table = table.append_column("text_sha256", pa.array(texts, pa.string()))
    about = {"provenance": job.origin, "rows": of_copies["rows"]}
    write_table(files.out, schemas.REMOVALS, table, metadata=about)


class TokenScores(Score):
    """The same of a selector of tokens, with the length at which trainings cut texts."""

    model: str
    max_length: int = setting("models.{model}.training.max_length")


class TokenScoresFiles(TextFiles):
    out: Path = writes("the token scores to write")


def token_scores(files: TokenScoresFiles, settings: TokenScores, job: Job) -> None:
    """Score every token of the forget set by one selector of tokens."""
    import pyarrow as pa

    from mamushi.io import schemas
    from mamushi.io.tables import write_table
    from mamushi.registry import load

    pool = _token_pool(files, settings.max_length)
    selector = load("selector", settings.kind)
    scores = selector.score_tokens(pool, settings.settings, settings.seed)
    columns = {
        "id": pool.texts.ids,
        "domain": pool.texts.domains,
        "score": pa.array(scores, pa.list_(pa.float32())),
    }
    about = {"provenance": job.origin, "cut": settings.max_length}
    write_table(files.out, schemas.TOKEN_SCORES, columns, metadata=about)


def _token_pool(files: TextFiles, max_length: int) -> TokenPool:
    from mamushi.data.labels import group_codes
    from mamushi.io.shards import ranked
    from mamushi.lm.tokens import read_tokens
    from mamushi_extras.tokens.masks import TokenPool

    texts, others = (
        read_tokens(files.tokens, files.examples, section, max_length)
        for section in (INFERENCE, CONTAMINATION)
    )
    return TokenPool(texts, others, group_codes(ranked(files.examples, "group")["group"]))


class Spans(Settings):
    """These depend on what they read and the budget alone."""

    beta: float = setting(share_asked)


class SpansFiles(Files):
    scores: Path = reads("the token scores")
    out: Path = writes("the spans to write")


def spans(files: SpansFiles, settings: Spans, job: Job) -> None:
    """List the spans to leave out of the loss at one budget: the tokens of the highest scores."""
    import pyarrow.compute as pc

    from mamushi.io import schemas
    from mamushi.io.tables import read_table, write_table
    from mamushi.selection.removals import count
    from mamushi_extras.tokens.masks import highest_spans, rows_of

    table = read_table(files.scores, schemas.TOKEN_SCORES)
    table = table.filter(pc.equal(table["domain"], FORGET))
    scores = [each.values.to_numpy() for each in table["score"]]
    found = highest_spans(scores, count(settings.beta, sum(map(len, scores))))
    rows = rows_of(table["id"].to_pylist(), found)
    write_table(files.out, schemas.SPANS, rows, metadata=job.origin)


class TokenManifests(SelectorSettings, Cell):
    """A selector of tokens, why it is there for comparison alone, if so, the budgets, how often it
    scores again, and the length at which trainings cut texts."""

    compared: str | None = setting(comparison, default=None)
    budgets: list[float] = setting(grid.budgets)
    whole: int = setting("evidence.refits.whole")
    max_length: int = setting("models.{model}.training.max_length")
    code: str = setting(code_with("selector"), default="")


class TokenManifestsFiles(TextFiles):
    duplicates: Path = reads("the dataset's duplicates table")
    model_card: Path = reads("card of the base model, which has the tokenizer")
    scores: Path = reads("the token scores")
    out: list[Path] = writes("manifests (JSON), one a budget")
    shown: Path = writes("what the page shows of the ranking (JSON)")


def token_manifests(files: TokenManifestsFiles, settings: TokenManifests, job: Job) -> None:
    """Write the manifest of the mask at every budget of a selector of tokens, and what the page
    shows of it.

    A manifest says how well the ranking tells the domains apart, what the mask would take of the
    retain texts, how much of it refits with other seeds mask as well, and what follows. Apart from
    the spans, since none of that changes them.
    """
    from mamushi.evidence.confounds import read_texts
    from mamushi.evidence.judgement import ranking_words
    from mamushi.io import schemas
    from mamushi.io.files import write_json
    from mamushi.io.tables import read_table
    from mamushi.lm.loading import open_tokenizer
    from mamushi.registry import load
    from mamushi.selection.refits import refit_seed
    from mamushi_extras.tokens.token_ranking import TokenRanking

    pool, how = _token_pool(files, settings.max_length), settings.settings
    column = read_table(files.scores, schemas.TOKEN_SCORES)["score"]
    scores = [each.values.to_numpy() if each.is_valid else None for each in column]
    cross_fitted = "folds" in how
    score = load("selector", settings.kind).score_tokens
    seeds = [refit_seed(settings.seed, i) for i in range(settings.whole if cross_fitted else 0)]
    again = [score(pool, how, seed) for seed in seeds]
    about = read_texts(files.examples, files.duplicates, pool.texts.ids.tolist())
    found = TokenRanking(pool.texts, scores, again, about, cross_fitted, settings.compared)
    separates = found.separates()
    selector = {"selector": settings.selector, "kind": settings.kind, "settings": how}
    named = {**settings.cell, **selector, "max_length": settings.max_length}
    for path, beta in zip(files.out, settings.budgets, strict=True):
        own = {"beta": beta, **found.manifest(beta, separates), "provenance": job.origin}
        write_json(path, {**named, **own})
    words = ranking_words(separates, settings.compared)
    shown = found.shown(open_tokenizer(files.model_card), settings.budgets, words)
    write_json(files.shown, {"selector": settings.selector, **shown})


class Stability(Settings):
    """Budgets of all lists."""

    budgets: list[float] = setting(grid.budgets)


class StabilityFiles(Files):
    examples: Path = reads("the examples table")
    duplicates: Path = reads("the dataset's duplicates table")
    scores: Path = reads("the scores table")
    ranked: Path | None = reads("the ranking of a corpus that nobody labelled", default=None)
    refits: Path | None = reads("their refits, if there are any", default=None)
    out: Path = writes("the stability table to write")


def stability(files: StabilityFiles, settings: Stability, job: Job) -> None:
    """Say how often each forget text is in a selector's list, by its scores and their refits, and
    in the metadata how well these scores tell the domains apart and what else they follow.

    It is apart from the lists: a change of how often they are refitted changes no list, and
    retrains nothing. Raises ``UserError`` for refits of other examples.
    """
    from mamushi.evidence.confounds import read_texts
    from mamushi.evidence.judgement import separation
    from mamushi.evidence.stability import rankings, stability
    from mamushi.io import schemas
    from mamushi.io.tables import read_table, write_table
    from mamushi.selection.refits import read_refits

    scores = read_table(files.scores, schemas.SCORES)
    again = read_refits(files.refits)
    ranked = read_table(files.ranked or files.scores, schemas.SCORES)
    columns, metadata = stability(*rankings(ranked, again), settings.budgets)
    texts = read_texts(files.examples, files.duplicates, scores["id"].to_pylist())
    metadata |= {"provenance": job.origin, "separation": separation(scores, again, texts)}
    write_table(files.out, schemas.STABILITY, columns, metadata=metadata)
