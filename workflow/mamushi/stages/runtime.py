"""What the selectors cost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mamushi.config.kinds import Config
from mamushi.config.selectors import chain, of_texts
from mamushi.config.settings import setting
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import Cell

RANKED = re.compile(r"ranked in ([\d.]+) s, ([\d.]+) s of CPU$", re.M)


def timed(config: Config) -> dict[str, list[str]]:
    """Return the grid's selectors of texts, each with itself and what it is derived from."""
    names = of_texts(config, config["grid"])["selectors"]
    return {name: chain(config, name) for name in names}


def scored(config: Config) -> list[str]:
    """Return the selectors whose jobs are timed."""
    return list(dict.fromkeys(name for names in timed(config).values() for name in names))


class Runtime(Cell):
    """``chains``: by selector itself and what it is derived from; ``scored`` are all of these."""

    chains: dict[str, list[str]] = setting(timed)
    scored: list[str] = setting(scored)


def runtime(
    *, scores: list[Input], logs: list[str], out: Output, settings: Runtime, job: Job
) -> None:
    """Read in logs what it took to fit selectors and to rank the texts of one run.

    ``scores`` and ``logs`` are in the order of the settings' ``scored``. A selector that derives
    from another counts with that other: without it there is no ranking.
    """
    from mamushi.io import schemas
    from mamushi.io.tables import read_table, write_table

    seconds = dict(zip(settings.scored, map(logged, logs), strict=True))
    tables = dict(zip(settings.scored, scores, strict=True))
    rows: list[dict[str, Any]] = []
    for name, parts in settings.chains.items():
        ranks = read_table(tables[name], schemas.SCORES, ["rank"])["rank"]
        n_retain = ranks.null_count
        pairs = [pair for part in parts if (pair := seconds[part]) is not None]
        sums = map(sum, zip(*pairs, strict=True)) if len(pairs) == len(parts) else (None, None)
        row = {**settings.cell, "selector": name}
        row |= {"n_forget": len(ranks) - n_retain, "n_retain": n_retain}
        rows.append({**row, **dict(zip(("wall_seconds", "cpu_seconds"), sums, strict=True))})
    write_table(out, schemas.RUNTIME, rows, metadata={"provenance": job.origin})


def logged(log: str | Path) -> tuple[float, float] | None:
    """Return the wall and CPU seconds of the ranking alone, by a job's log; None where it does not
    say, because its results were there already."""
    try:
        matches = RANKED.findall(Path(log).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (float(matches[-1][0]), float(matches[-1][1])) if matches else None
