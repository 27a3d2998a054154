"""Read the ranking of a forget set, and show its two ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.errors import UserError, located
from mamushi.evaluation.masking import mask
from mamushi.evidence.stability import rankings
from mamushi.io import digests, paths, schemas
from mamushi.io.domains import INFERENCE
from mamushi.io.files import read_json
from mamushi.io.names import label
from mamushi.io.rst import list_table
from mamushi.io.tables import read_groups, read_metadata, read_table
from mamushi.selection.refits import read_refits

_ENDS = 10
EXCERPT = 300
FIRST, AROUND = 5, 2
"""Texts that go first, and on either side of the end of a list, where few are shown."""


@dataclass(frozen=True)
class SelectorRanking:
    """A selector's ranking of n1 forget examples, first to go first: ``ids`` and ``scores`` (n1,).

    ``refit_ranks`` (R, n1) are their ranks in the refits, ``verdict`` says in words what the
    ranking is worth, and ``compared`` whether it is there for comparison alone.
    """

    ids: list[str]
    scores: NDArray[np.float64]
    refit_ranks: NDArray[np.int64] | None = None
    verdict: str = ""
    compared: bool = False


def ranking_at(root: Path, names: Mapping[str, str | int]) -> Path:
    """Return where the ranking of a selector lies: that of a corpus, or of forget texts."""
    corpus = paths.under(root, paths.POSTERIOR, **names)
    return corpus if corpus.is_file() else paths.under(root, paths.SCORES, **names)


def is_earlier(root: Path, names: Mapping[str, str | int], inputs: Mapping[str, Any]) -> bool:
    """Return whether a list, made from files with the digests ``inputs``, is of an earlier ranking
    than its selector's present one. Budgets that were left out of the configuration keep such
    lists."""
    ranking, was = ranking_at(root, names), inputs.get("posterior", inputs.get("scores"))
    if was is None or not ranking.is_file() or digests.of(ranking) == was:
        return False
    # Of one that is damaged nothing follows for the list: it is said by reading it.
    read_metadata(ranking)
    return True


def read_manifests(
    root: Path, pattern: str, **cell: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Read the manifests at a pattern in a results folder, by their paths, each with its
    ``selector`` and the ``path`` of its list; apart from them those of an earlier ranking."""
    names = {**dict.fromkeys(("dataset", "model", "seed", "selector", "beta"), "*"), **cell}
    current, earlier = list[dict[str, Any]](), list[dict[str, Any]]()
    for path in sorted(root.glob(str(paths.under("", pattern, **names)))):
        wildcards, manifest = paths.wildcards(pattern, path) or {}, read_json(path)
        manifest |= {"selector": wildcards["selector"], "path": path.with_suffix(".parquet")}
        inputs = manifest.get("provenance", {}).get("inputs", {})
        wildcards.pop("root")
        (earlier if is_earlier(root, wildcards, inputs) else current).append(manifest)
    return current, earlier


def read_ranking(
    path: str | Path, refits: str | Path | None = None, **attributes: Any
) -> SelectorRanking:
    """Read the ranking in a table ``scores``, and the ranks in its table ``refits``.

    ``attributes`` are further ones of the ``SelectorRanking``.
    """
    table = read_table(path, schemas.SCORES)
    order = np.argsort(table["rank"].drop_null().to_numpy())
    ids, ranks = rankings(table, read_refits(refits))
    scores = np.asarray(table["score"].filter(table["rank"].is_valid()), dtype=np.float64)
    again = ranks[1:, order] if refits else None
    return SelectorRanking([ids[place] for place in order], scores[order], again, **attributes)


def read_texts_of(examples: str | Path, ids: Sequence[str]) -> list[str]:
    """Read the texts of ``ids``, in their order, as they are. Raises ``KeyError`` for an id that
    the table ``examples`` lacks."""
    listed = pa.array(ids, pa.string())
    text_of: dict[str, str] = {}
    for group in read_groups(examples, schemas.EXAMPLES, ["id", "text"]):
        part = group.filter(pc.is_in(group["id"], value_set=listed))
        text_of |= zip(part["id"].to_pylist(), part["text"].to_pylist(), strict=True)
    with located(f"{examples} has no example"):
        return [text_of[name] for name in ids]


def cut(root: Path, cell: Mapping[str, str | int]) -> str | None:
    """Return in one sentence how many texts of a cell a model read in part, and what to do; None
    where it read all, or no tokens are there."""
    tokens, examples, vectors = (
        paths.under(root, pattern, **cell)
        for pattern in (paths.TOKENS, paths.EXAMPLES, paths.EMBEDDINGS)
    )
    if not tokens.is_file():
        return None
    try:
        about = read_metadata(tokens)
        stored = int(about.get("positions") or about["max_length"])
        most = min(int(read_metadata(vectors)["settings"]["embedding"]["max_length"]), stored)
        section = read_table(examples, schemas.EXAMPLES, ["section"])["section"]
        groups = read_groups(tokens, schemas.TOKENS, ["tokens"])
        lengths = [pc.list_value_length(group["tokens"]).to_numpy() for group in groups]
    except (UserError, LookupError, TypeError):
        # Of a damaged file, or one of another version, nothing is known.
        return None
    ranked = np.concatenate(lengths)[np.asarray(pc.equal(section, INFERENCE))]
    # Where no more tokens are stored, a text of just so many looks like a longer one.
    count = int((ranked > most).sum() if stored > most else (ranked == most).sum())
    if not count:
        return None
    return (
        f"{count:,} of {len(ranked):,} texts were ranked by their first {most} tokens; to read "
        "them whole, give --windows WORDS to mamushi rank or, to a model with more positions, "
        "longer embedding.max_length and tokens.max_length"
    )


def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return ``text`` masked, white space folded, and cut to ``length`` characters.

    It is masked before it is cut, because a piece of a word may not be known for what it is.
    """
    folded = " ".join(mask(text).split())
    return folded if len(folded) <= length else folded[: length - 1].rstrip() + "…"


def glimpse(
    removed: int, total: int, first: int = FIRST, around: int = AROUND
) -> tuple[list[int], list[int]]:
    """Return the positions of the texts to show: those that go ``first``, and those ``around`` the
    end of a list of ``removed`` texts that are not among them.

    >>> glimpse(10, 20, 3, 2)
    ([0, 1, 2], [8, 9, 10, 11])
    """
    top = [*range(min(first, total))]
    return top, [p for p in range(removed - around, removed + around) if len(top) <= p < total]


def end_rows(root: Path, run: Mapping[str, Any], places: int = _ENDS) -> list[dict[str, Any]]:
    """Return rows of the table ``qualitative_ranking``, the first and the last ``places`` of the
    ranking of a ``run`` (the cell and the selector). No example is at both ends; place 1 of the
    bottom is the last rank."""
    ranking = read_ranking(paths.under(root, paths.SCORES, **run))
    n = len(ranking.ids)
    top = min(places, (n + 1) // 2)
    ends = [("top", p, p + 1) for p in range(top)]
    ends += [("bottom", n - 1 - p, p + 1) for p in range(min(places, n - top))]
    ids = [ranking.ids[position] for _, position, _ in ends]
    texts = read_texts_of(paths.under(root, paths.EXAMPLES, **run), ids)
    return [
        {
            **{**run, "end": end, "place": place, "rank": position + 1},
            "score": float(ranking.scores[position]),
            **{"id": ranking.ids[position], "text": excerpt(text)},
        }
        for (end, position, place), text in zip(ends, texts, strict=True)
    ]


def printed_ranking(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows of the table ``qualitative_ranking`` as one table per dataset and model, in
    reStructuredText (paper, Table "Ranked Jigsaw Forget Samples")."""
    tables: dict[str, list[tuple[str, str, str]]] = {}
    for row in rows:
        title = ", ".join(label(row[name]) for name in ("dataset", "model", "selector"))
        cells = (f"{row['end']} {row['place']}", f"{row['score']:.3f}", row["text"])
        tables.setdefault(title, []).append(cells)
    head = ("Rank", "Score", "Sample excerpt")
    return "\n".join(list_table(title, head, cells) for title, cells in tables.items())
