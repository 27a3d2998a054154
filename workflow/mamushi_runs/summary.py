"""What a run has made, in the words of its user: where the lists are, what they are worth, and what
to do next. Read from the manifests beside the lists."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mamushi.artifacts.files import read_json

TOLD = "MAMUSHI_TOLD"
"""Variable of a run whose command tells more itself at the end."""
SHOWN = 5
"""So many cells are told of one by one."""


def made(workflow: Any) -> str | None:
    """The lines to print after a run that succeeded; None where it made no list."""
    if TOLD in os.environ:
        return None
    lists: dict[tuple[str, str, int], dict[str, list[tuple[float, int, str]]]] = {}
    verdicts: dict[tuple[str, str, int], str] = {}
    for job in workflow.dag.jobs:
        if job.rule.name != "manifests":
            continue
        for path in map(Path, job.output):
            told = read_json(path)
            cell = (told["dataset"], told["model"], told["seed"])
            found = lists.setdefault(cell, {}).setdefault(told["selector"], [])
            found.append((told["beta"], told["removed"], str(path.with_suffix(".parquet"))))
            verdicts[cell] = told["verdict"]
    if not lists:
        return None
    lines = ["What was made:"]
    for cell in sorted(lists)[:SHOWN]:
        dataset, model, seed = cell
        lines.append(f"  {dataset}, {model}, seed {seed}: {verdicts[cell]}")
        for selector, each in sorted(lists[cell].items()):
            (low, fewest, first), (high, most, _) = min(each), max(each)
            counts = f"{fewest}" if len(each) == 1 else f"{fewest} to {most}"
            span = f"{low:g}" if len(each) == 1 else f"{low:g} to {high:g}"
            lines.append(
                f"    {selector}: {counts} examples at budgets {span}: {Path(first).parent}"
            )
    if len(lists) > SHOWN:
        lines.append(f"  and {len(lists) - SHOWN} more dataset x model x seed")
    unsure = [cell for cell in lists if "do not delete" in verdicts[cell]]
    lines.append(
        "Next: "
        + (
            f"look at the rankings before deleting anything, {len(unsure)} of {len(lists)} "
            "separations do not carry it (results/runs/*/*/*/ranking.html)."
            if unsure
            else "how much to remove: make the target `evidence`, then "
            "`python -m mamushi advise --removal 0.5`."
        )
    )
    return "\n".join(lines)
