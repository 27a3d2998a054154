"""Join what the runs found into one table each, and set the paper's numbers beside ours.

The paper's numbers are copied as printed. Not all can be right: a standard deviation of 4.007 is
88% of a mean of 4.569, and 0.001 is the standard error of its five fold AUCs, not their deviation.
Those of unlearning stand in the table ``half_gap``, which is made when models are unlearned, and
run times in ``runtime_summary``.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from mamushi.evidence.geometry import geometry_summary
from mamushi.io import paths, schemas
from mamushi.io.schemas import Table
from mamushi.io.tables import read_table

_Row = Mapping[str, Any]

PAPER = Path(__file__).with_name("paper.csv")
"""The paper's numbers, of Sections "Training Diagnostics" and "Empirical Evidence for Anisotropy of
LLM Embeddings": what each is of, as printed, and its column of ``diagnostics`` or key of
``geometry_summary``."""
SCORES_SETTING = "Jigsaw, Gemma-2-2B"
"""The ``setting`` of those of scores."""
RUNTIMES: Mapping[str, tuple[float, float]] = {
    "random": (0.0004, 0.0001),
    "l2_norm": (0.0151, 0.0002),
    "cos_mu2": (0.0674, 0.0040),
    "coreset": (0.0745, 0.0199),
    "lr_cos": (0.1138, 0.0097),
    "vmf": (0.8653, 0.2009),
    "mamushi": (47.1857, 0.0172),
    "kcenter": (222.4399, 0.5858),
}
"""Table "Runtime of different data selection methods": seconds to select the top 60%, mean and
deviation, on the embeddings of ``RUNTIMES_OF``."""
RUNTIMES_OF = ("jigsaw", "gemma-2-2b")
"""The dataset and the model of these, by their names in ``config.yaml``."""
RANKED = re.compile(r"ranked in ([\d.]+) s, ([\d.]+) s of CPU$", re.M)
"""What the log of a ranking says of the seconds that it took alone."""


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
    rows = []
    for about in described:
        names = ("dataset", "model", "seed", "selector", "n_forget", "n_retain")
        row = {name: about[name] for name in names}
        chain = chains.get(row["selector"], [])
        logs = [paths.under(root, paths.SCORE_LOG, **{**row, "selector": one}) for one in chain]
        lines = [RANKED.findall(log.read_text("utf-8")) for log in logs if log.is_file()]
        # A log does not say where results were there already.
        seconds = [np.array(pairs[-1], dtype=float) for pairs in lines if pairs]
        is_known = len(seconds) == len(chain)
        wall, cpu = np.sum(seconds, axis=0).tolist() if chain and is_known else (None, None)
        rows += [{**row, "wall_seconds": wall, "cpu_seconds": cpu}] if chain else []
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
    printed = [
        RUNTIMES.get(selector, (None, None)) if (dataset, model) == RUNTIMES_OF else (None, None)
        for dataset, model, selector in table.index
    ]
    table[["paper_mean", "paper_sd"]] = np.array(printed, dtype=float).reshape(-1, 2)
    schema = schemas.RUNTIME_SUMMARY.schema
    return pa.Table.from_pandas(table.reset_index(), schema, preserve_index=False)


def paper_rows(
    diagnostics: Iterable[_Row], geometry: Iterable[_Row], selector: str
) -> list[dict[str, Any]]:
    """Return the rows of the table ``paper``: what the paper prints beside what each run has, from
    rows of the tables ``diagnostics``, of which those of ``selector`` count, and ``geometry``."""
    cell = ["dataset", "model", "seed"]
    compared = [
        (True, row, {**row, "forget_iqr": row["forget_q75"] - row["forget_q25"]})
        for row in diagnostics
        if row["selector"] == selector
    ]
    frame = pd.DataFrame(geometry, columns=schemas.GEOMETRY.schema.names).sort_values(
        "k", kind="stable"
    )
    for key, of_run in frame.groupby(cell, sort=False):
        summary = geometry_summary(of_run.to_dict("list"))
        compared.append((False, dict(zip(cell, key, strict=True)), summary))
    printed = pd.read_csv(PAPER).to_dict("records")
    return [
        {
            **{name: number[name] for name in ("quantity", "setting", "paper")},
            **{name: run[name] for name in cell},
            "ours": ours[number["column"]],
        }
        for of_scores, run, ours in compared
        for number in printed
        if (number["setting"] == SCORES_SETTING) == of_scores
    ]
