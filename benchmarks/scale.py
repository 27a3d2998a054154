"""How the cost of a selection grows: with examples, with dimensions, and with budgets.

    python -m benchmarks scale           small, a few minutes on two cores
    python -m benchmarks scale --full    10,000 to 80,000 examples, 256 to 4,096 dimensions
    python -m benchmarks scale --texts 20000 200000 1000000
    python -m benchmarks scale --texts 200000 --embed 2

With `--texts` the workflow itself goes from so many synthetic texts to the removal lists and the
page of the ranking, with vectors of width 256 in the place of a model's embeddings, or, with
`--embed`, those of a tiny language model that the same run makes and trains, by so many jobs that
share the texts. At most two jobs at a time have a thread each. Of each stage `rss_gib_*` is the
most memory that one of its processes has at any time, as the kernel counts it, with files that are
mapped; `cpu_seconds_*` is the sum over its jobs. `together_gib_*` is the most that Snakemake and
all jobs have at one time, looked at every second, where what processes share counts once. `all_*`
is of all jobs.

Of every selector `exponent_n` and `exponent_d` are slopes of log CPU seconds against log size, by
least squares. One thread; sizes take turns, and each one's median counts. What iterates until it
converges is held to a fixed number of iterations: how soon it converges depends on the data. Every
ranking is made once, however many budgets there are; `budgets_*` is what more of them cost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool, Scored, rank
from mamushi.selection.removals import count
from studies.lib.pools import by_embeddings, synthetic
from studies.lib.report import Report, arguments

ROOT = Path(__file__).parents[1]

FIXED: dict[str, dict[str, Any]] = {
    "mamushi": {"epochs": 2, "precision": "fp32"},
    "mamushi_lr": {"epochs": 3, "tolerance": 0},
}
"""Settings under which the work does not depend on when the fit stops."""

BUDGETS = (1, 9, 99)

WIDTH, SHARE, ROWS = 256, 0.1, 2**16
TINY = {
    **{"family": "llama", "hidden_size": 64, "layers": 2, "intermediate_size": 128},
    "pretraining": {"datasets": ["made"], "epochs": 1},
}
CELL = "results/runs/made/{model}/seed0"
SPY = """#!{python} -IS
import json, os, sys, time
began = time.time()
pid = os.posix_spawn({python!r}, [{python!r}, *sys.argv[1:]], os.environ)
status, usage = os.wait4(pid, 0)[1:]
taken = [sys.argv[3], usage.ru_maxrss, usage.ru_utime + usage.ru_stime, time.time() - began]
with open({log!r}, "a") as log:
    log.write(json.dumps(taken) + "\\n")
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Stands for `python` in a run's jobs, and writes down what each has used."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="the paper's sizes")
    parser.add_argument("--selectors", nargs="+", help="all that derive from no other by default")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of examples")
    parser.add_argument("--widths", nargs="+", type=int, help="numbers of dimensions")
    parser.add_argument("--repeats", type=int, default=3, help="the median of these counts")
    parser.add_argument("--texts", nargs="+", type=int, help="run the workflow on so many texts")
    parser.add_argument("--embed", type=int, metavar="JOBS", help="with --texts: by a tiny model")
    parser.add_argument("--work", type=Path, help="with --texts: a folder whose files stay there")
    args = parser.parse_args()

    if args.texts:
        report = Report("scale", threads=2)
        report.name = "scale-embedded" if args.embed else "scale-texts"
        names = args.selectors or ["lr_cos", "mamushi_lr"]
        for n in args.texts:
            with tempfile.TemporaryDirectory() as folder:
                work = args.work or Path(folder)
                if not args.embed and not (work / "vectors.parquet").exists():
                    prepare(n, work)
                whole_run(report, n, work, names, args.embed)
        print(report.write(args.results))
        return

    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    names = args.selectors or by_embeddings()
    report = Report("scale", torch.cuda.get_device_name() if torch.cuda.is_available() else None, 1)
    full = args.full
    sizes = args.sizes or [s * (5 if full else 1) for s in (2_000, 4_000, 8_000, 16_000)]
    widths = args.widths or ([256, 512, 1024, 2048, 4096] if full else [64, 128, 256, 512])
    with threadpool_limits(1):
        growth(report, "n", {n: (n, widths[0]) for n in sizes}, names, args.repeats)
        growth(report, "d", {d: (sizes[0], d) for d in widths}, names, args.repeats)
        budgets(report, synthetic(sizes[-1], widths[0]), names)
    print(report.write(args.results))


def growth(
    report: Report, what: str, sizes: dict[int, tuple[int, int]], names: list[str], repeats: int
) -> None:
    """CPU seconds of every selector at every size (examples, dimensions), and the exponent."""
    pools = {at: synthetic(n, d) for at, (n, d) in sizes.items()}
    for name in names:
        call = selection(name)
        call(synthetic(500, 32))
        taken: dict[int, list[float]] = {at: [] for at in sizes}
        for repeat in range(repeats):
            for at, pool in pools.items():
                # One is enough where a call takes long beside the noise.
                if repeat == 0 or max(taken[at]) < 2:
                    taken[at].append(cpu(call, pool))
        median = {at: float(np.median(found)) for at, found in taken.items()}
        for at, seconds in median.items():
            report.value(f"cpu_seconds_{name}_{what}{at}", seconds)
        report.value(f"exponent_{what}_{name}", exponent(median))


def exponent(seconds: dict[int, float]) -> float:
    """The slope of log seconds against log size."""
    x, y = np.log(list(seconds)), np.log(list(seconds.values()))
    return float(np.polyfit(x, y, 1)[0])


def selection(name: str) -> Callable[[Pool], Scored]:
    """The selector with its defaults, but for what is in FIXED."""
    settings = {**plugin("selector", name).defaults, **FIXED.get(name, {})}
    return lambda pool: load("selector", name).score(pool, settings, 0)


def cpu(call: Callable[[Pool], object], pool: Pool) -> float:
    """CPU seconds of a call, of as many in a row as take a tenth of a second."""
    start, calls = time.process_time(), 0
    while calls == 0 or time.process_time() - start < 0.1:
        call(pool)
        calls += 1
    return (time.process_time() - start) / calls


def budgets(report: Report, pool: Pool, names: list[str]) -> None:
    """Passes over the embeddings, and seconds, of rankings that serve more and more budgets."""
    passes = [0]

    class Counted(Pool):
        def blocks(self, *args: Any) -> Any:
            passes[0] += 1
            return super().blocks(*args)

    counted = Counted(**{key: getattr(pool, key) for key in ("ids", "forget", "embeddings")})
    counted = replace(counted, truth=pool.truth)
    name = "lr_cos" if "lr_cos" in names else names[0]
    n1 = int(pool.forget.sum())
    for number in BUDGETS:
        passes[0] = 0
        start = time.process_time()
        order = rank(counted, selection(name)(counted))
        scored = time.process_time() - start
        start = time.process_time()
        shares = np.linspace(0, 1, number + 2)[1:-1]
        lists = [pool.ids[order[: count(float(f"{share:.4f}"), n1)]] for share in shares]
        taken = time.process_time() - start
        assert all(set(a) <= set(b) for a, b in pairwise(lists))
        report.value(f"budgets_{number}_rankings", 1)
        report.value(f"budgets_{number}_passes", passes[0])
        report.value(f"budgets_{number}_selection_cpu_seconds", scored)
        report.value(f"budgets_{number}_lists_cpu_seconds", taken)


def of_domains(n: int) -> dict[str, int]:
    """Texts of each domain."""
    forget = round(SHARE * n)
    return {"forget": forget, "retain": n - forget}


def prepare(n: int, folder: Path) -> None:
    """Vectors of ``n`` texts in the place of a model's embeddings: normal, and shifted by a twelfth
    of a deviation in every dimension where the text is a forget one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    kind = pa.list_(pa.float16(), WIDTH)
    schema = pa.schema([("id", pa.string()), ("vector", kind)])
    with pq.ParquetWriter(folder / "vectors.parquet", schema, use_dictionary=False) as file:
        for domain, size in of_domains(n).items():
            for start in range(0, size, ROWS):
                count = min(ROWS, size - start)
                x = (
                    rng.standard_normal((count, WIDTH), dtype=np.float32)
                    + (domain == "forget") / 12
                )
                flat = pa.array(x.astype(np.float16).reshape(-1))
                ids = [f"inference/{domain}/{i:06d}" for i in range(start, start + count)]
                vectors = pa.FixedSizeListArray.from_arrays(flat, type=kind)
                file.write_table(pa.table([pa.array(ids), vectors], schema=schema))


def whole_run(report: Report, n: int, folder: Path, names: list[str], embed: int | None) -> None:
    """Memory and time of every stage from ``n`` texts to the lists and the page."""
    sizes, model = {"inference": of_domains(n)}, "vectors"
    models: dict[str, Any] = {model: {"embeddings": {"path": str(folder / "vectors.parquet")}}}
    if embed:
        # As few as make it a language model, since what is measured is what grows with n.
        sizes, model = {"contamination": of_domains(2000), **sizes}, "tiny"
        models = {model: TINY}
    config = {
        "grid": {
            **{"datasets": ["made"], "models": [model], "seeds": [0]},
            **{"budgets": [0.1, 0.3, 0.5, 0.7], "selectors": names},
        },
        "studies": None,
        "removal": {"ratio": names[-1]},
        "evidence": {"refits": {"whole": 2, "halves": 1}},
        "datasets": {
            "made": {"kind": "synthetic", "sizes": sizes},
        },
        "models": models,
        "execution": {"shards": embed or 1},
        "embedding": {"precision": "fp32"},
        "training": {"precision": "fp32", "trained_blocks": TINY["layers"], "epochs": 1},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    log = folder / "used"
    (folder / "bin").mkdir(exist_ok=True)
    spy = folder / "bin" / "python"
    spy.write_text(SPY.format(python=sys.executable, log=str(log)), encoding="utf-8")
    spy.chmod(0o755)
    # In the shell of each job, since the workflow puts its own Python in front of other paths.
    (folder / "path.sh").write_text(f'PATH="{spy.parent}:$PATH"\n', encoding="utf-8")
    began = time.perf_counter()
    page = folder / CELL.format(model=model) / "ranking.html"
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--cores", "2",
         "--max-threads", "1", "--directory", folder, "--quiet", "all", "--", "removals",
         page.relative_to(folder)],
        stdout=sys.stderr,
        env={**os.environ, "BASH_ENV": str(folder / "path.sh")},
    )  # fmt: skip
    together = 0.0
    while run.poll() is None:
        together = max(together, shared_out(run.pid))
        time.sleep(1)
    if run.returncode:
        raise SystemExit(run.returncode)
    report.value(f"all_wall_seconds_n{n}", time.perf_counter() - began)
    used: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for line in log.read_text(encoding="utf-8").splitlines():
        stage, rss, *seconds = json.loads(line)
        used[stage].append((rss / 2**20, *seconds))
    for stage, jobs in used.items():
        most, cpu_seconds, wall = (list(each) for each in zip(*jobs, strict=True))
        report.value(f"rss_gib_{stage}_n{n}", max(most))
        report.value(f"cpu_seconds_{stage}_n{n}", sum(cpu_seconds))
        report.value(f"wall_seconds_{stage}_n{n}", max(wall))
    of_all = [job for jobs in used.values() for job in jobs]
    report.value(f"all_rss_gib_n{n}", max(job[0] for job in of_all))
    report.value(f"together_gib_n{n}", together)
    report.value(f"all_cpu_seconds_n{n}", sum(job[1] for job in of_all))
    report.value(f"page_mib_n{n}", page.stat().st_size / 2**20)


def shared_out(process: int) -> float:
    """GiB of a process and of all that it has started, each page that several have in parts."""
    found, waiting = 0, [process]
    while waiting:
        there = Path(f"/proc/{waiting.pop()}")
        try:
            for task in (there / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
            told = (there / "smaps_rollup").read_text()
        except OSError:
            # It has ended meanwhile.
            continue
        found += sum(int(line.split()[1]) for line in told.splitlines() if line[:4] == "Pss:")
    return found / 2**20


if __name__ == "__main__":
    main()
