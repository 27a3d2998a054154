"""Join what the runs found into one table each, and set the paper's numbers beside ours.

The paper's numbers are copied as printed. Not all can be right: a standard deviation of 4.007 is
88% of a mean of 4.569, and 0.001 is the standard error of its five fold AUCs, not their deviation.
Those of unlearning stand in the table ``half_gap``, which is made when models are unlearned, and
run times in ``runtime_summary``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.evidence.geometry import geometry_summary
from mamushi.io import paths
from mamushi.io.schemas import Table
from mamushi.io.tables import read_table

_Row = Mapping[str, Any]


def joined_table(
    kind: Table, pattern: str, cells: Iterable[Mapping[str, Any]], root: str | Path
) -> pa.Table:
    """Return the table of all cells, from the file that each has at ``pattern``, in their order."""
    tables = (read_table(paths.under(root, pattern, **cell), kind) for cell in cells)
    selected = [table.select(kind.schema.names).cast(kind.schema) for table in tables]
    return pa.concat_tables([kind.schema.empty_table(), *selected])


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


def cost_rows(
    described: Iterable[_Row], chains: Mapping[str, list[str]], root: Path
) -> list[dict[str, Any]]:
    """Return the rows of the table ``runtime``, from those of ``diagnostics`` and the logs of the
    jobs that ranked. ``chains`` have by selector itself and what it derives from, without which
    there is no ranking."""
    rows = []
    for about in described:
        if (chain := chains.get(about["selector"])) is None:
            continue
        row = {name: about[name] for name in ("dataset", "model", "seed", "selector")}
        logs = [paths.under(root, paths.SCORE_LOG, **{**row, "selector": one}) for one in chain]
        lines = [RANKED.findall(log.read_text("utf-8")) for log in logs if log.is_file()]
        # A log does not say where results were there already.
        seconds = [np.array(pairs[-1], dtype=float) for pairs in lines if pairs]
        is_known = len(seconds) == len(chain)
        wall, cpu = np.sum(seconds, axis=0).tolist() if is_known else (None, None)
        row |= {name: about[name] for name in ("n_forget", "n_retain")}
        rows.append({**row, "wall_seconds": wall, "cpu_seconds": cpu})
    return rows


def runtime_rows(runs: Iterable[_Row]) -> list[dict[str, Any]]:
    """Return the rows of the table ``runtime_summary`` from those of ``runtime``, over seeds."""
    groups: dict[tuple[str, str, str], list[_Row]] = {}
    for run in runs:
        groups.setdefault((run["dataset"], run["model"], run["selector"]), []).append(run)
    rows = []
    for (dataset, model, selector), of_group in groups.items():
        printed = RUNTIMES.get(selector) if (dataset, model) == RUNTIMES_OF else None
        row: dict[str, Any] = {"dataset": dataset, "model": model, "selector": selector}
        row |= {name: of_group[0][name] for name in ("n_forget", "n_retain")}
        for name in ("wall_seconds", "cpu_seconds"):
            seconds = [run[name] for run in of_group if run[name] is not None]
            row["seeds"] = len(seconds)
            row[f"{name}_mean"] = float(np.mean(seconds)) if seconds else None
            row[f"{name}_sd"] = float(np.std(seconds, ddof=1)) if len(seconds) > 1 else None
        row["paper_mean"], row["paper_sd"] = printed or (None, None)
        rows.append(row)
    return rows


def paper_rows(
    diagnostics: Iterable[_Row], geometry: Iterable[_Row], selector: str
) -> list[dict[str, Any]]:
    """Return the rows of the table ``paper``: what the paper prints beside what each run has, from
    rows of the tables ``diagnostics``, of which those of ``selector`` count, and ``geometry``."""
    runs: dict[tuple[str, str, int], list[_Row]] = {}
    for row in geometry:
        runs.setdefault((row["dataset"], row["model"], row["seed"]), []).append(row)
    compared = [
        (True, row, {**row, "forget_iqr": row["forget_q75"] - row["forget_q25"]})
        for row in diagnostics
        if row["selector"] == selector
    ]
    for by_k in runs.values():
        by_k.sort(key=lambda row: int(row["k"]))
        columns = {key: np.array([row[key] for row in by_k]) for key in by_k[0]}
        compared.append((False, by_k[0], geometry_summary(columns)))
    with PAPER.open(encoding="utf-8") as file:
        printed = [*csv.DictReader(file)]
    return [
        {
            **{name: number[name] for name in ("quantity", "setting")},
            "paper": float(number["paper"]),
            **{name: run[name] for name in ("dataset", "model", "seed")},
            "ours": None if (value := ours[number["column"]]) is None else float(value),
        }
        for of_scores, run, ours in compared
        for number in printed
        if (number["setting"] == SCORES_SETTING) == of_scores
    ]
