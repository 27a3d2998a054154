"""A results folder with a ranking and its lists, as `mamushi show` and the start page read it, and
frontiers whose curves have a closed form."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.io import paths, schemas
from mamushi.io.files import write_json
from mamushi.io.tables import write_table
from tests.support.score_files import write_examples, write_scores

CELL = {"dataset": "texts", "model": "ours", "seed": 0}
STRONG = "strong separation, AUC 0.93 [0.90, 0.95]"
WEAK = "weak separation, AUC 0.60 [0.56, 0.64]"
CHANCE = "a comparison, not to be acted on: its order is drawn by chance"
BOUND = "2% of it looks like texts to keep, at most 68%; 1 of 2 texts are toss-ups"
FORGET, RETAIN = 20, 30


def judgement(selector: str, ranking: str) -> dict[str, str]:
    act = {STRONG: "check", WEAK: "refuse"}[ranking]
    if selector == "random":
        act, ranking = "comparison", CHANCE
    return {"act": act, "ranking": ranking, "list": BOUND}


def write_ranked(
    root: Path, ranking: str = STRONG, selectors: tuple[str, ...] = ("mamushi",)
) -> None:
    """A ranking of twenty texts with lists of 2 and 10, as a run leaves it."""
    forget = [f"f{i}" for i in range(FORGET)]
    ids = [*forget, *(f"r{i}" for i in range(RETAIN))]
    domain = ["forget"] * FORGET + ["retain"] * RETAIN
    texts = [f"text  of {name}" for name in ids]
    texts[0] = "Well, damn! \x1b[31mred\x07 " + "long " * 40
    write_examples(paths.under(root, paths.EXAMPLES, **CELL), ids, domain, text=texts)
    for selector in selectors:
        score = [5.0 - i / 2 for i in range(FORGET)] + [-6.0] * RETAIN
        path = paths.under(root, paths.SCORES, **CELL, selector=selector)
        write_scores(path, ids, domain, score, fold=[0] * len(ids))
        for beta, removed, copies in (("0.10", 2, 0), ("0.50", 10, 3)):
            told = {**CELL, "selector": selector, "beta": float(beta), "removed": removed}
            counts = {"n_forget": FORGET, "n_retain": RETAIN, "copies": copies}
            path = paths.under(root, paths.MANIFEST, **CELL, selector=selector, beta=beta)
            write_json(
                path,
                {
                    **{**told, **counts, "expected": {"by": "mamushi"}},
                    "judgement": judgement(selector, ranking),
                },
            )
            path.with_suffix(".parquet").touch()


BETAS = [i / 20 for i in range(21)]
FULL, START, HARM = 2.5, 0.5, 0.4
"""Removal at budget 1 and 0, and preservation at 0, in nats."""


def frontier(
    selector: str, power: float, seed: int = 0, width: float = 0.0, overshoot: float = 0.0
) -> list[dict[str, Any]]:
    """Gain b^power (+ ``overshoot`` sin(pi b)), preservation 0.4 (1 - b); bands of ``width``."""
    rows = []
    for b in BETAS:
        gained = b**power + overshoot * math.sin(math.pi * b)
        removal = START + (FULL - START) * gained
        harm = HARM * (1 - b)
        inside = width * (b not in (0.0, 1.0))
        row = {
            **{"dataset": "small", "model": "tiny", "seed": seed, "selector": selector, "beta": b},
            "removed": int(40 * b),
            "withheld": None,
        }
        for name, value in (("removal", removal), ("preservation", harm), ("gain", gained)):
            row |= {name: value, f"{name}_low": value - inside, f"{name}_high": value + inside}
        rows.append(row)
    return rows


def write_frontiers(root: Path, rows: list[dict[str, Any]]) -> None:
    """The frontier file of each seed, as the stage leaves it."""
    for seed in {row["seed"] for row in rows}:
        ours = [row for row in rows if row["seed"] == seed]
        gains = [{key: row[key] for key in ("gain", "gain_low", "gain_high")} for row in ours]
        table = pa.Table.from_pylist(ours, schema=schemas.FRONTIER.schema)
        cell = {"dataset": ours[0]["dataset"], "model": ours[0]["model"], "seed": seed}
        path = paths.under(root, paths.FRONTIER, **cell)
        metadata = {"gains": gains, "verdict": {"withheld": ours[0]["withheld"]}}
        write_table(path, schemas.FRONTIER, table, metadata=metadata)
