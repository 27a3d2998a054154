"""A forecast, and what became of it, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

GIGA = 1e9


def clock(seconds: float) -> str:
    """A time in the unit that suits it: ``8 s``, ``12 min``, ``5.2 h``, ``1,530 h``."""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.1f} min" if seconds < 9.95 * 60 else f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 99.95 else f"{hours:,.0f} h"


def size(count: float) -> str:
    """Bytes in the unit that suits them: ``20 kB``, ``6.8 GB``, ``15.2 TB``."""
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Rows under a head, in columns; those of ``left`` are flush left, the others right."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def plan(forecast: Mapping[str, Any]) -> str:
    """The table of ``make plan``, by rule, and the totals under it."""
    if not forecast["jobs"]:
        return "Nothing to be done."
    gpus = forecast["gpu_seconds"] > 0
    rows = []
    for rule, entry in sorted(
        forecast["rules"].items(), key=lambda item: (-item[1]["wall_seconds"], item[0])
    ):
        rows.append(
            [
                rule,
                f"{entry['jobs']:,}",
                *([clock(entry["gpu_seconds"]) if entry["gpu_seconds"] else "-"] if gpus else []),
                clock(entry["cpu_seconds"]),
                clock(entry["job_seconds"]),
                f"{entry['memory_mb'] / 1000:.1f} GB" if entry["memory_mb"] else "-",
                "measured" if entry["measured"] else "requested" if entry["memory_mb"] else "",
                _sources(entry["sources"]),
            ]
        )
    own = [f"{forecast['jobs']:,}"]
    own += [clock(forecast["gpu_seconds"])] if gpus else []
    rows.append(["all, with Snakemake", *own, clock(forecast["cpu_seconds"]), *[""] * 4])
    head = ["rule", "jobs", *(["GPU"] if gpus else []), "CPU", "a job", "memory", "", "from"]
    last = len(head) - 1
    return "\n".join([table(head, rows, (0, last - 1, last)), "", *_totals(forecast)])


def _totals(forecast: Mapping[str, Any]) -> list[str]:
    disk, more = forecast["disk"], forecast["more"]
    wall = f"Wall time: {clock(forecast['wall_seconds'])} with {forecast['limits']}"
    if forecast["gpu_seconds"]:
        wall += f" (at most {forecast['gpus']:.0f} GPUs busy)"
    lines = [
        f"{wall}; the longest chain of jobs takes {clock(forecast['critical_seconds'])}.",
        f"Memory: {size(forecast['memory_mb'] * 1e6)} at the peak, of {forecast['memory_of']}.",
        f"Disk: {size(disk['peak'])} at the peak ({size(disk['checkpoints'])} of it checkpoints of "
        f"running jobs{_trunks(disk)}), {size(disk['end'])} at the end;"
        f" with keep_checkpoints {size(disk['peak_kept'])} and {size(disk['end_kept'])}.",
    ]
    if more["jobs"]:
        added = f"Once the sweeps are known, up to {more['jobs']:,} jobs more"
        lines.append(f"{added} (up to {clock(more['gpu_seconds'])} of a GPU).")
    used = {source for entry in forecast["rules"].values() for source in entry["sources"]}
    if "FLOP" in used:
        lines.append(f"FLOP: {forecast['rate']}.")
    lines += [f"{model}: {about}." for model, about in forecast["models"].items()]
    lines += [f"{dataset}: {about}." for dataset, about in forecast["datasets"].items()]
    return lines


def _trunks(disk: Mapping[str, float]) -> str:
    return f", {size(disk['trunks'])} caches of hidden states" if disk["trunks"] else ""


def _sources(sources: Mapping[str, int]) -> str:
    """The kinds of sources, each with the number of jobs where there are several."""
    if len(sources) == 1:
        return next(iter(sources))
    return ", ".join(f"{source} ({count:,})" for source, count in sources.items())


def line(forecast: Mapping[str, Any]) -> str:
    """A forecast in one line, as it is printed when a run starts."""
    parts = [f"{clock(forecast['wall_seconds'])} wall"]
    if forecast["gpu_seconds"]:
        parts.append(f"{clock(forecast['gpu_seconds'])} GPU")
    parts.append(f"{clock(forecast['cpu_seconds'])} CPU")
    parts.append(f"{size(forecast['memory_mb'] * 1e6)} memory")
    parts.append(f"{size(forecast['disk']['peak'])} disk")
    used = forecast["benchmarks"]
    source = f"from {used} benchmark{'s' * (used != 1)}" if used else "without any benchmark"
    more = forecast["more"]["jobs"]
    added = f", and up to {more} that sweeps may add" if more else ""
    return f"Forecast for {forecast['jobs']} jobs{added}: about {', '.join(parts)}; {source}."


def outcome(forecast: Mapping[str, Any], actual: Mapping[str, Any], longest: int = 8) -> str:
    """Forecast against actual, for the rules that took or were to take the most, and in all."""
    rules = {**dict.fromkeys(forecast["rules"]), **dict.fromkeys(actual["rules"])}
    empty = {"jobs": 0, "cpu_seconds": 0.0, "wall_seconds": 0.0}

    def both(rule: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return forecast["rules"].get(rule, empty), actual["rules"].get(rule, empty)

    ordered = sorted(rules, key=lambda rule: -max(entry["wall_seconds"] for entry in both(rule)))
    rows = []
    for rule in ordered[:longest]:
        mine, theirs = both(rule)
        rows.append(
            [
                rule,
                f"{mine['jobs']:,}",
                f"{theirs['jobs']:,}",
                clock(mine["cpu_seconds"]),
                clock(theirs["cpu_seconds"]),
                clock(mine["wall_seconds"]),
                clock(theirs["wall_seconds"]),
            ]
        )
    if len(ordered) > longest:
        rest = [both(rule) for rule in ordered[longest:]]
        rows.append([f"{len(rest)} others", *_summed(rest)])
    rows.append(
        [
            "run, with Snakemake",
            f"{forecast['jobs']:,}",
            f"{actual['done']:,}",
            clock(forecast["cpu_seconds"]),
            clock(actual["cpu_seconds"]),
            clock(forecast["wall_seconds"]),
            clock(actual["wall_seconds"]),
        ]
    )
    head = ["rule", "jobs", "done", "CPU forecast", "actual", "wall forecast", "actual"]
    failed = f" {actual['failed']} failed." if actual["failed"] else ""
    return f"Forecast against actual:{failed}\n{table(head, rows)}"


def _summed(rest: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[str]:
    jobs = [f"{sum(pair[side]['jobs'] for pair in rest):,}" for side in (0, 1)]
    times = [
        clock(sum(pair[side][name] for pair in rest))
        for name in ("cpu_seconds", "wall_seconds")
        for side in (0, 1)
    ]
    return [*jobs, *times]
