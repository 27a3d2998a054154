"""Join what the runs found into one table each, and set the paper's numbers beside ours.

The paper's numbers are copied as printed. Not all can be right: a standard deviation of 4.007 is
88% of a mean of 4.569, and 0.001 is the standard error of its five fold AUCs, not their deviation.
Those of unlearning stand in the table ``half_gap``, which is made when models are unlearned.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from mamushi.evidence.advice import TARGETS, advice, read_frontier
from mamushi.evidence.geometry import geometry_summary
from mamushi.evidence.ranking import end_rows
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.tables import read_table

_Row = Mapping[str, Any]

PAPER = Path(__file__).with_name("paper.csv")
"""What each number is of, as printed, and its column of ``diagnostics`` or key of
``geometry_summary``."""
PAPER_RUNTIMES = Path(__file__).with_name("paper_runtimes.csv")
"""Table "Runtime of different data selection methods": seconds to select the top 60%."""
OF_CELLS = {
    **{schemas.FRONTIER: paths.FRONTIER, schemas.CALIBRATION: paths.CALIBRATION},
    **{schemas.DIAGNOSTICS: paths.DIAGNOSTICS, schemas.GEOMETRY: paths.GEOMETRY},
}
"""Tables that join those of the cells."""
RANKED = re.compile(r"ranked in ([\d.]+) s, ([\d.]+) s of CPU$", re.M)  # In the log of a ranking.


def tables(
    root: Path,
    cells: Sequence[_Row],
    predicted: Iterable[_Row],
    selector: str,
    targets: Mapping[str, float],
    chains: Mapping[str, list[str]],
) -> dict[Table, Any]:
    """Return the tables of evidence: what the cells tell before any retraining, the advice that
    follows, also from what is ``predicted`` of some cells, and the first and the last texts of
    their rankings by the ``selector`` of the ratio. ``chains`` are as those of ``cost_rows``."""
    joined = {kind: joined_table(kind, pattern, cells, root) for kind, pattern in OF_CELLS.items()}
    described, geometry = (
        joined[kind].to_pylist() for kind in (schemas.DIAGNOSTICS, schemas.GEOMETRY)
    )
    foreseen = (paths.under(root, paths.PREDICTED, **cell) for cell in predicted)
    forecasts = [row for path in foreseen for row in read_table(path, None).to_pylist()]
    curves = (read_frontier(paths.under(root, paths.FRONTIER, **cell)) for cell in cells)
    asked = [(name, targets[name]) for name in TARGETS if name in targets]
    runs = [{**cell, "selector": selector} for cell in cells if cell["seed"] == cells[0]["seed"]]
    costs = cost_rows(described, chains, root)
    return {
        **joined,
        schemas.QUALITATIVE_RANKING: [row for run in runs for row in end_rows(root, run)],
        schemas.RUNTIME: costs,
        schemas.ADVICE: advice([*chain(*curves)], asked, forecasts),
        schemas.PAPER: paper_rows(described, geometry, selector),
        schemas.RUNTIME_SUMMARY: runtime_summary(costs),
    }


def joined_table(kind: Table, pattern: str, cells: Iterable[_Row], root: str | Path) -> pa.Table:
    """Return the table of all cells, from the file that each has at ``pattern``, in their order."""
    tables = (read_table(paths.under(root, pattern, **cell), kind) for cell in cells)
    selected = [table.select(kind.schema.names).cast(kind.schema) for table in tables]
    return pa.concat_tables([kind.schema.empty_table(), *selected])


def cost_rows(
    described: Iterable[_Row], chains: Mapping[str, list[str]], root: Path
) -> list[dict[str, Any]]:
    """Return the rows of the table ``runtime``, from those of ``diagnostics`` and the logs of the
    jobs that ranked. ``chains`` have by selector itself and what it derives from, without which
    there is no ranking."""
    names, rows = ("dataset", "model", "seed", "selector", "n_forget", "n_retain"), []
    for row in ({name: about[name] for name in names} for about in described):
        if chain := chains.get(row["selector"]):
            logs = [paths.under(root, paths.SCORE_LOG, **{**row, "selector": one}) for one in chain]
            lines = [RANKED.findall(log.read_text("utf-8")) for log in logs if log.is_file()]
            # A log does not say where results were there already.
            seconds = np.array([pairs[-1] for pairs in lines if pairs], dtype=float)
            costs = seconds.sum(axis=0).tolist() if len(seconds) == len(chain) else (None, None)
            rows.append({**row, **dict(zip(("wall_seconds", "cpu_seconds"), costs, strict=True))})
    return rows


def runtime_summary(runs: Iterable[_Row]) -> pa.Table:
    """Return the table ``runtime_summary`` from the rows of ``runtime``, over seeds."""
    keys, seconds = ["dataset", "model", "selector"], ["wall_seconds", "cpu_seconds"]
    frame = pd.DataFrame(runs, columns=schemas.RUNTIME.schema.names)
    by_selector = frame.astype(dict.fromkeys(seconds, float)).groupby(keys, sort=False)
    table = by_selector[["n_forget", "n_retain"]].first()
    table["seeds"] = by_selector["cpu_seconds"].count()
    for name in seconds:
        table[f"{name}_mean"] = by_selector[name].mean()
        table[f"{name}_sd"] = by_selector[name].std()
    table = table.reset_index().merge(pd.read_csv(PAPER_RUNTIMES), how="left", on=keys)
    return pa.Table.from_pandas(table, schemas.RUNTIME_SUMMARY.schema, preserve_index=False)


def paper_rows(
    diagnostics: Iterable[_Row], geometry: Iterable[_Row], selector: str
) -> list[dict[str, Any]]:
    """Return the rows of the table ``paper``: what the paper prints beside what each run has, from
    rows of the tables ``diagnostics``, of which those of ``selector`` count, and ``geometry``."""
    cell = ["dataset", "model", "seed"]
    compared = [
        {**row, "forget_iqr": row["forget_q75"] - row["forget_q25"]}
        for row in diagnostics
        if row["selector"] == selector
    ]
    frame = pd.DataFrame(geometry, columns=schemas.GEOMETRY.schema.names)
    for key, of_run in frame.groupby(cell, sort=False):
        summary = geometry_summary(of_run.to_dict("list"))
        compared.append({**dict(zip(cell, key, strict=True)), **summary})
    printed = pd.read_csv(PAPER).to_dict("records")
    return [
        {
            **{name: number[name] for name in ("quantity", "setting", "paper")},
            **{name: ours[name] for name in cell},
            "ours": ours[number["column"]],
        }
        for ours in compared
        for number in printed
        if number["column"] in ours
    ]
