"""Bad input of commands for people: one line says what is wrong, and nothing is overwritten.

The cases are data, in ``bad_input.yaml``.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mamushi.cli import main
from tests.support.removal_files import removal_list
from tests.support.workflow import ROOT

ROWS = ["id,text,number,kind", *(f"c{i},words of {i},{i}.5,{i % 2}" for i in range(1, 41))]
MINE = """\
grid: {datasets: [d], models: [m], seeds: [0], budgets: [0.1], selectors: [mamushi]}
datasets: {d: {kind: table, path: d.csv, forget: {where: kind == 1}, sections: {inference: 1.0}}}
models: {m: {source: model, contaminated: true}}
"""
RANKED = "results/runs/comments/ours/seed0/removals/mamushi/beta0.50"
INIT = ["--text", "text", "--forget", "kind == 1"]
SHORT = {
    "INIT": [*INIT, "--model", "model"],
    "CORPUS": ["d.csv", "--text", "text", "--model", "model"],
    "VECTORS": [*INIT, "--id", "id", "--embeddings"],
    "RANKED": [f"{RANKED}.parquet"],
}
"""Words that stand for others in the commands of the table."""


EXAMPLES = {
    "examples": [f"words of {i} and more" for i in range(30)],
    "nineteen": [f"words of {i} and more" for i in range(19)],
}
"""Texts of examples by the file that has them."""


def lines(texts: list[Any]) -> str:
    """JSON Lines with a column of texts."""
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


class Case(NamedTuple):
    """A command, and a part of what it says."""

    id: str
    words: list[str]
    says: str


class Cases(yaml.SafeLoader):
    """Reads the table, in which long contents are named and not written out."""


MAKERS: dict[str, Any] = {
    "!long": lambda length: "text,kind\n" + "x" * int(length) + ",1\nb,0\n",
    "!mine": lambda text: MINE + text,
}
for tag, make in MAKERS.items():
    Cases.add_constructor(tag, lambda loader, node, make=make: make(node.value))
TABLE = yaml.load((Path(__file__).with_name("bad_input.yaml")).read_text("utf-8"), Cases)


def changed(change: str) -> str:
    """The good configuration with another value of a key."""
    key, _, value = change.partition(" = ")
    config = yaml.safe_load(MINE)
    *sections, last = (part.strip("'") for part in key.split("."))
    at = config
    for name in sections:
        at = at.setdefault(name, {})
    at[yaml.safe_load(last) if last.isdigit() else last] = yaml.safe_load(value)
    return yaml.safe_dump(config)


CHANGED = {f"changed{i}.yaml": change for i, change in enumerate(TABLE["configurations"])}


def cases() -> Iterator[Case]:
    """Every line of the table."""
    for name, (_, says) in TABLE["tables"].items():
        yield Case(name, ["init", name, *SHORT["INIT"]], says)
    for name, (_, says) in TABLE["yaml"].items():
        yield Case(name, ["run", "--configfile", name], says)
    for name, change in CHANGED.items():
        yield Case(change, ["run", "--configfile", name], TABLE["configurations"][change])
    for line, says in TABLE["commands"].items():
        words = [word for part in shlex.split(line) for word in SHORT.get(part, [part])]
        yield Case(line or "nothing", words, says.replace("RANKED", RANKED))


CASES = [*cases()]


def fill(folder: Path) -> None:
    """Make the files of the table, and those that it only names, in the working folder."""
    text = "\n".join([*ROWS, ""])
    files: dict[str, str | bytes] = {
        **{name: content for name, (content, _) in TABLE["tables"].items()},
        **{name: content for name, (content, _) in TABLE["yaml"].items()},
        **{name: changed(change) for name, change in CHANGED.items()},
        **{"d.csv": text, "list.txt": "c1\nc2\n", "mine.yaml": MINE},
        **{"own.txt": "my own", "other.csv": "id,text\nx,y\n"},
        "nested.jsonl": json.dumps({"id": "c1", "doc": {"text": "words"}, "kind": 1}) + "\n",
        "twice.csv": text + ROWS[1] + "\n",
        **{f"{name}.jsonl": lines(texts) for name, texts in EXAMPLES.items()},
        "labels.json": '{"labels": {"x": "no"}}',
        **{"full/file": "my own", "a{b}/d.csv": text, "model/config.json": "{}"},
        **{"pickled/config.json": "{}", "pickled/pytorch_model.bin": b"\x80\4N."},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    rows = [{"id": f"c{i}", "vector": [0.5, float(i)]} for i in range(1, 41)]
    pq.write_table(pa.Table.from_pylist(rows), "vectors.parquet")
    ranked = removal_list(Path("results"), {"c1": ["c3"], "c5": []}, data=folder / "d.csv")
    shutil.copy(ranked.with_suffix(".json"), "manifest.json")


def content(folder: Path) -> dict[str, tuple[int, int, int]]:
    """The files in a folder but tracebacks and locks: which each is, its size, when written."""
    files = {}
    for path in folder.rglob("*"):
        if path.is_dir() or path.name.endswith((".traceback.txt", ".lock")):
            continue
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


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_one_line_and_nothing_is_overwritten(
    case: Case, filled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(filled)
    monkeypatch.setattr("subprocess.Popen", no_start)
    before = content(filled)
    began = time.process_time()
    try:
        status: object = main(case.words)
    except SystemExit as end:
        status = end.code
    # Of one core, and with what the first case of all imports.
    assert time.process_time() - began < SECONDS
    line = capsys.readouterr().err
    # What a library says has its traceback in a file.
    assert status == (1 if "(traceback: " in line else 2)
    assert re.match(r"mamushi( [a-z][\w-]*)*: error: ", line) and case.says in line, line
    assert line.count("\n") == 1, line
    # What was there is as it was, and of what was to be written there is nothing.
    assert content(filled) == before


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table and a removal list of it."""
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("\n".join([*ROWS, ""]), encoding="utf-8")
    removal_list(Path("results"), {"c1": ["c3"], "c5": []}, data=tmp_path / "d.csv")
    return tmp_path


def test_all_mistakes_of_a_configuration_are_told_a_line_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text(changed("grid.seeds = [-1, 0.5]"), encoding="utf-8")
    assert main(["run"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        "mamushi run: error: grid.seeds[0]: Input should be greater than or equal to 0"
    )
    assert second.startswith("grid.seeds[1]: Input should be a valid integer")


def test_who_reads_may_stop(folder: Path) -> None:
    """As in `mamushi show | head -1`: no traceback."""
    export = ["export", f"{RANKED}.parquet", "--to", "ids", "--out", "ids"]
    command = [sys.executable, "-m", "mamushi", *export]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, env=env, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
