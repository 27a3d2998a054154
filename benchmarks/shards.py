"""Memory and CPU time of `embed` and `score` against the number of texts, and what a sample costs.

    python benchmarks/shards.py --embed 20000 200000 --score 20000 200000 1000000 --sampled 200000

Each stage runs as the command that its rule calls. Memory is what the kernel counts of the process
at most: `anonymous`, which only its end gives back, and `resident`, with the pages of mapped files
that the system drops as it needs. Texts are random tokens (4 to 12 of them) for a language
model of one block and random weights; what is ranked are two Gaussians, a tenth forget, whose best
AUC is 0.92, so that the loss by fitting on a sample is known against fitting on all.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.io import schemas
from mamushi.io.files import write_json
from mamushi.io.shards import BLOCK
from mamushi.io.tables import read_metadata, write_table, writing
from mamushi.lm import loading, tiny
from mamushi.registry import plugin
from report import Report, arguments

APART = 2.0
"""Distance of the means of the domains in standard deviations: AUC = Phi(2 / sqrt 2) = 0.92."""
KINDS = {"anonymous_gb": "RssAnon", "resident_gb": "VmHWM"}
"""What the kernel counts of a process, in kB."""


def given() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--embed", type=int, nargs="*", default=[], help="numbers of texts")
    parser.add_argument("--score", type=int, nargs="*", default=[], help="numbers of texts")
    parser.add_argument("--sampled", type=int, help="texts that are scored by fits on fewer")
    parser.add_argument("--samples", type=int, nargs="*", default=[20_000, 50_000, 100_000])
    parser.add_argument("--width", type=int, default=256)
    return parser.parse_args()


def names(n: int) -> tuple[pa.Array, np.ndarray]:
    """Ids (n,) as long as those of a real dataset, and which are forget."""
    forget = np.random.default_rng(0).random(n) < 0.1
    return pa.array([f"train.csv:{i:012d}" for i in range(n)]), forget


def write_examples(path: Path, n: int) -> None:
    ids, forget = names(n)
    columns = {
        "id": ids,
        "text": pa.array(["a text"]).take(pa.array(np.zeros(n, np.int64))),
        "domain": np.where(forget, "forget", "retain"),
        "section": pa.array(["inference"]).take(pa.array(np.zeros(n, np.int64))),
        "group": pa.nulls(n, pa.string()),
        "log_density_ratio": pa.nulls(n, pa.float64()),
    }
    write_table(path, schemas.EXAMPLES, columns)


def write_base(root: Path, width: int) -> None:
    sizes = {"layers": 1, "heads": 4, "key_value_heads": 4, "vocabulary_size": 384}
    definition = {"family": "llama", "hidden_size": width, "intermediate_size": 2 * width}
    definition |= {**sizes, "max_positions": 32}
    model, tokenizer = tiny.build(definition, ["a few words to begin with"], 0)
    model.save_pretrained(root / "base")
    tokenizer.save_pretrained(root / "base")
    about = {"revision": None, "contaminated": False}
    write_json(root / "card.json", loading.inspect("made", str(root / "base"), **about))


def write_tokens(path: Path, n: int) -> None:
    lengths = np.random.default_rng(1).integers(4, 13, n)
    flat = np.random.default_rng(2).integers(3, 300, int(lengths.sum())).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = {"id": names(n)[0], "tokens": pa.ListArray.from_arrays(offsets, flat)}
    about = {"max_length": 16, "bos_token_id": None}
    write_table(path, schemas.TOKENS, columns, metadata=about)


def write_embeddings(path: Path, n: int, width: int) -> None:
    ids, forget = names(n)
    rng = np.random.default_rng(3)
    shift = rng.normal(size=width)
    shift *= APART / np.linalg.norm(shift)
    scale = np.linspace(0.5, 2.0, width)
    with writing(path, schemas.EMBEDDINGS, metadata={}) as write:
        for start in range(0, n, BLOCK):
            part = slice(start, min(start + BLOCK, n))
            x = rng.standard_normal((part.stop - start, width), dtype=np.float32)
            x += forget[part, None] * shift.astype(np.float32)
            x *= scale.astype(np.float32)
            flat = pa.array(x.astype(np.float16).reshape(-1))
            domain = np.where(forget[part], "forget", "retain")
            vectors = pa.FixedSizeListArray.from_arrays(flat, width)
            write({"id": ids[part], "domain": domain, "embedding": vectors})


def measured(*words: str | Path) -> dict[str, float]:
    """Run a stage; CPU seconds, and GB of memory at most."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "mamushi", *map(str, words)]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    most = dict.fromkeys(KINDS.values(), 0)
    while process.poll() is None:
        try:
            said = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            break
        for row in said.splitlines():
            name, _, value = row.partition(":")
            if name in most:
                most[name] = max(most[name], int(value.split()[0]))
        time.sleep(0.05)
    _, told = process.communicate()
    assert process.returncode == 0, told
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    gigabytes = {name: most[key] / 1e6 for name, key in KINDS.items()}
    return {"cpu_seconds": seconds, **gigabytes}


def keep(report: Report, name: str, found: dict[str, float]) -> None:
    for what, number in found.items():
        report.value(f"{name}_{what}", number)


def embed(report: Report, root: Path, n: int) -> None:
    write_examples(root / "examples.parquet", n)
    write_tokens(root / "tokens.parquet", n)
    how: dict[str, Any] = {"pooling": "mean", "skip_bos": True, "layer": -1, "max_length": 16}
    settings = {"embedding": how | {"precision": "fp32"}, "training": None}
    read = [f"--{name}={root / name}.parquet" for name in ("examples", "tokens")]
    read += [f"--model-card={root / 'card.json'}", f"--settings={json.dumps(settings)}"]
    whole, joined = root / "whole.parquet", root / "joined.parquet"
    keep(report, f"embed_n{n}", measured("embed", *read, f"--out={whole}"))
    parts = [root / f"{i + 1}-of-3.parquet" for i in range(3)]
    for part in parts:
        found = measured("embed", *read, f"--out={part}", f"--shard={part.stem}")
        keep(report, f"embed_{part.stem}_n{n}", found)
    found = measured("embed", *read, f"--out={joined}", "--shards", *parts)
    keep(report, f"embed_joined_n{n}", found)
    same = joined.read_bytes() == whole.read_bytes()
    report.value(f"embed_joined_n{n}_same_bytes", str(same))
    for path in (whole, joined, *parts):
        path.unlink()


def score(report: Report, root: Path, n: int, kind: str, **changes: Any) -> None:
    values = plugin("selector", kind).defaults | changes
    settings = {"kind": kind, "selector": kind, "settings": values, "seed": 0}
    read = [f"--{name}={root / name}.parquet" for name in ("examples", "embeddings")]
    out = root / "scores.parquet"
    name = f"score_{kind}_n{n}"
    if "fit_sample" in changes:
        name += f"_fit_{changes['fit_sample'] or 'all'}"
    keep(
        report, name, measured("score", *read, f"--out={out}", f"--settings={json.dumps(settings)}")
    )
    report.value(f"{name}_auc", f"{read_metadata(out)['details']['auc']:.6f}")
    out.unlink()


def main() -> None:
    args = given()
    report = Report("shards", None, 1)
    report.value("width", args.width)
    with tempfile.TemporaryDirectory(dir=Path()) as folder:
        root = Path(folder).resolve()
        write_base(root, args.width)
        for n in args.embed:
            embed(report, root, n)
        for n in sorted({*args.score, *([args.sampled] if args.sampled else [])}):
            write_examples(root / "examples.parquet", n)
            write_embeddings(root / "embeddings.parquet", n, args.width)
            if n in args.score:
                score(report, root, n, "lr_cos")
                score(report, root, n, "mamushi_lr")
            if n == args.sampled:
                for most in (*args.samples, None):
                    score(report, root, n, "linear", depths=[1], fit_sample=most)
                    score(report, root, n, "mamushi_lr", fit_sample=most)
    report.write(args.results)


if __name__ == "__main__":
    main()
