"""The guard of bits: two commits make the same numbers on this machine, to the last bit.

``make bits BASE=COMMIT`` runs the demo, its evidence and unlearning, a ranking by words and one by
ready vectors as the base has them and as the work tree does, and compares the values of every
table, tensor and list that both make; a file or column that one of them alone has is named, too.
What says how, when and where something was made is left out. A commit's results are kept, in
``results/bits/COMMIT``, so that a base runs once.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import deserialize

BITS = Path("results/bits").resolve()
ABOUT = re.compile(
    r"second|runtime|memory|peak|machine|processor|\bcores|threads|versions?$|digest|provenance"
    r"|settings|inputs|execution|crc32|path|minutes|workflow|^examples$"
)
"""Names of what says how, when and where something was made."""
DEMO = ([], ["evidence"], ["unlearning"], ["unlearning"])
"""Targets of the demo; the second round of its half-gap budgets measures finer ones."""
RANKINGS = {
    "words": ["--selectors", "stack", "lexical", "mamushi_words"],
    "vectors": [
        *("--embeddings", "vectors.parquet"),
        *("--selectors", "stack", "mamushi_lr", "lr_maha", "coreset", "mamushi"),
    ],
}
"""Folder -> options of ``mamushi rank``."""
TEXTS = 300


def write_table(folder: Path) -> None:
    """Write texts whose words and vectors know the unwanted third of them a little."""
    rng = np.random.default_rng(0)
    forget = np.arange(TEXTS) % 3 == 0
    words = [f"{a}{b}" for a in "bdfgklmn" for b in ("ato", "eri", "ulo", "ine")]
    weights = 1 / np.arange(1, len(words) + 1)
    texts = []
    for unwanted in forget:
        chances = weights[::-1] + weights if unwanted else weights
        texts.append(" ".join(rng.choice(words, 20, p=chances / chances.sum())))
    vectors = rng.normal(size=(TEXTS, 16)) + 0.5 * forget[:, None]
    ids = [f"t{number}" for number in range(TEXTS)]
    table = {"id": ids, "text": texts, "toxic": forget.astype(float)}
    pq.write_table(pa.table(table), folder / "texts.parquet")
    kind = pa.list_(pa.float32(), 16)
    embedding = pa.array([*vectors.astype(np.float32)], kind)
    pq.write_table(pa.table({"id": ids, "embedding": embedding}), folder / "vectors.parquet")


def results(commit: str) -> Path:
    """Return the folder with a commit's results, which are made unless they are there."""
    folder, tree = BITS / commit, BITS / commit / "tree"
    # In the work tree, so that one that was taken away is made again.
    if (complete := tree / "results" / "complete").is_file():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    git = ["git", "worktree", "add", "--force", "--quiet", "--detach", tree, commit]
    subprocess.run(git, check=True)
    # Commits that lock the same packages share an environment; which code runs, the path says.
    lock = hashlib.sha256((tree / "requirements.lock").read_bytes()).hexdigest()[:12]
    venv = BITS / f"environment-{lock}"
    subprocess.run(["make", "-C", tree, "setup", f"VENV={venv}"], check=True)
    env = {**os.environ, "PYTHONPATH": str(tree / "workflow"), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("w") as log:

        def run(where: Path, *words: str) -> None:
            where.mkdir(exist_ok=True)
            line = [venv / "bin" / words[0], *words[1:]]
            if subprocess.call(line, cwd=where, env=env, stdout=log, stderr=log):
                sys.exit(f"{' '.join(words)} failed: see {log.name}")

        for targets in DEMO:
            run(tree, "snakemake", "--profile", "profiles/demo", "--notemp", *targets)
        for name, options in RANKINGS.items():
            (folder / name).mkdir()
            write_table(folder / name)
            data = ["texts.parquet", "--text", "text", "--id", "id", "--forget", "toxic > 0.5"]
            run(folder / name, "python", "-m", "mamushi", "rank", *data, *options)
    complete.touch()
    return folder


def json_values(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value under its keys."""
    items = value.items() if isinstance(value, Mapping) else ()
    for name, item in items:
        if not ABOUT.search(name):
            yield from json_values(item, f"{key}.{name}")
    if not isinstance(value, Mapping):
        yield key, repr(value)


def file_values(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what stands for the bits of each column, key or tensor, by its name."""
    if path.suffix == ".parquet":
        for name, column in zip((t := pq.read_table(path)).column_names, t.columns, strict=True):
            yield name, f"{column.type} {column.to_pylist()!r}"
    elif path.suffix == ".safetensors":
        for name, tensor in deserialize(path.read_bytes()):
            data = hashlib.sha256(tensor["data"]).hexdigest()
            yield name, f"{tensor['dtype']} {tensor['shape']} {data}"
    elif path.suffix == ".json":
        yield from json_values(json.loads(path.read_text(encoding="utf-8")))
    else:
        yield "lines", path.read_text(encoding="utf-8")


def values(folder: Path) -> dict[str, str]:
    """Return the values of a commit's results, by file and column."""
    by_name: dict[str, str] = {}
    for pattern in ("tree/results/**/*", *(f"{name}/results/**/*" for name in RANKINGS)):
        for path in sorted(folder.glob(pattern)):
            name = str(path.relative_to(folder))
            is_data = path.suffix in (".parquet", ".safetensors", ".json", ".txt")
            if (
                path.is_file()
                and is_data
                and not re.search(r"/digests/|/log/|runtime|ranked.json", name)
            ):
                pairs = file_values(path)
                by_name |= {f"{name}: {key}": v for key, v in pairs if not ABOUT.search(key)}
    return by_name


def main(base: str) -> int:
    """Compare the work tree with a base. Return how many values differ, at most 1."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout

    # What is not committed becomes a commit without a branch.
    now = git("stash", "create").strip() or git("rev-parse", "HEAD").strip()
    was, new = (values(results(commit)) for commit in (git("rev-parse", base).strip(), now))
    lines = [f"{name} is in one of them alone" for name in sorted(was.keys() ^ new.keys())]
    lines += [
        f"{name} differs" for name in sorted(was.keys() & new.keys()) if was[name] != new[name]
    ]
    print(*lines, f"{len(was.keys() & new.keys())} values compared, {len(lines)} differ", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
