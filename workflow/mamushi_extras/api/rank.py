"""``mamushi.rank``: which texts of a table in memory to remove, as `mamushi rank` says of a file.

The numbers are those of the workflow to the last bit, because the same functions make them: what a
stage reads from files and writes into others is handed on here.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.commands import advise, init
from mamushi.commands._embedder import BY_WORDS, find_model
from mamushi.config import selectors
from mamushi.config.complete import complete
from mamushi.config.reading import ConfigError
from mamushi.config.sources import unlabelled
from mamushi.data.examples import build_examples
from mamushi.data.labels import labels_of
from mamushi.data.loaders.table import raw_of
from mamushi.data.matching import RowRemoval
from mamushi.data.raw import Raw
from mamushi.data.rows import needed_columns
from mamushi.data.vectors import aligned
from mamushi.errors import UserError
from mamushi.evidence import advice, bootstrap
from mamushi.evidence.calibration import RatioScores, ratio_of
from mamushi.evidence.confounds import text_properties
from mamushi.evidence.frontier import ranking_of
from mamushi.evidence.manifest import Calibrated, Ranked, calibrate_pool, manifest
from mamushi.evidence.predicted import NoPrediction, Proxy, not_foreseen, predictions
from mamushi.evidence.ranking import excerpt, glimpse
from mamushi.evidence.stability import rankings, stability_columns
from mamushi.evidence.verdict import ADVICE_WORDS, separation
from mamushi.io import paths, schemas
from mamushi.io.digests import of_text
from mamushi.io.domains import INFERENCE
from mamushi.lm.tokens import TokenSet
from mamushi.registry import load, plugin
from mamushi.running.threads import as_in_a_command
from mamushi.selection.pool import Pool, pool_of, scored_of, table_of
from mamushi.selection.refits import Refit, make_refits
from mamushi.selection.removals import budget_of, removal_list, share_of, text_digests
from mamushi.selection.word_vectors import components_of_words
from mamushi.stages.analyses import frontier_budgets
from mamushi_extras.api.embedding import DATASET, MODEL, embed_texts
from mamushi_extras.api.frames import (
    IN_FRAME,
    Frame,
    examples_of,
    in_files,
    mark,
    names_of,
    vectors,
)
from mamushi_extras.pages.ranking_page import render
from mamushi_extras.unlabelled.corpus import NO_GOLD, corpus_of, manifest_of_corpus, share_text
from mamushi_extras.unlabelled.like import KEYS, CorpusRows, marked, with_examples


def rank(
    frame: Any,
    *,
    text: str,
    part: str = "whole",
    forget: Any = None,
    retain: Any = None,
    like: Any = (),
    unlike: Any = (),
    fair: Sequence[str] = (),
    terms: Sequence[str] = (),
    id: str | None = None,
    group: str | None = None,
    embeddings: Any = None,
    model: str | Path | None = None,
    selector: str | Mapping[str, Any] | None = None,
    budgets: float | Sequence[float] = (),
    seed: int = 0,
    quick: bool = False,
) -> Ranking:
    """Rank the forget texts of a table, and list which to remove at each budget.

    ``frame`` is a table of pandas, pyarrow or Polars, a Dataset of `datasets`, or a dict of
    columns. ``text``, ``id`` (without it, row numbers from 1) and ``group`` name columns;
    ``part`` says what of a conversation is ranked, as `mamushi rank --part`.
    ``forget`` marks the unwanted texts: the name of a column of 0 and 1 or booleans, an array of
    them, an expression such as ``toxic >= 0.5``, or ``{"column": "topic", "values": ["guns"]}``;
    ``retain`` in the same way those to keep (default: all others). Either ``embeddings``, an array
    (n, width) or the name of a column of vectors, or ``model``, a folder or id on the hub
    of the model that was trained on the texts; without both, their words alone rank.
    ``selector`` is a name, or settings with its ``kind`` (default: stack; mamushi is the paper's,
    influence takes a model); ``budgets`` are shares of the forget texts (default: 0.1, 0.2, 0.3).
    ``quick`` does without the refits, which say how certain lists are.

    Where nothing marks the unwanted texts, the frame is a corpus, and all of it is ranked: by
    examples of them, ``like``, or by the hits of ``terms``, each a word or a /regular expression/;
    ``unlike`` are texts that are wanted; ``fair`` has the names of which of the two were drawn at
    random, without which shares and recall have no interval. ``embeddings`` then has the vectors of
    these behind those of the frame: (n + like + unlike, width). The default selector is that of
    `mamushi rank --like`, and the default ``budgets`` are 0.01, 0.05 and 0.1 of the corpus.

    Raises ``UserError``, in one line and before anything is computed, for what cannot be ranked.
    """
    source = Frame(frame)
    marks: dict[str, list[bool]] = {}
    table: dict[str, Any] = {"kind": "table", "path": None, "text": text, "part": part}
    table |= {"id": id, "group": group}
    for domain, marking in (("forget", forget), ("retain", retain)):
        if marking is not None:
            table[domain], marked_rows = mark(source, marking, domain)
            marks |= {} if marked_rows is None else {table[domain]["column"]: marked_rows}
    beside = examples_of(forget is not None, text, {"like": like, "unlike": unlike, "terms": terms})
    n_beside = sum(len(beside.get(name, ())) for name in KEYS)
    embedded = None if embeddings is None else vectors(source, embeddings, n_beside)
    with tempfile.TemporaryDirectory(prefix="mamushi-") as folder:
        files = in_files(Path(folder), "text", beside)
        drawn = {"fair": [*fair]} if len(fair) else {}
        table["forget"] = table.get("forget", {**files, "text": "text", **drawn})
        config = _config(table, model, embedded is not None, selector, seed, quick)
        try:
            cell = _read(source, marks, embedded, config, np.atleast_1d(budgets).tolist())
        except UserError as error:
            # What was given in memory lies in files of its name.
            where = error.where and str(error.where).replace(f"{folder}/", "")
            raise UserError(error.problem, where=where, do=error.do) from None
    with as_in_a_command():
        return cell.ranking(*config["grid"]["selectors"])


def _read(
    source: Frame,
    marks: Mapping[str, list[bool]],
    embedded: NDArray[np.float32] | None,
    config: dict[str, Any],
    budgets: Sequence[float],
) -> _Cell:
    """Return what is ranked, with its embeddings. Raises ``UserError`` as ``rank``."""
    try:
        full = complete(config)
        settings = full["datasets"][DATASET]
        columns = source.read(needed_columns(settings), marks)
        texts = columns.columns.get(settings["text"], ())
        if None in texts:
            place = columns.places[texts.index(None)]
            raise UserError("there is no text", where=place, do="drop the row, or fill it with ''")
        raw = raw_of(columns, settings)
        names = names_of(columns, settings["id"])
        if unlabelled(settings):
            raw = marked(with_examples(raw, settings), settings)
            names = [*raw.ids]
        init.refuse_numbers(raw.texts, settings)
        splitting = settings["sections"], settings["limit"], full["data"]
        examples, duplicates, counts = build_examples(raw, *splitting)
        full = init.settle_budgets(config, DATASET, budgets, counts)
    except ConfigError as error:
        raise UserError(error.lines[0]) from None
    if embedded is None and "embeddings" in full["models"][MODEL]:
        width = full["models"][MODEL]["embeddings"]["words"]
        pool = pool_of(examples, components_of_words(examples["text"].to_pylist(), width))
        tokens = None
    elif embedded is None:
        with as_in_a_command(gpu=True):
            pool, tokens = embed_texts(full, examples)
    else:
        left_out = counts["read"] - len(examples) - len(duplicates)
        copies = duplicates["id"].to_pylist()
        ranked = examples["id"].to_pylist()
        vectors = aligned(names, [embedded], ranked, copies, left_out, "embeddings")
        pool, tokens = pool_of(examples, vectors), None
    seed = config["grid"]["seeds"][0]
    return _Cell(full, seed, raw, examples, duplicates, pool, tokens, len(source))


def _config(
    table: Mapping[str, Any],
    model: str | Path | None,
    embedded: bool,
    selector: str | Mapping[str, Any] | None,
    seed: int,
    quick: bool,
) -> dict[str, Any]:
    """Return the configuration that `mamushi init` would write. Raises ``UserError`` for a model
    that is none, and for a selector of tokens."""
    if embedded and model is not None:
        raise UserError("both embeddings and a model", do="give one of them")
    if selector is None and "terms" in table["forget"]:
        ((kind, settings),) = init.HITS.items()
        selector = {"kind": kind, **settings}
    selector = selector or (init.EXAMPLES if unlabelled(table) else init.LABELLED)
    own_settings = {} if isinstance(selector, str) else dict(selector)
    name = str(own_settings.get("kind")) if own_settings else str(selector)
    if plugin("selector", name).unit == "tokens":
        raise UserError(f"{name} ranks tokens", where="selector", do="name a selector of texts")
    embedder: dict[str, Any] = {"embeddings": {} if embedded else dict(BY_WORDS)}
    if model is not None:
        embedder = {**find_model(str(model)), "contaminated": True}
    return {
        "grid": {"datasets": [DATASET], "models": [MODEL], "seeds": [seed], "selectors": [name]},
        "evidence": {"refits": {"whole": 0} if quick else {}},
        "selectors": {name: own_settings} if own_settings else {},
        "datasets": {DATASET: {**table, "sections": {"inference": 1.0}}},
        "models": {MODEL: embedder},
    }


@dataclass(frozen=True)
class RemovalList:
    """What to remove at a budget: ``ids`` of texts (without a column of ids, numbers of rows from
    1), first to go first, and of their ``copies``. ``act`` says what to do with it, in one word of
    ``judgement.ADVICE_WORDS``, and ``verdict`` why."""

    budget: float
    ids: list[str]
    copies: list[str]
    act: str
    verdict: str
    table: pa.Table = field(repr=False)
    """The texts with their scores and ranks."""
    manifest: Mapping[str, Any] = field(repr=False)
    """What to expect of the removal."""


@dataclass(frozen=True)
class Advice:
    """How much to remove for a target: so many ``texts``, the share ``budget`` from ``low`` to
    ``high``; None with a ``reason`` where nothing can be said. ``by`` is ``retraining`` where that
    is what retraining is predicted to need, by the tokens of a model, else ``frontier``."""

    target: str
    value: float
    by: str
    texts: int | None
    budget: float | None
    low: float | None
    high: float | None
    reason: str | None

    def __str__(self) -> str:
        target = advise.target_text({"target": self.target, "value": self.value})
        if self.texts is None or self.budget is None:
            return f"{target}: no budget, because {self.reason}"
        span = f"{self.budget:.0%} [{self.low:.0%}, {self.high:.0%}]"
        return f"{target}: remove {self.texts:,} texts, {span} of the forget texts"


@dataclass(frozen=True, eq=False)
class Ranking:
    """The forget texts of a frame, or a corpus, in the order in which to remove them, and what that
    is worth.

    ``scores`` is the table of all ranked texts (of a corpus the table ``posterior``), ``lists`` has
    the lists by budget, and ``verdict`` says how well the ranking tells the domains apart. Of a
    corpus ``share`` says what share of it is of the domain (``estimate``, ``low``, ``high`` at 95%,
    and a ``reason`` where an end is not known), and ``likely`` is the budget of all texts that are
    more likely than not of the domain; None where these are none or all.
    """

    selector: str
    scores: pa.Table
    lists: Mapping[float, RemovalList]
    verdict: str
    _cell: _Cell = field(repr=False)
    share: Mapping[str, Any] | None = None
    likely: float | None = None

    def __repr__(self) -> str:
        return f"Ranking by {self.selector}: {self.verdict}"

    @cached_property
    def advice(self) -> Advice:
        """Return how much to remove for half of what the removal of everything does."""
        return self.advise(removal=0.5)

    def advise(self, **target: float) -> Advice:
        """Return how much to remove for one target: ``removal``, the share of what removing all
        does; or ``preservation``, the harm that the retain domain may keep, in nats per text.
        Raises ``UserError`` for another one, and for a corpus."""
        if self.share is not None:
            raise UserError(NO_GOLD, where="advise", do="take the list at `likely`, or a budget")
        if len(target) != 1:
            do = f"give one of {', '.join(advice.TARGETS)}"
            raise UserError(f"{len(target)} targets", where="advise", do=do)
        cell, whole = self._cell, self.scores["rank"].drop_null()
        (row,) = advice.advice(cell.frontier, target.items(), cell.predicted(self.selector))
        is_predicted = row["retraining"] is not None
        budget, low, high = (
            row[f"{'retraining' if is_predicted else 'budget'}{end}"]
            for end in ("", "_low", "_high")
        )
        texts = None if budget is None else advice.units_at(budget, len(whole))
        by, reason = ("retraining", None) if is_predicted else ("frontier", row["reason"])
        return Advice(row["target"], row["value"], by, texts, budget, low, high, reason)

    def apply(self, frame: Any, budget: float, *, missing_ids: bool = False) -> Any:
        """Return the frame without the texts of the list at a budget, and without their copies.

        Raises ``UserError`` for another budget than those of ``lists``, where a row that would go
        is not the text that was ranked, and where the frame lacks listed ids, unless these may be
        missing (``missing_ids``).
        """
        if not isinstance(budget, int | float) or budget not in self.lists:
            do = f"there are {', '.join(map(str, self.lists))}; rank with others in budgets"
            raise UserError(f"no list at {budget!r:.60}", where="budget", do=do)
        source, ranked = Frame(frame), self._cell
        settings = ranked.config["datasets"][DATASET]
        if settings["id"] is None and len(source) != ranked.rows:
            problem = f"has {len(source):,} rows, and {ranked.rows:,} were ranked, by their numbers"
            raise UserError(
                problem, where=IN_FRAME, do="give the frame that was ranked, or rank with id"
            )
        ids = {*self.lists[budget].ids, *self.lists[budget].copies}
        texts = {name: of_text(ranked.texts[name]) for name in ids}
        columns, part = (settings["id"], settings["text"]), settings["part"]
        removal = RowRemoval(ids, *columns, part, texts=texts, missing_ids=missing_ids)
        removal.needs_same = True
        read = source.read([*dict.fromkeys(removal.columns)], {})
        rows = zip(read.places, *read.columns.values(), strict=True)
        stays = [
            removal.of(dict(zip(read.columns, row, strict=True)), place) is not None
            for place, *row in rows
        ]
        removal.check(IN_FRAME)
        return source.select(np.array(stays))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdict, the lists, and texts with profanity masked."""
        table = self.scores.filter(self.scores["rank"].is_valid()).sort_by("rank")
        last = self.lists[max(self.lists)]
        rows = table.take([*chain(*glimpse(len(last.ids), len(table)))]).to_pylist()
        for row in rows:
            row["text"] = excerpt(self._cell.texts[row["id"]])
            row["stays"] = row["rank"] > len(last.ids)
        share = self.share and f"{share_text(self.share)} of the corpus is of the domain"
        values: dict[str, Any] = {"ranking": self, "total": len(table), "shown": rows}
        values |= {"share": share, "of": "texts of the corpus" if share else "forget texts"}
        return render("cell", words=ADVICE_WORDS, **values)


@dataclass(frozen=True, eq=False)
class _Cell:
    """A frame as one model embeds it, and what is computed of it, each once."""

    config: Mapping[str, Any]
    seed: int
    raw: Raw
    examples: pa.Table
    duplicates: pa.Table
    pool: Pool
    tokens: TokenSet | None
    rows: int
    by_selector: dict[str, tuple[pa.Table, list[Refit]]] = field(default_factory=dict)

    @property
    def named(self) -> dict[str, Any]:
        """Return what tables call it."""
        return {"dataset": DATASET, "model": MODEL, "seed": self.seed}

    @cached_property
    def texts(self) -> dict[str, str]:
        """Return the texts by id, as they came."""
        return dict(zip(self.raw.ids, self.raw.texts, strict=True))

    def scored(self, selector: str) -> tuple[pa.Table, list[Refit]]:
        """Return the table ``scores`` of a selector, and its refits, if there are any."""
        if selector not in self.by_selector:
            kind = selectors.kind_of(self.config, selector).name
            settings = selectors.selector_settings(self.config, selector)
            of, number = selectors.derives(self.config, selector), self.config["evidence"]["refits"]
            table, refitted = self.scored(of) if of else (None, [])
            pool = replace(self.pool, base=None if table is None else scored_of(table))
            scored = load("selector", kind).score(pool, settings, self.seed)
            if number["whole"] and selectors.is_refitted(self.config, selector):
                options = (settings, self.seed, number["whole"], number["halves"])
                refitted = make_refits(self.pool, kind, *options, refitted)
            self.by_selector[selector] = table_of(self.pool, scored), refitted
        return self.by_selector[selector]

    @cached_property
    def ratio(self) -> tuple[RatioScores, Sequence[NDArray[np.float64]]]:
        """Return what the ratio is estimated from."""
        name = self.config["removal"]["ratio"]
        return ratio_of(*self.scored(name), f"selectors.{name}")

    @cached_property
    def calibrated(self) -> Calibrated:
        """Return the estimated ratio of every text."""
        name, evidence = self.config["removal"]["ratio"], self.config["evidence"]
        options = (self.ratio, self.pool, name, evidence["resamples"], self.seed)
        return calibrate_pool(
            self.scored(name)[0], *options, refitted=evidence["refits"]["whole"] > 0
        )[0]

    def ranking(self, selector: str) -> Ranking:
        """Return the ranking of a selector with its lists."""
        if isinstance(self.raw, CorpusRows):
            return self.of_corpus(selector)
        scores, refitted = self.scored(selector)
        budgets = self.config["grid"]["budgets"]
        _, stable = stability_columns(*rankings(scores, refitted), budgets)
        texts = text_properties(labels_of(self.examples), self.duplicates, scores["id"].to_pylist())
        stable["separation"] = separation(scores, refitted, texts)
        compared = selectors.comparison(self.config, selector)
        by_chance = selectors.by_chance(self.config)[selector]
        lists = {}
        for beta in budgets:
            k, top = budget_of(beta, scores), Ranked.at(beta, selector, stable, compared, by_chance)
            expected = manifest(scores, self.calibrated, self.duplicates, k, top, {"beta": beta})
            lists[beta] = self.listed(scores, beta, expected)
        return Ranking(selector, scores, lists, expected["judgement"]["ranking"], self)

    def of_corpus(self, selector: str) -> Ranking:
        """Return the ranking of a corpus that nobody labelled, by its examples."""
        scores, refitted = self.scored(selector)
        inference = self.examples.filter(pc.equal(self.examples["section"], INFERENCE))
        marks = self.config["datasets"][DATASET]["forget"]
        fair = marks.get("fair", [])
        of = corpus_of(scores, inference, hits="terms" in marks, fair=fair)
        table, budgets, likely = of.table(scores), [*self.config["grid"]["budgets"]], None
        with contextlib.suppress(UserError):
            likely = float(share_of(of.likely, len(of.order)))
            budgets = sorted({*budgets, likely})
        _, stable = stability_columns(*rankings(table, refitted), budgets)
        texts = text_properties(labels_of(self.examples), self.duplicates, scores["id"].to_pylist())
        separates = separation(scores, refitted, texts)
        lists = {}
        for beta in budgets:
            listed = {"rankings": stable["rankings"], **stable["budgets"][paths.beta(beta)]}
            evidence = separates, listed, selectors.comparison(self.config, selector)
            expected = manifest_of_corpus(of, table, self.duplicates, beta, *evidence) | {
                "beta": beta
            }
            lists[beta] = self.listed(table, beta, expected)
        verdict = expected["judgement"]["ranking"]
        return Ranking(selector, table, lists, verdict, self, expected["share"], likely)

    def listed(self, scores: pa.Table, beta: float, expected: Mapping[str, Any]) -> RemovalList:
        """Return the list at a budget, of which ``expected`` is the manifest."""
        table = removal_list(scores, self.duplicates, budget_of(beta, scores))
        texts = pa.array(text_digests([self.examples], table["id"].to_pylist()), pa.string())
        table = table.append_column("text_sha256", texts).select(schemas.REMOVALS.schema.names)
        ids, copies = (table[name].to_pylist() for name in ("id", "copies"))
        act, verdict = expected["judgement"]["act"], expected["verdict"]
        return RemovalList(beta, ids, [*chain(*copies)], act, verdict, table, expected)

    @cached_property
    def frontier(self) -> list[dict[str, Any]]:
        """Return the rows of the table ``frontier``, as the advisor reads them."""
        ranks = {
            name: ranking_of(self.scored(name)[0], by_chance)
            for name, by_chance in selectors.by_chance(self.config).items()
        }
        scores = replace(self.ratio[0], groups=self.calibrated.groups)
        options = frontier_budgets(self.config), self.config["evidence"]["resamples"]
        with as_in_a_command():
            rows, relative = bootstrap.frontier_with_gain(scores, ranks, *options, self.seed)
        rows = [{**self.named, **row} for row in rows]
        return advice.with_relative(rows, relative, self.calibrated.withheld)

    def predicted(self, selector: str) -> list[dict[str, Any]]:
        """Return the rows of the table ``predicted``; none without the tokens of a model."""
        if self.tokens is None or selector in selectors.token_rankings(self.config):
            return []
        betas = sorted({0.0, 1.0, *frontier_budgets(self.config)})
        with contextlib.suppress(NoPrediction):
            proxy = Proxy(self.tokens, None, self.pool.groups)
            ranking = self.scored(selector)[0]
            foreseen = predictions(proxy, ranking, betas)
            if not selectors.kind_of(self.config, selector).foreseen:
                foreseen = not_foreseen(proxy, ranking)
            return [{**self.named, "selector": selector, **row} for row in foreseen]
        return []
