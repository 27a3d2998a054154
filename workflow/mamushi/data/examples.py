"""From a loader's rows to the examples, the duplicates and the card: clean, drop duplicates, split,
limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.artifacts.provenance import versions
from mamushi.artifacts.tables import FORGET, RETAIN, SECTIONS
from mamushi.data.clean import clean
from mamushi.data.duplicates import Duplicates, find_duplicates
from mamushi.data.planted import plant
from mamushi.data.raw import Raw, check_unique
from mamushi.data.sections import limited, split
from mamushi.errors import UserError

Counts = dict[str, int]


def build(
    raw: Raw,
    sections: Mapping[str, float],
    limit: Mapping[str, int | None],
    data: Mapping[str, Any],
    planted: Mapping[str, Any] | None = None,
) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """The examples and the duplicates, in the order of the files, and the counts of each step.

    ``sections`` are the shares for rows without a ready-made section, ``limit`` the most texts of
    each domain in a section, ``data`` the settings of the configuration's section ``data``,
    ``planted`` what is planted, if anything.

    The counts are ``read`` (rows in the files), ``left_out`` (by the loader, with reasons),
    ``steps`` (in order, each with what it dropped and what remained, by domain) and ``sections``
    (what the table holds, by section and domain).

    Raises ``UserError`` for duplicated ids, texts that are too long or all empty, and a domain
    without texts, in all or in a section.
    """
    check_unique(raw.ids, raw.places)
    steps = [_step("read", raw.forget, np.ones(len(raw.ids), dtype=bool))]
    _check_domains(raw.forget, "in its files")

    texts, filled = clean(raw.texts, raw.places, data["max_characters"])
    rows = np.flatnonzero(filled)
    steps.append(_step("empty", raw.forget, filled))
    _check_domains(raw.forget[rows], "after empty texts were dropped")

    found = find_duplicates(
        [texts[row] for row in rows],
        raw.forget[rows],
        threshold=data["near_duplicates"],
        words=data["shingle_words"],
    )
    remaining = np.ones(len(rows), dtype=bool)
    for reason, dropped in (
        ("exact_duplicates", found.exact),
        ("near_duplicates", found.near),
        ("cross_posts", found.crossed),
    ):
        steps.append(_step(reason, raw.forget[rows], remaining & ~dropped, remaining))
        remaining &= ~dropped
    duplicates = _duplicates([raw.ids[row] for row in rows.tolist()], found)
    rows = rows[found.kept]
    _check_domains(raw.forget[rows], "after duplicates and cross-posts were dropped")

    forget = raw.forget[rows]
    ready = [raw.section[row] for row in rows.tolist()]
    strata = [raw.stratum[row] for row in rows.tolist()]
    section = split(forget, strata, ready, sections, data["split_seed"])
    within = limited(forget, section, limit, data["split_seed"])
    steps.append(_step("limit", forget, within))
    rows, forget, section = rows[within], forget[within], section[within]
    # A section is there when it has a share, or when rows came with it.
    expected = {name for name, share in sections.items() if share > 0 and None in raw.section}
    for name in SECTIONS:
        if name in expected | set(raw.section):
            _check_domains(forget[section == name], f"in section {name!r}")

    table = _table(raw, rows, texts, section)
    if planted is not None:
        table = plant(table, planted, data["split_seed"])
        section = np.array(table["section"].to_pylist(), dtype=object)
        forget = np.array([domain == FORGET for domain in table["domain"].to_pylist()])

    counts = {
        "read": len(raw.ids) + sum(raw.dropped.values()),
        "left_out": dict(raw.dropped),
        "steps": steps,
        "sections": {
            name: _by_domain(forget[section == name])
            for name in SECTIONS
            if (section == name).any()
        },
    }
    return table, duplicates, counts


def _duplicates(ids: Sequence[str], found: Duplicates) -> pa.Table:
    """The table ``duplicates`` of the texts with these ids: what was dropped, and for what.

    It is made before sections and limits, which do not change it: they leave rows out of the
    experiment, not out of the training data from which copies are to be removed.
    """
    gone = np.flatnonzero(~found.kept)
    reasons = np.select([found.exact[gone], found.near[gone]], ["exact", "near"], "cross_post")
    kept = [None if found.crossed[i] else ids[found.roots[i]] for i in gone.tolist()]
    return pa.table(
        {
            "id": pa.array([ids[i] for i in gone.tolist()], pa.string()),
            "kept_id": pa.array(kept, pa.string()),
            "reason": pa.array(reasons.tolist(), pa.string()),
        }
    )


def _table(
    raw: Raw, rows: NDArray[np.int64], texts: Sequence[str], section: NDArray[np.object_]
) -> pa.Table:
    """The examples: ``rows`` of ``raw`` with their cleaned texts, and the section of each."""
    ratio = raw.log_density_ratio
    columns: dict[str, Any] = {
        "id": pa.array([raw.ids[row] for row in rows.tolist()], pa.string()),
        "text": pa.array([texts[row] for row in rows.tolist()], pa.string()),
        "domain": pa.array([FORGET if one else RETAIN for one in raw.forget[rows]], pa.string()),
        "section": pa.array(section, pa.string()),
        "log_density_ratio": pa.nulls(len(rows), pa.float64()) if ratio is None else ratio[rows],
    }
    for name, values in raw.labels.items():
        kept = (
            values[rows] if isinstance(values, np.ndarray) else [values[r] for r in rows.tolist()]
        )
        columns[f"label_{name}"] = pa.array(kept)
    return pa.table(columns)


def card(settings: Mapping[str, Any], raw: Raw, counts: Mapping[str, Any]) -> dict[str, Any]:
    """What the examples were made from, and how: for ``card.json``."""
    return {
        "dataset": settings["dataset"],
        "settings": dict(settings),
        "inputs": dict(raw.sources),
        "versions": versions(),
        "counts": dict(counts),
    }


def summary(counts: Mapping[str, Any]) -> list[str]:
    """The counts as lines for a person: one for each step, one for each section."""
    lines = [f"{counts['read']:,} rows read"]
    lines += [f"{n:,} left out: {reason}" for reason, n in counts["left_out"].items()]
    for step in counts["steps"]:
        kept, dropped = step["kept"], sum(step["dropped"].values())
        lines.append(
            f"{step['step']}: {dropped:,} dropped, {kept[FORGET]:,} forget and {kept[RETAIN]:,} "
            "retain remain"
        )
    for name, kept in counts["sections"].items():
        lines.append(f"section {name}: {kept[FORGET]:,} forget, {kept[RETAIN]:,} retain")
    return lines


def _step(
    name: str,
    forget: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    before: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """One step: what remained, and what it dropped of the rows in ``before`` (None: all)."""
    gone = ~kept if before is None else before & ~kept
    return {"step": name, "kept": _by_domain(forget[kept]), "dropped": _by_domain(forget[gone])}


def _by_domain(forget: NDArray[np.bool_]) -> Counts:
    return {FORGET: int(forget.sum()), RETAIN: int((~forget).sum())}


def _check_domains(forget: NDArray[np.bool_], where: str) -> None:
    for domain, count in _by_domain(forget).items():
        if count == 0:
            raise UserError(
                f"the {domain} domain has no texts {where}",
                do="check what marks the forget domain, the shares and the limits",
            )
