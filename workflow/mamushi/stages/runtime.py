"""What the selectors cost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mamushi.config.checks import chain, of_texts
from mamushi.running.stage import Files, Job, option, reads, writes
from mamushi.stages._settings import Cell, Config, setting

TOOK = re.compile(r"took ([\d.]+) s, ([\d.]+) s of CPU$", re.M)


def timed(config: Config) -> dict[str, list[str]]:
    """Return the grid's selectors of texts, each with itself and what it is derived from."""
    names = of_texts(config, config["grid"])["selectors"]
    return {name: chain(config, name) for name in names}


class Runtime(Cell):
    """``selectors``: each with itself and what it is derived from."""

    selectors: dict[str, list[str]] = setting(timed)


class RuntimeFiles(Files):
    scores: list[Path] = reads("the scores of the selectors", named_by="scored")
    scored: list[str] = option("these selectors, in the same order")
    logs: list[str] = option("the logs of their jobs, in the same order")
    out: Path = writes("the runtime table to write")


def runtime(files: RuntimeFiles, settings: Runtime, job: Job) -> None:
    """Read in logs what the jobs took that ranked the texts of one run.

    A selector that derives from another counts with that other: without it there is no ranking.
    """
    from mamushi.io import schemas
    from mamushi.io.tables import read_table, write_table

    took = {name: logged(log) for name, log in zip(files.scored, files.logs, strict=True)}
    scores = dict(zip(files.scored, files.scores, strict=True))
    rows: list[dict[str, Any]] = []
    for name, parts in settings.selectors.items():
        ranks = read_table(scores[name], schemas.SCORES, ["rank"])["rank"]
        retain = ranks.null_count
        known = [seconds for part in parts if (seconds := took[part]) is not None]
        sums = map(sum, zip(*known, strict=True)) if len(known) == len(parts) else (None, None)
        row = {**settings.cell, "selector": name}
        row |= {"n_forget": len(ranks) - retain, "n_retain": retain}
        rows.append({**row, **dict(zip(("wall_seconds", "cpu_seconds"), sums, strict=True))})
    write_table(files.out, schemas.RUNTIME, rows, metadata={"provenance": job.origin})


def logged(log: str | Path) -> tuple[float, float] | None:
    """Return the wall and CPU seconds that a job's log ends with; None where it does not say,
    because its results were there already."""
    try:
        found = TOOK.findall(Path(log).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (float(found[-1][0]), float(found[-1][1])) if found else None
