"""Say what a removal list is expected to do, in a manifest that others can check."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.data.groups import GroupCodes
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.frontier import Frontier, removal_order
from mamushi.evidence.verdict import judge_list, share_bound
from mamushi.io import schemas
from mamushi.io.tables import FORGET, read_metadata, read_table
from mamushi.selection.removals import digest_of_ids, removal_list


@dataclass(frozen=True)
class Calibrated:
    """A table ``calibrated``, what the ratio has ``lost``, the ``selector`` whose scores it was
    made from, the ``verdict`` on these, how ``texts`` depend on each other, and codes (n,) of their
    ``groups``, if there are any."""

    table: pa.Table
    lost: float
    selector: str
    verdict: Mapping[str, Any]
    texts: Dependence
    groups: GroupCodes | None = None


def read_calibrated(path: str | Path) -> Calibrated:
    """Read a table ``calibrated``."""
    stored, table = read_metadata(path), read_table(path, schemas.CALIBRATED)
    selector, verdict = stored["provenance"]["settings"]["selector"], stored["verdict"]
    groups = None if table["group"].null_count else table["group"].to_numpy().astype(np.int64)
    texts = Dependence(**verdict["texts"])
    return Calibrated(table, stored["lost"], selector, verdict, texts, groups)


def manifest(
    scores: pa.Table,
    ratio: Calibrated,
    duplicates: pa.Table,
    k: int,
    named: dict[str, Any],
    separates: Mapping[str, Any],
    *,
    compared: str | None = None,
    by_chance: bool = False,
) -> dict[str, Any]:
    """Return what a trainer needs to know of the removal of the first ``k`` examples of ``scores``;
    what is expected is null where the ratio cannot carry it. ``named`` is added as it is, among it
    the ``selector`` and the ``stability`` at this budget; all else is as in ``judge_list``."""
    assert scores["id"].equals(ratio.table["id"]), "the scores and the ratio hold other examples"
    listed, order = removal_list(scores, duplicates, k), removal_order(scores, by_chance)
    forget, withheld = np.asarray(pc.equal(scores["domain"], FORGET)), ratio.verdict["withheld"]
    n1, n2 = int(forget.sum()), int((~forget).sum())
    threshold = float(listed["score"][-1].as_py()) if k else None
    also_retain: dict[str, float | None] = {"estimate": None, "upper_bound": None}
    if threshold is not None and order.region and ratio.texts.reason is None:
        codes = None if ratio.groups is None else ratio.groups[~forget]
        also_retain = share_bound(scores["score"].to_numpy()[~forget], threshold, k / n1, codes)
    curve = Frontier(ratio.table["log_ratio"].to_numpy(), forget, ratio.lost)
    counts = {"at_this_budget": k, "nothing_removed": 0, "all_removed": n1}
    expected: dict[str, Any] = dict.fromkeys(counts)
    for name, count in () if withheld else counts.items():
        removed, preserved = curve.at(order, np.array([count]))
        expected[name] = {"removal": float(removed[0]), "preservation": float(preserved[0])}
    judged = judge_list(
        separates,
        k,
        named["stability"],
        also_retain,
        compared=compared,
        # The checks hold for the ranking whose scores the ratio was made from, and for no other.
        reason=ratio.verdict["reason"] if ratio.selector == named["selector"] else None,
        texts=ratio.texts,
    )
    of = "the share of the list that as many retain texts would have put there, by their scores; "
    of += "the bound holds with 95%, at all budgets at once"
    return {
        **{**named, "n_forget": n1, "n_retain": n2, "removed": k, "threshold": threshold},
        "copies": sum(map(len, listed["copies"].to_pylist())),
        "cross_posts": duplicates["kept_id"].null_count,
        "ids_sha256": digest_of_ids(listed["id"].to_pylist()),
        "ids_sha256_of": "the ids by rank, without copies, in UTF-8, each followed by a newline",
        **judged,
        "also_retain": {**also_retain, "of": of},
        "expected": {"unit": "nats", "by": ratio.selector, "withheld": withheld, **expected},
    }
