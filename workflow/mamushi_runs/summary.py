"""The lists that a run has made, their worth and the next step, from the manifests beside them."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from mamushi.artifacts.files import read_json

SILENCE = "MAMUSHI_NO_SUMMARY"
"""Variable of a run whose command reports more itself at the end."""
SHOWN = 5
"""So many cells are listed one by one."""


def lists(workflow: Any) -> str | None:
    """Return the lines to print after a run that succeeded; None where it made no list."""
    if SILENCE in os.environ:
        return None
    found: Any = defaultdict(lambda: defaultdict(list))
    verdicts: dict[tuple[str, str, int], str] = {}
    for job in workflow.dag.jobs:
        for path in map(Path, job.output if job.rule.name == "manifests" else ()):
            manifest = read_json(path)
            cell = (manifest["dataset"], manifest["model"], manifest["seed"])
            one = (manifest["beta"], manifest["removed"], path.parent)
            found[cell][manifest["selector"]].append(one)
            verdicts[cell] = manifest["verdict"]
    if not found:
        return None
    lines = ["What was made:"]
    for cell in sorted(found)[:SHOWN]:
        dataset, model, seed = cell
        lines.append(f"  {dataset}, {model}, seed {seed}: {verdicts[cell]}")
        for selector, each in sorted(found[cell].items()):
            (low, fewest, folder), (high, most, _) = min(each), max(each)
            counts = f"{fewest}" if len(each) == 1 else f"{fewest} to {most}"
            span = f"{low:g}" if len(each) == 1 else f"{low:g} to {high:g}"
            lines.append(f"    {selector}: {counts} examples at budgets {span}: {folder}")
    if len(found) > SHOWN:
        lines.append(f"  and {len(found) - SHOWN} more dataset x model x seed")
    unsure = [cell for cell in found if "do not delete" in verdicts[cell]]
    if unsure:
        next_step = (
            f"look at the rankings before deleting anything, {len(unsure)} of {len(found)} "
            "separations do not carry it (results/runs/*/*/*/ranking.html)."
        )
    else:
        next_step = (
            "how much to remove: make the target `evidence`, then "
            "`python -m mamushi advise --removal 0.5`."
        )
    return "\n".join([*lines, f"Next: {next_step}"])
