"""``mamushi.rank``: which texts of a table in memory to remove, by the stages of `mamushi rank`, in
a folder that is there as long as the ranking is."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.commands import advise
from mamushi.config.complete import complete
from mamushi.errors import UserError
from mamushi.evidence import advice
from mamushi.evidence.ranking import excerpt, glimpse, read_texts_of
from mamushi.evidence.verdict import ADVICE_WORDS
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.lm import device
from mamushi.registry import plugin
from mamushi.running.machine import as_in_a_command
from mamushi_curate.commands import init
from mamushi_curate.frames import IN_FRAME, Frame, in_files, mark, texts_of, vectors
from mamushi_curate.listed import read_list
from mamushi_curate.pipeline import Pipeline
from mamushi_curate.tables.rows import needed_columns
from mamushi_extras.pages.ranking_page import render
from mamushi_extras.unlabelled.corpus import NO_GOLD, share_text
from mamushi_extras.unlabelled.like import KEYS
from mamushi_extras.unlabelled.schemas import POSTERIOR

DATASET, MODEL = "frame", "model"
"""What the configuration calls them."""
FILE, HALF = "frame.parquet", 0.5


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
    folder = tempfile.TemporaryDirectory(prefix="mamushi-")
    root = Path(folder.name)
    table: dict[str, Any] = {"kind": "table", "path": None, "text": text, "part": part}
    table |= {"id": id, "group": group}
    for domain, marking in (("forget", forget), ("retain", retain)):
        if marking is not None:
            table[domain], marked_rows = mark(source, marking, domain)
            marks |= {} if marked_rows is None else {table[domain]["column"]: marked_rows}
    every = {"like": like, "unlike": unlike, "terms": terms}
    texts = {name: texts_of(values, text, name) for name, values in every.items()}
    beside = {name: values for name, values in texts.items() if values}
    more: dict[str, Any] = {**in_files(root, "text", beside), "text": "text"} if beside else {}
    more |= {"fair": [*fair]} if len(fair) else {}
    table["forget"] = {**table.get("forget", {}), **more}
    counts = {name: len(beside.get(name, ())) for name in KEYS}
    embedded = None
    if embeddings is not None:
        embedded = vectors(source, embeddings, sum(counts.values()))
    config = _config(table, model, embedded is not None, selector, seed, quick)
    try:
        needed = needed_columns(complete(config)["datasets"][DATASET])
        frame_table = source.table(needed, marks)
        pq.write_table(frame_table, root / FILE)
        config["datasets"][DATASET]["path"] = str(root / FILE)
        if embedded is not None:
            names = frame_table[id] if id else range(1, len(source) + 1)
            ids = [*map(str, names), *(f"{of}:{n + 1}" for of in KEYS for n in range(counts[of]))]
            flat = pa.array(embedded.reshape(-1))
            lists = pa.FixedSizeListArray.from_arrays(flat, embedded.shape[1])
            path = root / "vectors.parquet"
            pq.write_table(pa.table({"id": ids, "vector": lists}), path)
            config["models"][MODEL]["embeddings"]["path"] = str(path)
        return _rank(config, np.atleast_1d(budgets).tolist(), folder, len(source))
    except UserError as error:
        # What was given in memory lies in files.
        said = (error.problem, error.where, error.do)
        words = [str(word or "").replace(f"{root}/", "").replace(FILE, IN_FRAME) for word in said]
        raise UserError(words[0], where=words[1] or None, do=words[2] or None) from None


def _rank(config: dict[str, Any], budgets: Sequence[float], folder: Any, rows: int) -> Ranking:
    """Rank a frame of so many ``rows`` in a folder, and return what lies in it then."""
    root, selector = Path(folder.name), config["grid"]["selectors"][0]
    cell = {"dataset": DATASET, "model": MODEL, "seed": config["grid"]["seeds"][0]}
    first, likely, share = Pipeline(complete(config), cell, root), None, None
    with as_in_a_command(gpu=True), device.restore_settings():
        first.make(first.make_examples)
        texts = read_table(first.path(paths.EXAMPLES), schemas.EXAMPLES, ["text"])["text"]
        init.refuse_numbers(texts.to_pylist(), first.config["datasets"][DATASET])
        counts = read_json(first.path(paths.DATA_CARD))["counts"]
        pipeline = Pipeline(init.settle_budgets(config, DATASET, budgets, counts), cell, root)
        pipeline.done |= first.done
        pipeline.make(pipeline.make_lists)
        betas = {*pipeline.config["grid"]["budgets"]}
        if pipeline.is_corpus:
            with suppress(UserError):
                likely = float(pipeline.make_likely_list(selector))
                betas.add(likely)
    lists = {}
    for beta in sorted(betas):
        at = {"selector": selector, "beta": paths.beta(beta)}
        about = read_json(pipeline.path(paths.MANIFEST, **at))
        removed = read_table(pipeline.path(paths.REMOVAL, **at), schemas.REMOVALS)
        ids, copies = (removed[name].to_pylist() for name in ("id", "copies"))
        act, verdict = about["judgement"]["act"], about["verdict"]
        lists[beta] = RemovalList(beta, ids, [*chain(*copies)], act, verdict, removed, about)
        share = about.get("share")
    schema = POSTERIOR if pipeline.is_corpus else schemas.SCORES
    scores = read_table(pipeline.path(pipeline.ranking_pattern, selector=selector), schema)
    verdict = about["judgement"]["ranking"]
    return Ranking(selector, scores, lists, verdict, pipeline, folder, rows, share, likely)


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
    if selector is None:
        ((name, usual),) = init.usual_selectors(table, False).items()
        settings = usual or {}
    else:
        settings = {} if isinstance(selector, str) else dict(selector)
        name = str(settings.get("kind") or selector)
    if plugin("selector", name).unit == "tokens":
        raise UserError(f"{name} ranks tokens", where="selector", do="name a selector of texts")
    embedder: dict[str, Any] = {"embeddings": {} if embedded else dict(init.BY_WORDS)}
    if model is not None:
        embedder = {**init.find_model(str(model)), "contaminated": True}
    return {
        "grid": {"datasets": [DATASET], "models": [MODEL], "seeds": [seed], "selectors": [name]},
        "evidence": {"refits": {"whole": 0} if quick else {}},
        "selectors": {name: settings} if settings else {},
        "datasets": {DATASET: {**table, "sections": {"inference": 1.0}}},
        "models": {MODEL: embedder},
    }


@dataclass(frozen=True)
class RemovalList:
    """What to remove at a budget: ``ids`` of texts (without a column of ids, numbers of rows from
    1), first to go first, and of their ``copies``. ``act`` says what to do with it, in one word of
    ``verdict.ADVICE_WORDS``, and ``verdict`` why."""

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
    """How much to remove for half of what the removal of everything does: so many ``texts``, the
    share ``budget`` from ``low`` to ``high``; None with a ``reason`` where nothing can be said.
    ``by`` is ``retraining`` or ``frontier``: what predicts it."""

    by: str
    texts: int | None
    budget: float | None
    low: float | None
    high: float | None
    reason: str | None

    def __str__(self) -> str:
        target = advise.target_text({"target": "removal", "value": HALF})
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
    _pipeline: Pipeline = field(repr=False)
    _folder: Any = field(repr=False)
    """Goes with the ranking."""
    _rows: int
    share: Mapping[str, Any] | None = None
    likely: float | None = None

    def __repr__(self) -> str:
        return f"Ranking by {self.selector}: {self.verdict}"

    @cached_property
    def advice(self) -> Advice:
        """Return how much to remove for half of what the removal of everything does. Raises
        ``UserError`` for a corpus."""
        if self.share is not None:
            raise UserError(NO_GOLD, where="advise", do="take the list at `likely`, or a budget")
        pipeline, ranks = self._pipeline, self.scores["rank"].drop_null()
        predicts = [pipeline.make_prediction] if pipeline.is_language_model else []
        with as_in_a_command():
            pipeline.make(pipeline.make_frontier, *predicts)
        frontier, foreseen = advice.read_results(pipeline.root)
        rows = advice.advice(frontier, [("removal", HALF)], foreseen)
        (row,) = (row for row in rows if row["selector"] == self.selector)
        of = "budget" if row["retraining"] is None else "retraining"
        budget, low, high = (row[f"{of}{end}"] for end in ("", "_low", "_high"))
        texts = None if budget is None else advice.units_at(budget, len(ranks))
        by, reason = ("frontier", row["reason"]) if of == "budget" else (of, None)
        return Advice(by, texts, budget, low, high, reason)

    def apply(self, frame: Any, budget: float, *, missing_ids: bool = False) -> Any:
        """Return the frame without the texts of the list at a budget, and without their copies.

        Raises ``UserError`` for another budget than those of ``lists``, where a row that would go
        is not the text that was ranked, and where the frame lacks listed ids, unless these may be
        missing (``missing_ids``).
        """
        if not isinstance(budget, int | float) or budget not in self.lists:
            do = f"there are {', '.join(map(str, self.lists))}; rank with others in budgets"
            raise UserError(f"no list at {budget!r:.60}", where="budget", do=do)
        source, settings = Frame(frame), self._pipeline.config["datasets"][DATASET]
        if settings["id"] is None and len(source) != self._rows:
            problem = f"has {len(source):,} rows, and {self._rows:,} were ranked, by their numbers"
            do = "give the frame that was ranked, or rank with id"
            raise UserError(problem, where=IN_FRAME, do=do)
        at = {"selector": self.selector, "beta": paths.beta(budget)}
        listed = read_list(self._pipeline.path(paths.REMOVAL, **at))
        options = {"part": settings["part"], "missing_ids": missing_ids}
        removal = listed.removing(settings["id"], settings["text"], **options)
        ((stays, _),) = removal.decide_rows([source.table(removal.columns)], Path(IN_FRAME))
        removal.check(IN_FRAME)
        return source.select(stays.to_numpy(zero_copy_only=False))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdict, the lists, and texts with profanity masked."""
        table = self.scores.filter(self.scores["rank"].is_valid()).sort_by("rank")
        last = self.lists[max(self.lists)]
        rows = table.take([*chain(*glimpse(len(last.ids), len(table)))]).to_pylist()
        examples = self._pipeline.path(paths.EXAMPLES)
        for row, text in zip(
            rows, read_texts_of(examples, [row["id"] for row in rows]), strict=True
        ):
            row |= {"text": excerpt(text), "stays": row["rank"] > len(last.ids)}
        share = self.share and f"{share_text(self.share)} of the corpus is of the domain"
        values: dict[str, Any] = {"ranking": self, "total": len(table), "shown": rows}
        values |= {"share": share, "of": "texts of the corpus" if share else "forget texts"}
        return render("cell", words=ADVICE_WORDS, **values)
