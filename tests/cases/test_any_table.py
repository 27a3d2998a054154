"""Any table, ranked by vectors and applied: what leaves is what ten lines of plain Python say.

Tables are drawn by hypothesis: format, packing, shards, quotes, line ends, byte-order marks, ids of
every kind. `MAMUSHI_TABLES=10000` draws more than the test does by itself.
"""

import csv
import gzip
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.registry import plugin
from mamushi_curate.tables import readers
from tests.support.removal_files import command
from tests.unit.data.test_examples import DATA, NO_LIMIT

TABLES = int(os.environ.get("MAMUSHI_TABLES", "100"))
CELL = {"dataset": "d", "model": "m", "seed": 0, "selector": "lr_cos"}
LINES = ("csv", "tsv", "jsonl")


def zipped(content: bytes, name: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(name, content)
    return sink.getvalue()


PACK: dict[str, Callable[[bytes, str], bytes]] = {
    "": lambda content, _: content,
    ".gz": lambda content, _: gzip.compress(content, mtime=0),
    ".zst": lambda content, _: pa.Codec("zstd").compress(content, asbytes=True),
    ".zip": zipped,
}
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs", "Cc"])
    | st.sampled_from(list("\",;\t\n '")),
    min_size=1,
    max_size=12,
)
SAID = WORDS | st.lists(WORDS, min_size=2, max_size=4).map("\n".join)
"""Texts, some of several lines."""
IDS: dict[str, st.SearchStrategy[Any]] = {
    "text": WORDS.filter(lambda name: bool(name.strip())),
    "short": st.sampled_from([f"{a}{b}" for a in "abcdefgh" for b in "0123456789"]),
    "integer": st.integers(-(2**53), 2**53),
    "small": st.integers(0, 60),
    "float": st.integers(0, 60).map(float),
}


@dataclass(frozen=True)
class Drawn:
    """A table: its rows, and how they are written."""

    rows: list[dict[str, Any]]
    kind: str
    packing: str
    parts: int
    bom: bool
    end: str
    quoting: int
    named: bool
    """Whether it has a column of ids."""
    separator: str
    nested: bool
    """Whether ids and texts lie within another column."""
    folders: str

    def place(self, part: int) -> str:
        """A file without its ending, in the folder of the table."""
        return {"": f"x{part}", "hive": f"year={part}/x", "deep": f"a/{part}/x"}[self.folders]


@st.composite
def tables(draw: st.DrawFn) -> Drawn:
    kind = draw(st.sampled_from([*LINES, "parquet", "arrow"]))
    n = draw(st.integers(8, 24))
    name = draw(st.sampled_from([*IDS]))
    ids = draw(st.lists(IDS[name], min_size=n, max_size=n, unique_by=str))
    rows = []
    for row in range(n):
        said = draw(SAID)
        # Some texts are copies of others of their domain, in another case.
        copied = row > 5 and draw(st.integers(0, 5)) == 0
        twin = draw(st.sampled_from(rows)) if copied else None
        text = f"{said} text {row}" if twin is None else f" {twin['body'].upper()}"
        bad = row % 2 if twin is None else twin["bad"]
        rows.append({"key": ids[row], "body": text, "bad": bad, "other": draw(WORDS)})
    return Drawn(
        rows,
        kind,
        draw(st.sampled_from([*PACK])) if kind in LINES else "",
        draw(st.integers(1, 3)),
        draw(st.booleans()),
        draw(st.sampled_from(["\n", "\r\n"])),
        draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        draw(st.booleans()),
        draw(st.sampled_from(",;|\t")) if kind == "csv" else "\t",
        kind not in ("csv", "tsv") and draw(st.booleans()),
        draw(st.sampled_from(["", "hive", "deep"])),
    )


def shaped(drawn: Drawn, row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is written."""
    if not drawn.nested:
        return row
    return {"bad": row["bad"], "post": {name: row[name] for name in ("key", "body", "other")}}


def line(drawn: Drawn, row: dict[str, Any], header: bool = False) -> bytes:
    """A row as it stands in the file."""
    cells = [*row] if header else [*row.values()]
    if drawn.kind == "jsonl":
        return (
            json.dumps(shaped(drawn, row), ensure_ascii=bool(drawn.quoting)) + drawn.end
        ).encode()
    sink = io.StringIO()
    writer = csv.writer(
        sink,
        delimiter=drawn.separator,
        lineterminator=drawn.end,
        quoting=drawn.quoting,  # type: ignore[arg-type]
    )
    writer.writerow(cells)
    return sink.getvalue().encode()


def shared(drawn: Drawn) -> Iterator[list[dict[str, Any]]]:
    """The rows of each file."""
    for part in np.array_split(np.arange(len(drawn.rows)), drawn.parts):
        yield [drawn.rows[row] for row in part]


def content(drawn: Drawn, rows: list[dict[str, Any]]) -> bytes:
    header = b"" if drawn.kind == "jsonl" else line(drawn, drawn.rows[0], header=True)
    bom = b"\xef\xbb\xbf" if drawn.bom else b""
    return bom + header + b"".join(line(drawn, row) for row in rows)


def write(drawn: Drawn, to: Path) -> Path:
    """The table in a file, or in a folder of several."""
    ending = f".{drawn.kind}{drawn.packing}"
    files = [to / f"data{ending}"] if drawn.parts == 1 else []
    files = files or [to / "data" / f"{drawn.place(part)}{ending}" for part in range(drawn.parts)]
    for path, rows in zip(files, shared(drawn), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist([shaped(drawn, row) for row in rows])
        if drawn.kind == "parquet":
            pq.write_table(table, path, row_group_size=5)
        elif drawn.kind == "arrow":
            with pa.ipc.new_stream(str(path), table.schema) as stream:
                stream.write_table(table, max_chunksize=5)
        else:
            packed = PACK[drawn.packing](content(drawn, rows), path.stem)
            path.write_bytes(packed)
    return files[0] if drawn.parts == 1 else to / "data"


def written(data: Path) -> str:
    """The ending of what is written of a table: a zip archive unpacked."""
    return "" if data.is_dir() else "".join(data.suffixes).removesuffix(".zip")


def read(path: Path) -> list[Any]:
    """What a file holds: of lines the bytes, of columns the rows."""
    ending = path.suffix
    if ending == ".parquet":
        return list(pq.read_table(path).to_pylist())
    if ending == ".arrow":
        with pa.ipc.open_stream(str(path)) as stream:
            return list(stream.read_all().to_pylist())
    if ending == ".gz":
        return [gzip.decompress(path.read_bytes())]
    if ending == ".zst":
        return [pa.input_stream(str(path), compression="zstd").read()]
    return [path.read_bytes()]


def names_of(drawn: Drawn) -> list[str]:
    """The id of each row: as it stands in text formats, else numbers without a fraction."""
    if not drawn.named:
        return [str(number) for number in range(1, len(drawn.rows) + 1)]
    ids = [row["key"] for row in drawn.rows]
    typed = drawn.kind not in ("csv", "tsv")
    return [str(int(one)) if typed and isinstance(one, float) else str(one) for one in ids]


def reference(drawn: Drawn, gone: set[str]) -> list[list[Any]]:
    """Of each file what is to be left, in plain Python."""
    names, left = iter(names_of(drawn)), []
    for rows in shared(drawn):
        kept = [row for row in rows if next(names) not in gone]
        are_lines = drawn.kind in LINES
        left.append([content(drawn, kept)] if are_lines else [shaped(drawn, row) for row in kept])
    return left


def run(*words: object) -> None:
    assert main([str(word) for word in words]) == 0


def ranked(data: Path, drawn: Drawn, folder: Path) -> Path:
    """The list of half of the bad rows, by the stages that rank vectors."""
    at = {name: folder / getattr(paths, name.upper()).format(**CELL, beta="0.50") for name in (
        "examples", "duplicates", "data_card", "embeddings", "scores", "removal")}  # fmt: skip
    of = "post." if drawn.nested else ""
    loader = plugin("dataset", "table").defaults | {
        **{"path": str(data), "text": f"{of}body", "id": f"{of}key" if drawn.named else None},
        "forget": {"where": "bad == 1"},
    }
    about = {"dataset": "d", "kind": "table", "loader": loader, "sections": {"inference": 1.0}}
    about |= {"limit": NO_LIMIT, "data": DATA | {"near_duplicates": None}}
    about |= {"drop_duplicates": True, "inputs": {}}
    run("examples", "--settings", json.dumps(about), "--examples", at["examples"],
        "--duplicates", at["duplicates"], "--card", at["data_card"],
        "--cache", folder / "cache")  # fmt: skip
    ids = read_table(at["examples"], schemas.EXAMPLES)["id"].to_pylist()
    vectors = folder / "vectors.parquet"
    numbers = np.random.default_rng(len(ids)).normal(size=(len(ids), 4)).astype(np.float32)
    pq.write_table(pa.table({"id": ids, "vector": numbers.tolist()}), vectors)
    made = {"embedding": {"path": str(vectors), "id": "id", "vector": "vector"}, "inputs": {}}
    run("import-embeddings", "--settings", json.dumps(made), "--examples", at["examples"],
        "--duplicates", at["duplicates"], "--data-card", at["data_card"],
        "--vectors", vectors, "--out", at["embeddings"])  # fmt: skip
    how = {"selector": "lr_cos", "kind": "lr_cos", "settings": {}, "seed": 0}
    run("score", "--settings", json.dumps(how), "--examples", at["examples"],
        "--embeddings", at["embeddings"], "--out", at["scores"])  # fmt: skip
    run("remove", "--settings", json.dumps({"beta": 0.5}), "--examples", at["examples"],
        "--scores", at["scores"], "--duplicates", at["duplicates"],
        "--out", at["removal"])  # fmt: skip
    return at["removal"]


@settings(
    max_examples=TABLES,
    derandomize=TABLES == 100,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(drawn=tables(), choice=st.randoms(use_true_random=False))
def test_what_leaves_a_table_is_what_is_listed(drawn: Drawn, choice: Any) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        check(drawn, choice, folder)


def check(drawn: Drawn, choice: Any, folder: Path) -> None:
    data = write(drawn, folder)
    try:
        readers.read_file_columns(data, ["bad"])
    except UserError as error:
        # Lines of a text that look like rows are refused, and named.
        assert "holds what looks like a whole row" in str(error)
        reject()
    made = ranked(data, drawn, folder)
    table = read_table(made, schemas.REMOVALS)
    gone = {*table["id"].to_pylist()} | {c for cs in table["copies"].to_pylist() for c in cs}
    # They are bad rows, with each copy of a listed text.
    of = dict(zip(names_of(drawn), drawn.rows, strict=True))
    assert gone <= of.keys() and all(of[name]["bad"] == 1 for name in gone)
    out = folder / f"clean{written(data)}"
    away = folder / "away" / "list.parquet"
    away.parent.mkdir()
    shutil.copy(made, away)
    command("apply", choice.choice([made, away]), "--data", data, "--out", out)
    files = [out] if out.is_file() else sorted(path for path in out.rglob("*") if path.is_file())
    assert [read(path) for path in files] == reference(drawn, gone)
    receipt = read_json(out.with_name(f"{out.name}.receipt.json"))
    assert receipt["rows"]["on_the_list"] == len(gone) == receipt["texts"]["compared"]
    assert receipt["rows"]["read"] == len(drawn.rows)
    changed(drawn, choice, made, gone, folder)


def changed(drawn: Drawn, choice: Any, made: Path, gone: set[str], folder: Path) -> None:
    """Where a listed row has another text, or is not there, nothing is written."""
    at = choice.choice([at for at, name in enumerate(names_of(drawn)) if name in gone])
    rows = [*drawn.rows]
    rows[at] = {**rows[at], "body": rows[at]["body"] + " else"}
    if choice.random() < 0.5:
        del rows[at]
    other = folder / "other"
    data = write(Drawn(**{**vars(drawn), "rows": rows}), other)
    out = other / f"clean{written(data)}"
    with pytest.raises(UserError):
        command("apply", made, "--data", data, "--out", out)
    assert not [*other.glob("*clean*")]
