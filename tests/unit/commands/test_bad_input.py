"""Bad input of commands for people: one line says what is wrong, and nothing is overwritten."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mamushi.cli import main
from tests.support.removal_files import removal_list
from tests.support.workflow import ROOT

ROWS = ["id,text,number,kind", *(f"c{i},words of {i},{i}.5,{i % 2}" for i in range(1, 41))]
INIT = ["--text", "text", "--forget", "kind == 1", "--model", "model"]
LISTED = ["apply", "list.txt", "--data"]
MINE = """\
grid: {datasets: [d], models: [m], seeds: [0], budgets: [0.1], selectors: [mamushi]}
datasets: {d: {kind: table, path: d.csv, forget: {where: kind == 1}, sections: {inference: 1.0}}}
models: {m: {source: model, contaminated: true}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, a list of two of its rows, a configuration, and what is wrong in one way each."""
    monkeypatch.chdir(tmp_path)
    text = "\n".join([*ROWS, ""])
    files: dict[str, str | bytes] = {
        **{"d.csv": text, "list.txt": "c1\nc2\n", "mine.yaml": MINE, "own.txt": "my own"},
        **{"none.csv": "", "none.jsonl": "", "twice.csv": text + ROWS[1] + "\n"},
        "bad.yaml": "grid:\n  datasets: [a\nmodels: {",
        **{"empty.yaml": "", "list.yaml": "- a\n", "binary.yaml": bytes(range(128, 256))},
        "name.yaml": MINE.replace("[mamushi]", "[mamushy]"),
        "seed.yaml": MINE.replace("seeds: [0]", f"seeds: [{10**20}]"),
        "braces.yaml": MINE.replace("d.csv", "'a{b}/d.csv'"),
        "cut.gguf": b"GGUF\3\0\0\0\5\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0cut",
        "damaged.parquet": b"PAR1 and no more",
    }
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    for name in ("a{b}", "model", "full"):
        (tmp_path / name).mkdir()
    shutil.copy("d.csv", "a{b}")
    (tmp_path / "model/config.json").write_text("{}")
    (tmp_path / "full/file").write_text("my own")
    ranked = removal_list(Path("results"), {"c1": ["c3"], "c5": []}, data=tmp_path / "d.csv")
    shutil.copy(ranked.with_suffix(".json"), "moved.json")
    pq.write_table(pq.read_table(ranked).slice(0, 1), "moved.parquet")
    return tmp_path


def content(folder: Path) -> dict[str, bytes | None]:
    """All that lies in a folder."""
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


RANKED = "results/runs/comments/ours/seed0/removals/mamushi/beta0.50"
CASES: list[tuple[list[str], str]] = [
    # Tables.
    (["init", "none.csv", *INIT], "none.csv: is empty; give a file with a header and rows"),
    (["init", "none.jsonl", *INIT], "none.jsonl: is empty"),
    (["init", "damaged.parquet", *INIT], "damaged.parquet: damaged or not a Parquet file"),
    (["init", "d.csv", "--text", "number", *INIT[2:]], "d.csv: column 'number' holds numbers"),
    (["init", "a{b}/d.csv", *INIT], "a '{' in the path; the workflow takes that for a wildcard"),
    (["init", "d.csv", *INIT[:-1], "cut.gguf"], "cut.gguf: not a whole GGUF file"),
    ([*LISTED, "damaged.parquet", "--out", "o.parquet"], "damaged or not a Parquet file"),
    ([*LISTED, "twice.csv", "--out", "o.csv"], "twice.csv: several rows have the id 'c1'"),
    ([*LISTED, "none.csv", "--out", "o.csv"], "none of its 2 ids is there"),
    # Lists.
    (["apply", "moved.parquet", "--data", "d.csv", "--out", "o.csv"], "not the list of the manif"),
    (["export", "moved.parquet", "--to", "ids", "--out", "o.txt"], "not the list of the manifest"),
    (["verify", "none.parquet"], "none.json: no such file"),
    # What is there already is the user's own.
    ([*LISTED, "d.csv", "--out", "own.txt"], "own.txt: exists already; name another one in --out"),
    ([*LISTED, "d.csv", "--out", "d.csv"], "d.csv: exists already; name another one in --out"),
    ([*LISTED, "d.csv", "--out", "full"], "full: exists already; name another one in --out"),
    (["export", "list.txt", "--to", "ids", "--out", "own.txt"], "own.txt: exists already; name"),
    (["export", "list.txt", "--to", "jsonl", "--out", "full"], "full: exists already; name"),
    (["init", "d.csv", *INIT, "--out", "full"], "full: is a folder; name a file in --out"),
    # Places that cannot be written, also for whoever may write everywhere.
    ([*LISTED, "d.csv", "--out", "/proc/o.csv"], "/proc/o.csv: cannot be written"),
    ([*LISTED, "d.csv", "--out", "/proc/a/o.csv"], "/proc/a/o.csv: cannot be written"),
    ([*LISTED, "d.csv", "--out", "own.txt/o.csv"], "own.txt/o.csv: "),
    ([*LISTED, "d.csv", "--out", "x" * 300 + ".csv"], "x.csv: "),
    (["export", "list.txt", "--to", "ids", "--out", "/proc/o.txt"], "/proc/o.txt: cannot be wri"),
    (["ledger", "add", "list.txt", "--ledger", "/proc/ledger"], "/proc/ledger"),
    (["plan", "--json", "/proc/plan.json", "--gpus", "0"], "--gpus: 0 is no number of GPUs"),
    # Configurations.
    (["run", "--configfile", "bad.yaml"], "bad.yaml, line 3, column 7: not valid YAML"),
    (["rank", "--out", "bad.yaml"], "bad.yaml, line 3, column 7: not valid YAML"),
    (["unlearn", "list.txt", "--configfile", "bad.yaml"], "bad.yaml, line 3, column 7: not valid"),
    (["plan", "--configfile", "bad.yaml"], "bad.yaml, line 3, column 7: not valid YAML"),
    (["run", "--configfile", "empty.yaml"], "empty.yaml: is empty; write it as mamushi init does"),
    (["run", "--configfile", "list.yaml"], "list.yaml: has no keys at its top"),
    (["run", "--configfile", "binary.yaml"], "binary.yaml: is not text"),
    (["rank", "--out", "binary.yaml"], "binary.yaml: is not text"),
    (["run", "--configfile", "seed.yaml"], f"grid.seeds[0]: {10**20} is not allowed"),
    (["run", "--configfile", "braces.yaml"], "datasets.d.path: 'a{b}/d.csv' is not allowed"),
    (["run", "--snakemake-args=--cores 0"], "--cores: 0 cores run no job; give 1 or more"),
    (["rank", "--snakemake-args=-c0"], "--cores: 0 cores run no job; give 1 or more"),
]


@pytest.mark.parametrize(("words", "said"), CASES, ids=[" ".join(words)[:60] for words, _ in CASES])
def test_one_line_and_nothing_is_overwritten(
    words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(folder)
    assert main(words) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"mamushi {words[0]}: error: ") and said in line
    assert line.count("\n") == 1, line
    # What was there is as it was, and of what was to be written there is nothing.
    assert content(folder) == before


def test_all_mistakes_of_a_configuration_are_told_a_line_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--configfile", "name.yaml"]) == 2
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith("mamushi run: error: grid.selectors[0]: unknown selector 'mamushy'")
    assert len(others) == 1 and others[0].startswith("unlearning.selectors[0]: ")


def test_a_copy_of_a_list_away_from_its_run_takes_its_copies_along(folder: Path) -> None:
    shutil.copy(f"{RANKED}.parquet", "moved.parquet")
    assert main(["apply", "moved.parquet", "--data", "d.csv", "--out", "o.csv"]) == 0
    left = Path("o.csv").read_text(encoding="utf-8").splitlines()
    assert [*left] == [row for row in ROWS if row.split(",")[0] not in ("c1", "c3", "c5")]


def test_verify_takes_the_list_as_well_as_its_manifest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for ending in ("parquet", "json"):
        assert main(["verify", f"{RANKED}.{ending}"]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1] and "beta0.50" in said[0]


def test_who_reads_may_stop(folder: Path) -> None:
    """As in `mamushi show | head -1`: no traceback."""
    command = [sys.executable, "-m", "mamushi", "doctor"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, env=env, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
