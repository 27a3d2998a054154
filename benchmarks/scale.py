"""How memory and time of the whole workflow grow with the number of texts.

    python -m benchmarks scale                       20,000 texts, a few minutes on two cores
    python -m benchmarks scale --texts 20000 200000 1000000

The workflow goes from so many synthetic texts to the removal lists and the page of the ranking,
with vectors of `--width` 256 in the place of embeddings. At most two jobs at a time have a thread
each. Of each stage `rss_gib_*` is the most memory that one of its processes has at any time, as the
kernel counts it, with files that are mapped; `cpu_seconds_*` is the sum over its jobs. `all_*` is
of all jobs.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from studies.lib.report import Report, arguments

ROOT = Path(__file__).parents[1]

SHARE, ROWS = 0.1, 2**16
PAGE = "results/runs/made/vectors/seed0/ranking.html"
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
    parser.add_argument("--selectors", nargs="+", default=["lr_cos", "mamushi_lr"])
    parser.add_argument("--texts", nargs="+", type=int, default=[20_000], help="numbers of texts")
    parser.add_argument("--width", type=int, default=256, help="numbers of a vector")
    args = parser.parse_args()
    report = Report("scale-texts", threads=2)
    for n in args.texts:
        with tempfile.TemporaryDirectory() as folder:
            prepare(n, Path(folder), args.width)
            whole_run(report, n, Path(folder), args.selectors)
    print(report.write(args.results))


def of_domains(n: int) -> dict[str, int]:
    """Texts of each domain."""
    forget = round(SHARE * n)
    return {"forget": forget, "retain": n - forget}


def prepare(n: int, folder: Path, width: int) -> None:
    """Vectors of ``n`` texts in the place of a model's embeddings: normal, and shifted by a twelfth
    of a deviation in every dimension where the text is a forget one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    kind = pa.list_(pa.float16(), width)
    schema = pa.schema([("id", pa.string()), ("vector", kind)])
    with pq.ParquetWriter(folder / "vectors.parquet", schema, use_dictionary=False) as file:
        for domain, size in of_domains(n).items():
            for start in range(0, size, ROWS):
                count = min(ROWS, size - start)
                x = (
                    rng.standard_normal((count, width), dtype=np.float32)
                    + (domain == "forget") / 12
                )
                flat = pa.array(x.astype(np.float16).reshape(-1))
                ids = [f"inference/{domain}/{i:06d}" for i in range(start, start + count)]
                vectors = pa.FixedSizeListArray.from_arrays(flat, type=kind)
                file.write_table(pa.table([pa.array(ids), vectors], schema=schema))


def whole_run(report: Report, n: int, folder: Path, names: list[str]) -> None:
    """Report memory and time of every stage from ``n`` texts to the lists and the page."""
    config = {
        "grid": {
            **{"datasets": ["made"], "models": ["vectors"], "seeds": [0]},
            **{"budgets": [0.1, 0.3, 0.5, 0.7], "selectors": names},
        },
        "studies": None,
        "removal": {"ratio": names[-1]},
        "evidence": {"refits": {"whole": 2, "halves": 1}},
        "datasets": {"made": {"kind": "synthetic", "sizes": {"inference": of_domains(n)}}},
        "models": {"vectors": {"embeddings": {"path": str(folder / "vectors.parquet")}}},
        "embedding": {"precision": "fp32"},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    log, spy = folder / "used", folder / "bin" / "python"
    spy.parent.mkdir()
    spy.write_text(SPY.format(python=sys.executable, log=str(log)), encoding="utf-8")
    spy.chmod(0o755)
    # In the shell of each job, since the workflow puts its own Python in front of other paths.
    (folder / "path.sh").write_text(f'PATH="{spy.parent}:$PATH"\n', encoding="utf-8")
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--cores", "2",
         "--max-threads", "1", "--directory", folder, "--quiet", "all", "--", "removals", PAGE],
        stdout=sys.stderr,
        env={**os.environ, "BASH_ENV": str(folder / "path.sh"), "MAMUSHI_WARM": "off"},
        check=True,
    )  # fmt: skip
    report.value(f"all_wall_seconds_n{n}", time.perf_counter() - began)
    used: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in log.read_text(encoding="utf-8").splitlines():
        stage, rss, seconds, _ = json.loads(line)
        used[stage].append((rss / 2**20, seconds))
    used["all"] = [job for jobs in used.values() for job in jobs]
    for stage, jobs in used.items():
        report.value(f"rss_gib_{stage}_n{n}", max(rss for rss, _ in jobs))
        report.value(f"cpu_seconds_{stage}_n{n}", sum(seconds for _, seconds in jobs))
    report.value(f"page_mib_n{n}", (folder / PAGE).stat().st_size / 2**20)


if __name__ == "__main__":
    main()
