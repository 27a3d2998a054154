"""Time every selector on one run's embeddings, on the CPU: seconds and peak memory.

The embeddings are read once, before anything is timed. A selection is what is timed: from the
embeddings to the ranking of the forget set, with all fits. A selector that derives from another is
timed with that other, since it cannot be had without. One that needs the true density ratio is left
out where nobody knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Cell, Config, SelectorSettings, derives, selector


class Runtime(Cell):
    """Settings of the stage ``runtime``; ``bases`` are what derived selectors start from."""

    selectors: list[SelectorSettings]
    bases: list[SelectorSettings]
    repeats: int
    threads: int


def settings(config: Config, dataset: str, model: str, seed: int) -> Runtime:
    names, bases = timed(config)
    definitions = [selector(config, name) for name in names + bases]
    modules = {plugin("selector", each.kind).module for each in definitions}
    return Runtime(
        dataset=dataset,
        model=model,
        seed=seed,
        selectors=definitions[: len(names)],
        bases=definitions[len(names) :],
        **config["evidence"]["runtime"],
        code=digest(__name__, *sorted(modules)),
    )


def timed(config: Config) -> tuple[list[str], list[str]]:
    """The selectors that are timed, and what others of them start from."""
    names = list(config["grid"]["selectors"])
    bases: list[str] = []
    for name in names:
        while (found := derives(config, name)) is not None and found not in names + bases:
            bases.append(found)
            name = found
    return names, bases


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("the examples table")
    embeddings: Path = reads("their embeddings")
    layers: Path | None = reads("the texts at other depths of the model", default=None)
    out: Path = writes("the runtime table to write")


def run(files: Files, settings: Runtime, job: Job) -> None:
    """Write ``runtime``.

    Raises ``UserError`` for unusable embeddings, and when there is no selector to time.
    """
    import os

    # Read when torch looks for a GPU for the first time: all selectors run where the paper's do.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import write_table
    from mamushi.evidence.runtime import Selector, hardware, measure, row, selections, warm_up
    from mamushi.running.threads import use_workers
    from mamushi.selection.pool import read_pool

    threads, repeats = settings.threads, settings.repeats
    pool = read_pool(files.embeddings, files.examples, layers=files.layers, texts=True)
    named, bases = (
        {one.selector: Selector(one.kind, one.settings) for one in some}
        for some in (settings.selectors, settings.bases)
    )
    use_workers(threads)
    calls, left_out = selections(pool, named, settings.seed, bases)
    warm_up(pool, named, settings.seed, bases)
    timings = measure(calls, repeats)
    sizes = {
        "n_forget": int(pool.forget.sum()),
        "n_retain": int((~pool.forget).sum()),
        "width": pool.width,
        "threads": threads,
        "repeats": repeats,
    }
    rows = [
        {**settings.cell, "selector": name, **sizes, **row(one)} for name, one in timings.items()
    ]
    write_table(
        files.out,
        schemas.RUNTIME,
        pa.Table.from_pylist(rows, schema=schemas.RUNTIME.schema),
        metadata={
            "provenance": job.origin,
            "hardware": hardware(),
            "left_out": left_out,
            "seconds": {
                name: {"wall": one.wall.tolist(), "cpu": one.cpu.tolist()}
                for name, one in timings.items()
            },
        },
    )
    for entry in rows:
        print(
            f"{entry['selector']}: {entry['wall_seconds']:.4f} s (± {entry['wall_spread']:.4f}), "
            f"CPU {entry['cpu_seconds']:.4f} s, {entry['peak_mib']:.0f} MiB"
        )
