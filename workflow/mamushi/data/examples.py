"""From a loader's rows to the examples, the duplicates and the card: clean, drop duplicates, split,
limit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.cells import Cells, some, store, strings
from mamushi.data.duplicates import Duplicates
from mamushi.data.raw import Raw, check_unique
from mamushi.data.splitting import limited, split_sections, with_group_sections
from mamushi.errors import UserError, located
from mamushi.io.digests import of_text, versions
from mamushi.io.tables import FORGET, RETAIN, SECTIONS

Objects = NDArray[np.object_]


class _Left:
    """Rows that are still there, and what each step dropped, by domain."""

    def __init__(self, forget: NDArray[np.bool_]) -> None:
        self.forget, self.remaining = forget, np.ones(len(forget), dtype=bool)
        self.steps: list[dict[str, Any]] = []

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.remaining)

    def drop(self, step: str, gone: NDArray[np.int64], then: str = "", do: str = "") -> None:
        """Drop rows; with ``then`` check that both domains are left, else say what to ``do``."""
        self.remaining[gone] = False
        stayed, dropped = _by_domain(self.forget[self.remaining]), _by_domain(self.forget[gone])
        self.steps.append({"step": step, "kept": stayed, "dropped": dropped})
        if then:
            _check_domains(self.forget[self.remaining], then, do)


def build_examples(
    raw: Raw,
    sections: Mapping[str, float],
    limit: Mapping[str, int | None],
    data: Mapping[str, Any],
    *,
    drop_duplicates: bool = True,
) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Return the examples and the duplicates, in the order of the files, and counts of each step.

    ``sections`` are the shares for rows without a ready-made section, ``limit`` the most texts of
    each domain in a section, ``data`` the settings of the configuration's section ``data``. The
    counts are those of the card, with those of ``Raw.counts``. Raises ``UserError`` for duplicated
    ids, texts that are too long or all empty, a domain without texts, in all or in a section, and a
    group in two sections.
    """
    check_unique(raw.ids, raw.places)
    left = _Left(raw.forget)
    left.drop("read", np.empty(0, dtype=np.int64), "in its files")
    texts = _clean(raw, data["max_characters"])
    empty = np.asarray(pc.equal(texts.column, ""))
    left.drop("empty", np.flatnonzero(empty), "after empty texts were dropped")
    rows = left.rows
    copies = Duplicates.none(len(rows))
    if drop_duplicates:
        near, words = data["near_duplicates"], data["shingle_words"]
        copies = raw.copies(rows, some(texts, ~empty), threshold=near, words=words)
    raw = raw.join_copies(rows, copies.roots)
    left.forget = raw.forget
    # Made before sections and limits, which leave rows out of the experiment, not out of the
    # training data from which copies are to be removed.
    duplicates = _copies(raw, texts, rows, copies)
    left.drop("exact_duplicates", rows[copies.exact])
    left.drop("near_duplicates", rows[copies.near])
    crossed = "after duplicates and cross-posts were dropped"
    do = "all of them are in the other domain as well; mark each text once"
    left.drop("cross_posts", rows[copies.crossed], crossed, do)
    del rows, copies
    section = _in_sections(raw, left, sections, limit, data["split_seed"])
    table, forget = _table(raw, left.remaining, texts, section), raw.forget[left.remaining]
    counts = {
        "read": len(raw.ids) + sum(raw.dropped.values()),
        **{"left_out": dict(raw.dropped), "steps": left.steps},
        "sections": {
            name: _by_domain(forget[section == name]) for name in SECTIONS if name in section
        },
        **({} if raw.group is None else {"groups": _groups(table)}),
        **raw.counts(table),
    }
    return table, duplicates, counts


def _in_sections(
    raw: Raw,
    left: _Left,
    sections: Mapping[str, float],
    limit: Mapping[str, int | None],
    seed: int,
) -> Objects:
    """Leave the rows within the limits, and return their sections, (n,)."""
    rows, chosen = left.rows, left.remaining.copy()
    ready, strata = some(raw.section, chosen), some(raw.stratum, chosen)
    group = some(raw.group, chosen) if raw.group else []
    if raw.group:
        ready = with_group_sections(ready, group, some(raw.places, chosen))
    section = split_sections(raw.forget[rows], strata, ready, sections, seed, group)
    within = limited(raw.forget[rows], section, limit, seed)
    left.drop("limit", rows[~within])
    # A section is there when it has a share, or when rows came with it.
    expected = {name for name, share in sections.items() if share > 0 and None in raw.section}
    do = "a group stays together: give 'group' a column that tells texts apart better, or null"
    section = some(section, within)
    for name in SECTIONS:
        if name in expected | set(raw.section):
            forget = raw.forget[left.remaining][section == name]
            _check_domains(forget, f"in section {name!r}", do if raw.group else "")
    return section


def _copies(raw: Raw, texts: Cells, rows: NDArray[np.int64], copies: Duplicates) -> pa.Table:
    """Return the table of duplicates: each with the text that was kept for it, and why it went; but
    for texts that are unlisted. ``copies`` are of ``rows``, (n,)."""
    gone = ~(copies.kept | raw.unlisted(rows))
    reasons = np.select([copies.exact[gone], copies.near[gone]], ["exact", "near"], "cross_post")
    names, chosen = strings(raw.ids), np.zeros(len(raw.ids), dtype=np.bool_)
    chosen[rows[gone]] = True
    originals = pa.array(rows[copies.roots[gone]], mask=copies.crossed[gone])
    columns = {
        **{"id": names.filter(chosen), "kept_id": names.take(originals)},
        "reason": pa.array(reasons.tolist(), pa.string()),
        "text_sha256": pa.array([*map(of_text, some(texts, chosen))], pa.string()),
    }
    return pa.table(columns)


def _clean(raw: Raw, max_characters: int) -> Cells:
    """Return the texts without the white space around them, (n,). Nothing inside a text changes: a
    model was or will be trained on it as it is."""
    (texts,) = store(zip(map(str.strip, raw.texts)))
    lengths = pc.utf8_length(texts.column).to_numpy()
    if (long := np.flatnonzero(lengths > max_characters)).size:
        do = f"allowed are {max_characters:,} (data.max_characters); split or remove it"
        problem = f"a text of {lengths[long[0]]:,} characters"
        raise UserError(problem, where=raw.places[int(long[0])], do=do)
    return texts


def _table(raw: Raw, chosen: NDArray[np.bool_], texts: Cells, section: Objects) -> pa.Table:
    """Return the examples: the ``chosen`` (n,) rows of ``raw``, with their cleaned texts and
    sections."""
    n, ratio = int(chosen.sum()), raw.log_density_ratio
    columns: dict[str, Any] = {
        **{"id": strings(some(raw.ids, chosen)), "text": strings(some(texts, chosen))},
        "domain": pc.if_else(pa.array(raw.forget[chosen]), FORGET, RETAIN),
        "section": pa.array(section, pa.string()),
        "log_density_ratio": pa.nulls(n, pa.float64()) if ratio is None else some(ratio, chosen),
        "group": strings(some(raw.group, chosen) if raw.group else [None] * n),
    }
    for name, label in raw.labels.items():
        cells = some(label, chosen)
        with located(f"label {name}"):
            values = cells.arrow() if isinstance(cells, Cells) else pa.array(cells)
        if isinstance(cells, Cells) and pa.types.is_primitive(values.type):
            # Numbers of 64 bits, as of any other table.
            values = pa.array(values.to_pylist())
        columns[f"label_{name}"] = values.cast(pa.string()) if values.type == pa.null() else values
    return pa.table(columns)


def card(
    settings: Mapping[str, Any], raw: Raw, counts: Mapping[str, Any], examples: str
) -> dict[str, Any]:
    """Return what the ``examples``, a table of that digest, were made from, and how: for
    ``card.json``."""
    return {
        **{"dataset": settings["dataset"], "settings": dict(settings)},
        **{"inputs": dict(raw.sources), "versions": versions()},
        **{"counts": dict(counts), "examples": examples},
    }


def _by_domain(forget: NDArray[np.bool_]) -> dict[str, int]:
    return {FORGET: int(forget.sum()), RETAIN: int((~forget).sum())}


def _groups(table: pa.Table) -> dict[str, Any]:
    """Return the number of groups of two texts or more, the size of the largest, and the texts in
    them."""
    sizes = pc.value_counts(table["group"].drop_null()).field("counts").to_numpy()
    sizes = sizes[sizes > 1]
    largest = int(sizes.max(initial=0))
    return {"groups": len(sizes), "largest": largest, "texts": int(sizes.sum())}


def _check_domains(forget: NDArray[np.bool_], where: str, do: str = "") -> None:
    for domain, count in _by_domain(forget).items():
        if count == 0:
            do = do or "check what marks the forget domain, the shares and the limits"
            raise UserError(f"the {domain} domain has no texts {where}", do=do)
