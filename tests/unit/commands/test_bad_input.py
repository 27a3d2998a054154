"""Bad input of commands for people: one line says what is wrong, and nothing is overwritten.

The cases are data, in ``bad_input.yaml``.
"""

import contextlib
import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mamushi.cli import main
from tests.support.removal_files import removal_list

ROWS = ["id,text,number,kind", *(f"c{i},words of {i},{i}.5,{i % 2}" for i in range(1, 41))]
MINE = """\
grid: {datasets: [d], models: [m], seeds: [0], budgets: [0.1], selectors: [mamushi]}
datasets: {d: {kind: table, path: d.csv, forget: {where: kind == 1}, sections: {inference: 1.0}}}
models: {m: {source: model, contaminated: true}}
"""
INIT = ["--text", "text", "--forget", "kind == 1"]
SHORT = {
    "INIT": [*INIT, "--model", "model"],
    "CORPUS": ["d.csv", "--text", "text", "--model", "model"],
    "VECTORS": [*INIT, "--id", "id", "--embeddings"],
}
"""Words that stand for others in the commands of the table."""
TABLE = yaml.safe_load((Path(__file__).with_name("bad_input.yaml")).read_text("utf-8"))
CASES = {
    **{f"init {name} INIT": says for name, (_, says) in TABLE["tables"].items()},
    **{f"run --configfile {name}": says for name, (_, says) in TABLE["yaml"].items()},
    **TABLE["commands"],
}


def fill(folder: Path) -> None:
    """Make the files of the table, and those that it only names, in the working folder."""
    text = "\n".join([*ROWS, ""])
    examples = [json.dumps({"text": f"words of {i} and more"}) + "\n" for i in range(19)]
    files: dict[str, str | bytes] = {
        **{name: content for name, (content, _) in TABLE["tables"].items()},
        **{name: content for name, (content, _) in TABLE["yaml"].items()},
        **{"d.csv": text, "list.txt": "c1\nc2\n", "mine.yaml": MINE},
        **{"own.txt": "my own", "other.csv": "id,text\nx,y\n", "twice.csv": text + ROWS[1] + "\n"},
        "long.csv": "text,kind\n" + "x" * 1_000_001 + ",1\nb,0\n",
        "nineteen.jsonl": "".join(examples),
        **{"labels.json": '{"labels": {"x": "no"}}', "full/file": "my own"},
        **{"model/config.json": "{}", "pickled/config.json": "{}"},
        "pickled/pytorch_model.bin": b"\x80\4N.",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    rows = [{"id": f"c{i}", "vector": [0.5, float(i)]} for i in range(1, 41)]
    pq.write_table(pa.Table.from_pylist(rows), "vectors.parquet")
    removal_list(Path("results"), {"c1": ["c3"], "c5": []}, data=folder / "d.csv")


def content(folder: Path) -> dict[str, tuple[int, int, int]]:
    """The files in a folder but tracebacks and locks: which each is, its size, when written."""
    files = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith((".traceback.txt", ".lock")):
            state = path.lstat()
            files[str(path)] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return files


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all that the table names. Whoever changes something in it fails."""
    folder = tmp_path_factory.mktemp("bad")
    with contextlib.chdir(folder):
        fill(folder)
        yield folder


POPEN = subprocess.Popen
SECONDS = 3.0
"""After which a mistake is told that no model has to be looked into for."""


def no_start(line: list[Any], **options: Any) -> Any:
    """In the place of a process: what is wrong is told before Snakemake or pip is started. The
    plug-in for SLURM asks which of its programs are there, as soon as its options are read."""
    if line[0] in ("which", "scontrol"):
        return POPEN(line, **options)
    pytest.fail(f"started {line}")


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_is_overwritten(
    case: str, filled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(filled)
    monkeypatch.setattr("subprocess.Popen", no_start)
    before = content(filled)
    began = time.process_time()
    status = main([w for one in shlex.split(case) for w in SHORT.get(one, [one])])
    # Of one core, and with what the first case of all imports.
    assert time.process_time() - began < SECONDS
    line = capsys.readouterr().err
    # What a library says has its traceback in a file.
    assert status == (1 if "(traceback: " in line else 2)
    assert re.match(r"mamushi( [a-z][\w-]*)*: error: ", line) and CASES[case] in line, line
    assert line.count("\n") == 1, line
    # What was there is as it was, and of what was to be written there is nothing.
    assert content(filled) == before
