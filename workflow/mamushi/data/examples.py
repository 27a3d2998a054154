"""From a loader's rows to the examples, the duplicates and the card: clean, drop duplicates, split,
limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.data.duplicates import Duplicates
from mamushi.data.raw import Raw, check_unique
from mamushi.data.splitting import limited, split_sections, with_group_sections
from mamushi.errors import UserError
from mamushi.io.digests import of_text
from mamushi.io.provenance import versions
from mamushi.io.tables import FORGET, INFERENCE, RETAIN, SECTIONS

Objects = NDArray[np.object_]


class _Left:
    """Rows that are still there, and what each step dropped, by domain."""

    def __init__(self, forget: NDArray[np.bool_]) -> None:
        self.forget, self.remaining = forget, np.ones(len(forget), dtype=bool)
        self.steps: list[dict[str, Any]] = []

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.remaining)

    def drop(
        self, step: str, gone: NDArray[np.int64], then: str | None = None, do: str | None = None
    ) -> None:
        """Drop rows; with ``then`` check that both domains are left, else say what to ``do``."""
        self.remaining[gone] = False
        kept, dropped = _by_domain(self.forget[self.remaining]), _by_domain(self.forget[gone])
        self.steps.append({"step": step, "kept": kept, "dropped": dropped})
        if then is not None:
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
    each domain in a section, ``data`` the settings of the configuration's section ``data``, of
    which those of duplicates count where these are dropped. The counts are ``read`` (rows in the
    files), ``left_out`` (by the loader, with reasons), ``steps`` and ``sections``, by domain, and
    ``groups``, of a dataset that has groups; and those of ``Raw.counts``. Raises ``UserError`` for
    duplicated ids, texts that are too long or all empty, a domain without texts, in all or in a
    section, and a group in two sections.
    """
    check_unique(raw.ids, raw.places)
    left = _Left(raw.forget)
    left.drop("read", np.empty(0, dtype=np.int64), "in its files")
    texts = _clean(raw, data["max_characters"])
    left.drop("empty", np.flatnonzero(texts == ""), "after empty texts were dropped")
    rows = left.rows
    if drop_duplicates:
        near, words = data["near_duplicates"], data["shingle_words"]
        copies = raw.copies(rows, texts[rows].tolist(), threshold=near, words=words)
    else:
        copies = Duplicates.none(len(rows))
    raw = raw.joined(rows, copies.roots)
    left.forget = raw.forget
    # Made before sections and limits, which leave rows out of the experiment, not out of the
    # training data from which copies are to be removed.
    ids = np.array(raw.ids, dtype=object)[rows]
    duplicates = _copies(ids, texts[rows], copies, raw.unlisted(rows))
    left.drop("exact_duplicates", rows[copies.exact])
    left.drop("near_duplicates", rows[copies.near])
    crossed = "after duplicates and cross-posts were dropped"
    do = "all of them are in the other domain as well; mark each text once"
    left.drop("cross_posts", rows[copies.crossed], crossed, do)

    rows, section = _in_sections(raw, left, sections, limit, data["split_seed"])
    table = _table(raw, rows, texts, section)
    section, forget = (np.array(table[n].to_pylist(), dtype=object) for n in ("section", "domain"))
    by_section = {name: _by_domain(forget[section == name] == FORGET) for name in SECTIONS}
    counts = {
        "read": len(raw.ids) + sum(raw.dropped.values()),
        "left_out": dict(raw.dropped),
        "steps": left.steps,
        "sections": {
            name: by_domain for name, by_domain in by_section.items() if any(by_domain.values())
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
) -> tuple[NDArray[np.int64], Objects]:
    """Return the rows that are left within the limits, and their sections."""
    rows = left.rows
    ready, strata, group, places = (
        [column[row] for row in rows.tolist()]
        for column in (raw.section, raw.stratum, raw.group or [None] * len(raw.ids), raw.places)
    )
    ready = with_group_sections(ready, group, places)
    section = split_sections(raw.forget[rows], strata, ready, sections, seed, group)
    within = limited(raw.forget[rows], section, limit, seed)
    left.drop("limit", rows[~within])
    rows, section = rows[within], section[within]
    # A section is there when it has a share, or when rows came with it.
    expected = {name for name, share in sections.items() if share > 0 and None in raw.section}
    most = max(Counter(filter(None, group)).values(), default=0)
    do = f"a group stays together, and the largest has {most:,} of {len(group):,} texts; give "
    do += "'group' a column that tells texts apart better, or null"
    for name in SECTIONS:
        if name in expected | set(raw.section):
            forget = raw.forget[rows[section == name]]
            _check_domains(forget, f"in section {name!r}", do if most > 1 else None)
    return rows, section


def _copies(
    ids: Objects, texts: Objects, copies: Duplicates, unlisted: NDArray[np.bool_]
) -> pa.Table:
    """Return the table of duplicates: each with the text that was kept for it, and why it went; but
    for texts that are ``unlisted``, (n,)."""
    originals = ids[copies.roots]
    originals[copies.crossed] = None
    reasons = np.select([copies.exact, copies.near], ["exact", "near"], "cross_post")
    columns = {"id": ids, "kept_id": originals, "reason": reasons}
    gone = ~(copies.kept | unlisted)
    table = {n: pa.array(c[gone].tolist(), pa.string()) for n, c in columns.items()}
    return pa.table({**table, "text_sha256": pa.array([*map(of_text, texts[gone])], pa.string())})


def _clean(raw: Raw, max_characters: int) -> Objects:
    """Return the texts without the white space around them, (n,). Nothing inside a text changes: a
    model was or will be trained on it as it is."""
    texts = np.array([text.strip() for text in raw.texts], dtype=object)
    for text, place in zip(texts, raw.places, strict=True):
        if len(text) > max_characters:
            do = f"allowed are {max_characters:,} (data.max_characters); split or remove it"
            raise UserError(f"a text of {len(text):,} characters", where=place, do=do)
    if not any(texts):
        problem = f"all {len(texts)} texts are empty or white space"
        raise UserError(problem, do="check that the right column is read")
    return texts


def _table(raw: Raw, rows: NDArray[np.int64], texts: Objects, section: Objects) -> pa.Table:
    """Return the examples: ``rows`` of ``raw`` with their cleaned texts and sections."""

    def of(column: Any) -> Any:
        is_array = isinstance(column, np.ndarray)
        return column[rows] if is_array else [column[row] for row in rows.tolist()]

    ratio = raw.log_density_ratio
    columns: dict[str, Any] = {
        "id": pa.array(of(raw.ids), pa.string()),
        "text": pa.array(of(texts), pa.string()),
        "domain": pa.array(
            [FORGET if is_forget else RETAIN for is_forget in raw.forget[rows]], pa.string()
        ),
        "section": pa.array(section, pa.string()),
        "log_density_ratio": pa.nulls(len(rows), pa.float64()) if ratio is None else ratio[rows],
    }
    group = pa.nulls(len(rows), pa.string()) if raw.group is None else of(raw.group)
    columns["group"] = pa.array(group, pa.string())
    for name, label in raw.labels.items():
        values = pa.array(of(label))
        columns[f"label_{name}"] = values.cast(pa.string()) if values.type == pa.null() else values
    return pa.table(columns)


def card(
    settings: Mapping[str, Any], raw: Raw, counts: Mapping[str, Any], examples: str
) -> dict[str, Any]:
    """Return what the ``examples``, a table of that digest, were made from, and how: for
    ``card.json``."""
    return {
        "dataset": settings["dataset"],
        "settings": dict(settings),
        "inputs": dict(raw.sources),
        "versions": versions(),
        "counts": dict(counts),
        "examples": examples,
    }


def _by_domain(forget: NDArray[np.bool_]) -> dict[str, int]:
    return {FORGET: int(forget.sum()), RETAIN: int((~forget).sum())}


def _groups(table: pa.Table) -> dict[str, Any]:
    """Return the number of groups of two texts or more, the size of the largest, and the texts in
    them; and of the inference section, by domain, the groups of any size, such as a text alone."""
    group, domain, section = (table[n].to_pylist() for n in ("group", "domain", "section"))
    sizes = [size for size in Counter(filter(None, group)).values() if size > 1]
    named = [row if name is None else name for row, name in enumerate(group)]
    ranked = {
        (of, name)
        for of, name, where in zip(domain, named, section, strict=True)
        if where == INFERENCE
    }
    domain_counts = Counter(name for name, _ in ranked)
    return {
        **{"groups": len(sizes), "largest": max(sizes, default=0), "texts": sum(sizes)},
        "inference": {name: domain_counts[name] for name in (FORGET, RETAIN)},
    }


def _check_domains(forget: NDArray[np.bool_], where: str, do: str | None = None) -> None:
    for domain, count in _by_domain(forget).items():
        if count == 0:
            do = do or "check what marks the forget domain, the shares and the limits"
            raise UserError(f"the {domain} domain has no texts {where}", do=do)
