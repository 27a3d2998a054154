"""A dataset's file that is saved anew runs again what it changes: nothing but itself, or all."""

import csv
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support.small_grid import CONFIG, DATASET, RUN, contents
from tests.support.workflow import run

LIST = f"{RUN}/removals/lr_cos/beta0.25.parquet"
OWN = {
    "kind": "table",
    "path": "own.csv",
    "text": "text",
    "forget": {"column": "topic", "values": ["snakes"]},
}


def write(path: Path) -> None:
    words = [f"word{number}" for number in range(120)]
    draw = random.Random(0)
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "topic"])
        for row in range(600):
            topic = ["snakes", "tea", "tea"][row % 3]
            chosen = draw.choices(words[40:] if topic == "tea" else words[:80], k=9)
            writer.writerow([" ".join(chosen), topic])


@pytest.mark.slow
def test_a_file_saved_anew(tmp_path: Path) -> None:
    config = {**CONFIG, "datasets": {DATASET: OWN}}
    source, folder = tmp_path / "own.csv", tmp_path / "results"

    def ran(*options: str) -> Counter[str]:
        done = run(LIST, *options, directory=tmp_path, config=config)
        begun = [
            line.split()[1]
            for line in done.stdout.splitlines()
            if line.endswith(":")
            and line.split()[0].removeprefix("local") in ("rule", "checkpoint")
        ]
        return Counter(name.rstrip(":") for name in begun)

    write(source)
    first, before = ran(), contents(folder)
    assert first.keys() > {"examples", "contaminate", "embed", "score", "remove"}
    assert ran() == {}

    # A BOM, as spreadsheets write it, and an old date.
    source.write_bytes(b"\xef\xbb\xbf" + source.read_bytes())
    os.utime(source, (0, 0))
    assert ran("--dry-run") == {"examples": 1}
    assert ran() == {"examples": 1}
    after = contents(folder)
    assert {name for name in before if after[name] != before[name]} == {f"data/{DATASET}/card.json"}
    assert ran() == {}
    source.touch()
    assert ran() == {}

    # Another text, and an old date: one run does it all.
    source.write_bytes(source.read_bytes().replace(b"word7", b"other", 1))
    os.utime(source, (0, 0))
    assert ran() == first
    assert ran() == {}
