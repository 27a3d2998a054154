"""From a loader's rows to the examples, the duplicates and the card: clean, drop duplicates, split,
limit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.cells import Cells, take, to_arrow, to_cells
from mamushi.data.duplicates import Duplicates
from mamushi.data.raw import Raw, Rows, check_unique
from mamushi.data.splitting import split_sections, within_limits
from mamushi.errors import UserError, located
from mamushi.io.digests import text_sha
from mamushi.io.schemas import DUPLICATES
from mamushi.io.tables import FORGET, RETAIN, SECTIONS

STEPS = {
    **{"read": "read", "empty": "empty", "exact": "exact_duplicates", "near": "near_duplicates"},
    **{"cross_post": "cross_posts", "limit": "limit"},
}
"""Why a row goes, in the order in which rows do, and the name of that step in the card."""


def build_examples(
    raw: Raw,
    sections: Mapping[str, float],
    limit: Mapping[str, int | None],
    data: Mapping[str, Any],
    *,
    drop_duplicates: bool = True,
) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Return the examples and the duplicates, in the order of the files, and counts of each step.
    ``sections`` are shares for rows without one, ``limit`` is the most texts of each domain in one,
    ``data`` the configuration's section. Raises ``UserError`` for ids that repeat, texts that are
    too long, a domain without texts, and a group in two sections."""
    check_unique(raw.ids, raw.places)
    raw = replace(raw, texts=_clean_texts(raw, data["max_characters"]))
    gone = np.array(["empty" if not text else "" for text in raw.texts], dtype=object)
    rows = np.flatnonzero(gone == "")
    copies = Duplicates(np.arange(len(rows)), np.full(len(rows), ""))
    if drop_duplicates:
        near, words = data["near_duplicates"], data["shingle_words"]
        copies = raw.copies(rows, take(raw.texts, gone == ""), threshold=near, words=words)
    raw = raw.join_copies(rows, copies.roots)
    # Sections and limits leave rows out of the experiment, not of the data that copies leave.
    duplicates = _duplicates(raw, rows, copies)
    gone[rows] = copies.reasons
    rows, chosen = np.flatnonzero(gone == ""), raw.take(gone == "")
    _domain_counts(chosen.forget, "but empty ones, duplicates and texts of both domains")
    section = split_sections(chosen, sections, data["split_seed"])
    within = within_limits(chosen, section, limit, data["split_seed"])
    gone[rows[~within]] = "limit"
    chosen, section = chosen.take(within), section[within]
    # A section is there when it has a share, or when rows came with it.
    shares = sections if None in raw.section else {}
    names = [name for name in SECTIONS if shares.get(name) or name in raw.section]
    within_section = {name: chosen.forget[section == name] for name in names}
    table = _examples_table(chosen, section)
    counts = {
        "read": len(raw.ids) + sum(raw.dropped.values()),
        **{"left_out": dict(raw.dropped), "steps": _step_counts(gone, raw.forget)},
        "sections": {n: _domain_counts(f, f"in section {n!r}") for n, f in within_section.items()},
        **raw.counts(table),
    }
    return table, duplicates, counts


def _clean_texts(raw: Raw, max_characters: int) -> Cells:
    """Return the texts without the white space around them, (n,)."""
    (texts,) = to_cells(zip(map(str.strip, raw.texts)))
    lengths = pc.utf8_length(texts.column).to_numpy()
    if (long := np.flatnonzero(lengths > max_characters)).size:
        do = f"allowed are {max_characters:,} (data.max_characters); split or remove it"
        problem = f"a text of {lengths[long[0]]:,} characters"
        raise UserError(problem, where=raw.places[int(long[0])], do=do)
    return texts


def _duplicates(raw: Raw, rows: Rows, copies: Duplicates) -> pa.Table:
    """Return the table ``duplicates``: the dropped copies among ``rows`` (n,), and why."""
    gone = (copies.reasons != "") & ~raw.unlisted_rows(rows)
    ids, reasons, chosen = to_arrow(raw.ids), copies.reasons[gone], np.zeros(len(raw.ids), bool)
    chosen[rows[gone]] = True
    originals = pa.array(rows[copies.roots[gone]], mask=reasons == "cross_post")
    digests = [*map(text_sha, take(raw.texts, chosen))]
    columns = [ids.filter(chosen), ids.take(originals), reasons.tolist(), digests]
    return pa.table(columns, DUPLICATES.schema.names)


def _examples_table(raw: Raw, section: NDArray[np.object_]) -> pa.Table:
    """Return the examples: rows with cleaned texts, and their sections."""
    nothing = pa.nulls(len(raw.ids))
    columns: dict[str, Any] = {
        **{"id": to_arrow(raw.ids), "text": to_arrow(raw.texts)},
        "domain": pc.if_else(pa.array(raw.forget), FORGET, RETAIN),
        "section": pa.array(section, pa.string()),
        "log_density_ratio": nothing if raw.log_density_ratio is None else raw.log_density_ratio,
        "group": to_arrow(raw.group or nothing),
    }
    for name, label in raw.labels.items():
        with located(f"label {name}"):
            values = to_arrow(label)
        if isinstance(label, Cells) and pa.types.is_primitive(values.type):
            # Numbers of 64 bits, as of any other table.
            values = pa.array(values.to_pylist())
        columns[f"label_{name}"] = values.cast(pa.string()) if values.type == pa.null() else values
    return pa.table(columns)


def _step_counts(gone: NDArray[np.object_], forget: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return what each step kept and dropped of either domain."""
    stays, steps = np.ones(len(gone), dtype=np.bool_), []
    for reason, step in STEPS.items():
        stays &= gone != reason
        dropped = _domain_counts(forget[gone == reason])
        steps.append({"step": step, "kept": _domain_counts(forget[stays]), "dropped": dropped})
    return steps


def _domain_counts(forget: NDArray[np.bool_], where: str | None = None) -> dict[str, int]:
    """Return how many texts each domain has. Raises ``UserError`` for none in a place."""
    counts = {FORGET: int(forget.sum()), RETAIN: int((~forget).sum())}
    for domain in (name for name in counts if where and not counts[name]):
        do = "check what marks the forget domain, the shares, the groups and the limits"
        raise UserError(f"the {domain} domain has no texts {where}", do=do)
    return counts
