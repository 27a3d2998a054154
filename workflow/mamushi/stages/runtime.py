"""What the selectors cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mamushi.configuration.checks import of_texts
from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Files, Job, option, reads, writes
from mamushi.stages._settings import Cell, Config, SelectorSettings, derives, fill, setting


def timed(config: Config) -> tuple[list[str], list[str]]:
    """Return the selectors that are timed, and what others of them start from."""
    names = of_texts(config, config["grid"])["selectors"]
    bases: list[str] = []
    for name in names:
        while (found := derives(config, name)) is not None and found not in names + bases:
            bases.append(found)
            name = found
    return names, bases


def definitions(config: Config, place: int) -> list[SelectorSettings]:
    """Return the selectors that are timed (0), or what others of them start from (1)."""
    return [fill(SelectorSettings, config, selector=name) for name in timed(config)[place]]


class Runtime(Cell):
    """``bases`` are what derived selectors start from."""

    selectors: list[SelectorSettings] = setting(lambda config: definitions(config, 0))
    bases: list[SelectorSettings] = setting(lambda config: definitions(config, 1))
    repeats: int = setting("evidence.runtime.repeats")
    threads: int = setting("evidence.runtime.threads")
    code: str = setting(
        lambda stage, selectors, bases: digest(
            stage, *sorted({plugin("selector", each.kind).module for each in selectors + bases})
        ),
        default="",
    )


class RuntimeFiles(Files):
    examples: Path | None = reads("the examples table, to run the selectors on", default=None)
    embeddings: Path | None = reads("their embeddings", default=None)
    layers: Path | None = reads("the texts at other depths of the model", default=None)
    scores: list[Path] = reads(
        "without repeats, the scores of the selectors", named_by="scored", default=()
    )
    scored: list[str] = option("these selectors, in the same order", default=())
    logs: list[str] = option("the logs of their jobs, in the same order", default=())
    out: Path = writes("the runtime table to write")


def runtime(files: RuntimeFiles, settings: Runtime, job: Job) -> None:
    """Time every selector on one run's embeddings, on the CPU; without repeats, read what the jobs
    of the scores took.

    Raises ``UserError`` for unusable embeddings, and as the selectors.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import write_table

    rows, about = (_measured if settings.repeats else _logged)(files, settings)
    rows = [{**settings.cell, "repeats": settings.repeats, **row} for row in rows]
    write_table(files.out, schemas.RUNTIME, rows, metadata={"provenance": job.origin, **about})


Rows = list[dict[str, Any]]


def _measured(files: RuntimeFiles, settings: Runtime) -> tuple[Rows, dict[str, Any]]:
    """Return the rows of the table from runs of all selectors, and what to say of them."""
    import os

    # Read when torch looks for a GPU for the first time: all selectors run where the paper's do.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

    import numpy as np

    from mamushi.evidence.runtime import Selector, measure
    from mamushi.running.machine import conditions
    from mamushi.running.threads import use_workers
    from mamushi.selection.pool import read_pool

    if files.embeddings is None or files.examples is None:
        do = "give --examples and --embeddings, or set repeats to 0"
        raise UserError("nothing to run the selectors on", do=do)
    pool = read_pool(files.embeddings, files.examples, layers=files.layers, texts=True)
    use_workers(settings.threads)
    known = {
        one.selector: Selector(one.kind, one.settings)
        for one in settings.selectors + settings.bases
    }
    names = [one.selector for one in settings.selectors]
    found = measure(pool, names, known, settings.seed, settings.repeats)
    sizes = {
        "n_forget": int(pool.forget.sum()),
        "n_retain": int((~pool.forget).sum()),
        "width": pool.width,
        "threads": settings.threads,
    }
    rows = []
    for name, seconds in found.items():
        wall, cpu = np.median(seconds, axis=0).tolist()
        rows.append({"selector": name, **sizes, "wall_seconds": wall, "cpu_seconds": cpu})
        print(f"{name}: {wall:.4f} s, CPU {cpu:.4f} s")
    all_seconds = {name: each.T.tolist() for name, each in found.items()}
    return rows, {"conditions": conditions(), "seconds": all_seconds}


def _logged(files: RuntimeFiles, settings: Runtime) -> tuple[Rows, dict[str, Any]]:
    """Return the rows of the table from the logs of the jobs that scored, and nothing to say."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table
    from mamushi.evidence.runtime import logged

    took = {name: logged(log) for name, log in zip(files.scored, files.logs, strict=True)}
    scores = dict(zip(files.scored, files.scores, strict=True))
    base = {
        one.selector: one.settings.get(plugin("selector", one.kind).literals.get("DERIVES", ""))
        for one in settings.selectors + settings.bases
    }
    rows: Rows = []
    for one in settings.selectors:
        ranks = read_table(scores[one.selector], schemas.SCORES, ["rank"])["rank"]
        retain, parts = ranks.null_count, []
        name: str | None = one.selector
        while name is not None:
            parts.append(took[name])
            name = base[name]
        known = [seconds for seconds in parts if seconds is not None]
        sums = map(sum, zip(*known, strict=True)) if len(known) == len(parts) else (None, None)
        row = {"selector": one.selector, "n_forget": len(ranks) - retain, "n_retain": retain}
        row |= {"width": None, "threads": None}
        rows.append({**row, **dict(zip(("wall_seconds", "cpu_seconds"), sums, strict=True))})
    return rows, {}
