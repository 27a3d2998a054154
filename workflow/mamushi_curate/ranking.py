"""``mamushi.rank``: which texts of a table in memory to remove, by the stages of `mamushi rank`, in
a folder that is there as long as the ranking is."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from mamushi.config import grid
from mamushi.config.complete import complete
from mamushi.errors import UserError
from mamushi.evidence import advice
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.lm import device
from mamushi.registry import plugin
from mamushi.running.machine import command_environment
from mamushi_curate.commands import init
from mamushi_curate.frames import IN_FRAME, Frame, texts_of, values_of, write_texts
from mamushi_curate.pipeline import Pipeline
from mamushi_curate.removal import read_removal
from mamushi_curate.tables.readers import rows_of
from mamushi_curate.tables.rows import needed_columns
from mamushi_extras.unlabelled.corpus import NO_GOLD
from mamushi_extras.unlabelled.like import KEYS
from mamushi_extras.unlabelled.schemas import POSTERIOR

FILE = "frame.parquet"


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
    judge: str | Path | None = None,
    budgets: float | Sequence[float] = (),
    seed: int = 0,
    quick: bool = False,
) -> Ranking:
    """Rank the forget texts of a table, and list which to remove at each budget.

    ``frame`` is a table of pandas, pyarrow or Polars, or a Dataset of `datasets`. ``text``, ``id``
    (without it, row numbers from 1) and ``group`` name columns; ``part`` says what of a
    conversation is ranked. ``forget`` marks the unwanted texts: the name of a column of 0 and 1 or
    booleans, an array of them, or an expression such as ``toxic >= 0.5``; ``retain`` in the same
    way those to keep (default: all others). ``embeddings`` are an array (n, width) or the name of a
    column of vectors, ``model`` is a folder or id on the hub of the model that was trained on the
    texts; without both, their words alone rank. ``selector`` is a name, or settings with its
    ``kind``; ``judge`` is a smaller model that ``cross_entropy`` asks in the place of ``model``;
    ``quick`` does without the refits, which say how certain lists are.

    Where nothing marks the unwanted texts, the frame is a corpus, and all of it is ranked: by
    examples of them, ``like``, or by the hits of ``terms``, each a word or a /regular expression/;
    ``unlike`` are texts that are wanted; ``fair`` names those of the two that were drawn at random.
    ``embeddings`` then has the vectors of these behind the frame's: (n + like + unlike, width).

    Other defaults are those of `mamushi rank`. Raises ``UserError`` for what cannot be ranked.
    """
    if embeddings is not None and model is not None:
        raise UserError("give embeddings or a model, not both")
    source = Frame(frame)
    folder = tempfile.TemporaryDirectory(prefix="mamushi-")
    root = Path(folder.name)
    options: dict[str, Any] = {}
    for name, marking in (("forget", forget), ("retain", retain)):
        options[name] = None if marking is None else source.expression(marking, name)
    every = {"like": like, "unlike": unlike, "terms": terms}
    texts = {name: texts_of(values, text, name) for name, values in every.items()}
    options |= {name: write_texts(root, name, of) for name, of in texts.items() if of}
    if embeddings is not None:
        beside = [f"{name}:{number + 1}" for name in KEYS for number in range(len(texts[name]))]
        vectors = source.vectors(embeddings, len(beside))
        names = values_of(source.column(id), f"column {id!r}") if id else range(1, len(source) + 1)
        flat = pa.array(vectors.reshape(-1))
        lists = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        table = pa.table({"id": [*map(str, names), *beside], "vector": lists})
        options["embeddings"] = str(root / "vectors.parquet")
        pq.write_table(table, options["embeddings"])
    # What is configured has to be there.
    (root / FILE).touch()
    options |= {"data": str(root / FILE), "text": text, "part": part, "id": id, "group": group}
    options |= {"like_text": "text" if any(texts.values()) else None, "fair": fair}
    options |= {"model": model and str(model), "judge": judge and str(judge)}
    options |= {"budgets": np.atleast_1d(budgets).tolist() or None}
    settings = selector if isinstance(selector, Mapping) else {}
    kind = settings.get("kind") or selector
    try:
        config = init.configuration({**options, "selectors": kind and [kind]})
        # By default tokens are ranked beside the texts.
        del config["grid"]["selectors"][1:]
        config["grid"]["seeds"] = [seed]
        config["evidence"]["refits"] |= {"whole": 0} if quick else {}
        if settings:
            config.setdefault("selectors", {}).setdefault(kind, {}).update(settings)
        if plugin("selector", config["grid"]["selectors"][0]).unit == "tokens":
            raise UserError("ranks tokens", where="selector", do="name a selector of texts")
        (loader,) = complete(config)["datasets"].values()
        pq.write_table(source.table(needed_columns(loader), others=True), root / FILE)
        return _rank(config, folder)
    except UserError as error:
        # What was given in memory lies in files.
        words = str(error).replace(f"{root}/", "").replace(FILE, IN_FRAME)
        raise UserError(words) from None


def _rank(config: dict[str, Any], folder: Any) -> Ranking:
    """Rank the frame of a configuration in a folder, and return what lies in it then."""
    root, (selector,) = Path(folder.name), config["grid"]["selectors"]
    (cell,) = grid.cells(config["grid"])
    first, likely = Pipeline(complete(config), cell, root), None
    # The seed and the kernels of the rest of the process are left to it.
    settings = torch.random.fork_rng(devices=[]), device.deterministic(strict=False)
    with command_environment(gpu=True), settings[0], settings[1]:
        first.want(paths.EXAMPLES)
        first.make()
        counts = read_json(first.path(paths.DATA_CARD))["counts"]
        pipeline = Pipeline(init.settle_budgets(config, counts), cell, root)
        pipeline.done |= first.done
        pipeline.want_lists()
        pipeline.make()
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
        lists[beta] = RemovalList(ids, [*chain(*copies)], about["verdict"], removed, about)
    schema = POSTERIOR if pipeline.is_corpus else schemas.SCORES
    scores = read_table(pipeline.path(pipeline.ranking_pattern, selector=selector), schema)
    verdict, share = about["judgement"]["ranking"], about.get("share")
    return Ranking(selector, scores, lists, verdict, pipeline, folder, share, likely)


@dataclass(frozen=True)
class RemovalList:
    """What to remove at a budget: ``ids`` of texts (without a column of ids, numbers of rows from
    1), first to go first, and of their ``copies``. ``verdict`` says what to do with it, and why,
    ``table`` has scores and ranks, and ``manifest`` what to expect."""

    ids: list[str]
    copies: list[str]
    verdict: str
    table: pa.Table = field(repr=False)
    manifest: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Ranking:
    """``scores`` of all ranked texts (of a corpus the table ``posterior``), ``lists`` by budget, a
    ``verdict`` on how well the ranking tells the domains apart. Of a corpus ``share`` is that of
    the domain (``estimate``, ``low``, ``high`` at 95%, or a ``reason``), and ``likely`` the budget
    of all texts that are more likely than not of it; None where these are none or all."""

    selector: str
    scores: pa.Table
    lists: Mapping[float, RemovalList]
    verdict: str
    _pipeline: Pipeline = field(repr=False)
    _folder: Any = field(repr=False)
    """Goes with the ranking."""
    share: Mapping[str, Any] | None = None
    likely: float | None = None

    def __repr__(self) -> str:
        return f"Ranking by {self.selector}: {self.verdict}"

    @cached_property
    def advice(self) -> Mapping[str, Any]:
        """Return how much to remove for half of the effect of removing everything, as `mamushi
        advise --removal 0.5 --json` does: shares of the forget texts with their ``span`` and
        ``limit`` in words, or the reason why none is known. Raises ``UserError`` for a corpus."""
        if self.share is not None:
            raise UserError(NO_GOLD, where="advise", do="take the list at `likely`, or a budget")
        self._pipeline.want_advice()
        with command_environment():
            self._pipeline.make()
        frontier, foreseen = advice.read_results(self._pipeline.root)
        rows = advice.advice(frontier, [("removal", 0.5)], foreseen)
        return next(row for row in rows if row["selector"] == self.selector)

    def apply(self, frame: Any, budget: float, *, missing_ids: bool = False) -> Any:
        """Return the frame without the texts of the list at a budget, and without their copies.
        Raises ``UserError`` for another budget than those of ``lists``, and as `mamushi apply`."""
        if budget not in [*self.lists]:
            do = f"there are {', '.join(map(str, self.lists))}; rank with others in budgets"
            raise UserError(f"no list at {budget!r:.60}", where="budget", do=do)
        source, (settings,) = Frame(frame), self._pipeline.config["datasets"].values()
        at = {"selector": self.selector, "beta": paths.beta(budget)}
        removal = read_removal(self._pipeline.path(paths.REMOVAL, **at))
        asked = {"column": settings["id"], **{key: settings[key] for key in ("text", "part")}}
        removal = replace(removal, **asked, missing_ids=missing_ids)
        verdicts = removal.judge(rows_of([source.table(removal.columns)], IN_FRAME))
        stays = np.array([verdict.stays for _, verdict in verdicts], dtype=np.bool_)
        removal.check(IN_FRAME)
        return source.select(stays)
