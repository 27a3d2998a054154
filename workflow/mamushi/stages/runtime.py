"""What the selectors cost."""

from __future__ import annotations

from pathlib import Path

from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Files, Job, reads, writes
from mamushi.stages._settings import Cell, Config, SelectorSettings, derives, fill, setting


def timed(config: Config) -> tuple[list[str], list[str]]:
    """Return the selectors that are timed, and what others of them start from."""
    names = list(config["grid"]["selectors"])
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
    examples: Path = reads("the examples table")
    embeddings: Path = reads("their embeddings")
    layers: Path | None = reads("the texts at other depths of the model", default=None)
    out: Path = writes("the runtime table to write")


def runtime(files: RuntimeFiles, settings: Runtime, job: Job) -> None:
    """Time every selector on one run's embeddings, on the CPU.

    Raises ``UserError`` for unusable embeddings, and as the selectors.
    """
    import os

    # Read when torch looks for a GPU for the first time: all selectors run where the paper's do.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

    import numpy as np

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import write_table
    from mamushi.evidence.runtime import Selector, measure
    from mamushi.running.machine import conditions
    from mamushi.running.threads import use_workers
    from mamushi.selection.pool import read_pool

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
        "repeats": settings.repeats,
    }
    rows = []
    for name, seconds in found.items():
        wall, cpu = np.median(seconds, axis=0).tolist()
        medians = {"wall_seconds": wall, "cpu_seconds": cpu}
        rows.append({**settings.cell, "selector": name, **sizes, **medians})
        print(f"{name}: {wall:.4f} s, CPU {cpu:.4f} s")
    write_table(
        files.out,
        schemas.RUNTIME,
        rows,
        metadata={
            "provenance": job.origin,
            "conditions": conditions(),
            "seconds": {name: seconds.T.tolist() for name, seconds in found.items()},
        },
    )
