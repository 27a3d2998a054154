"""Odd and hostile tables, lists and folders, each with where it came from and what is right of it.

Of a file of lines the bytes of each row stand by its id, so that what has to be left is known
without this program: all bytes but those of the listed rows.
"""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import uuid
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FILES = Path(__file__).parents[1] / "cases" / "files"
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Lines:
    """A file of lines: what stands before its rows, each row by its id, and what comes then."""

    name: str
    origin: str
    head: bytes
    rows: Mapping[str, bytes]
    tail: bytes = b""
    listed: Sequence[str] = ()
    """Ids that go; by default the second."""
    id: str = "id"
    pack: Callable[[bytes], bytes] = bytes
    unpack: Callable[[bytes], bytes] = bytes
    quote: str = "double"

    @property
    def gone(self) -> list[str]:
        return [*self.listed] or [[*self.rows][1]]

    def without(self, gone: Sequence[str]) -> bytes:
        kept = (row for name, row in self.rows.items() if name not in gone)
        return self.head + b"".join(kept) + self.tail


@dataclass(frozen=True)
class Columns:
    """A file of columns: how it is made, and the names of its rows."""

    name: str
    origin: str
    write: Callable[[Path], Any]
    ids: Sequence[str]
    """The second goes."""


@dataclass(frozen=True)
class Refused:
    """What has to be refused in a line, and by what words."""

    name: str
    origin: str
    content: bytes | Callable[[Path], Any]
    says: str
    listed: Sequence[str] = ("2",)
    ranked: bool = True
    """Whether also who ranks cannot read it."""


@dataclass(frozen=True)
class List:
    """A list for the table of ``FIVE``: the ids that it names, or the words of the refusal."""

    name: str
    origin: str
    content: bytes
    means: Sequence[str] | str


@dataclass(frozen=True)
class Folder:
    """A folder of which the row of id 2 goes: what is to be left of each file, or the words of the
    refusal."""

    origin: str
    files: Mapping[str, bytes | None]
    """None stands for a link to nothing."""
    left: Mapping[str, bytes] | str


def csv(*rows: str, end: str = "\n", first: int = 1) -> dict[str, bytes]:
    """Rows of CSV of the ids 1, 2, ..., of what stands behind the id."""
    return {str(at): f"{at},{row}{end}".encode() for at, row in enumerate(rows, first)}


def jsonl(*ids: Any, **more: Any) -> dict[str, bytes]:
    """Rows of JSON Lines by ids as they are spelled in JSON."""
    return {
        str(at): f'{{"id": {spelled}, "text": "text {at}"}}\n'.encode() for at, spelled in ids
    } | {name: row.encode() for name, row in more.items()}


def zipped(content: bytes, *more: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for folder in more:
            archive.writestr(folder, b"")
        archive.writestr("inner.csv", content)
    return sink.getvalue()


def unzipped(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (name,) = archive.namelist()
        return archive.read(name)


def gzipped(content: bytes) -> bytes:
    """Gzip as this program writes it, with no name and date."""
    sink = io.BytesIO()
    with gzip.GzipFile("", "wb", fileobj=sink, mtime=0) as handle:
        handle.write(content)
    return sink.getvalue()


def zstd(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


def unzstd(content: bytes) -> bytes:
    return bytes(pa.input_stream(io.BytesIO(content), compression="zstd").read())


HEAD = b"id,text\n"
THREE = csv("one", "two", "three")
PLAIN = HEAD + b"".join(THREE.values())
FIVE = HEAD + b"".join(csv("a", "b", "c", "d", "e").values())
TALES = {
    "en": "plain words",
    "zh": "这是一个测试",
    "th": "นี่คือข้อความ",
    "ar": "هذا نص",
    "em": "👩‍👩‍👧 🇩🇪",
    "nfd": "cafe\u0301",
}

LINES = (
    Lines("a.csv", "a text editor", HEAD, THREE),
    Lines("a.CSV", "Windows, ending in capitals", HEAD, THREE),
    Lines("a b.csv", "a name with a space", HEAD, THREE),
    Lines("[a]*.csv", "a name of a pattern", HEAD, THREE),
    Lines("ä.csv", "a name that is not ASCII", HEAD, THREE),
    Lines("a\nb.csv", "a name with a line end", HEAD, THREE),
    Lines("a.csv", "Excel, CSV UTF-8", BOM + b"id,text\r\n", csv("x", "y", end="\r\n")),
    Lines("a.csv", "two byte-order marks, by two programs", BOM + BOM + HEAD, THREE),
    Lines("a.csv", "old Mac, CR alone", b"id,text\r", csv("x", "y", "z", end="\r")),
    Lines("a.csv", "edited on two systems", b"id,text\r\n", csv("x") | csv("y\r", first=2)),
    Lines("a.csv", "no line end at the end", HEAD, THREE | {"4": b"4,four"}),
    Lines("a.csv", "the last row goes, which has none", HEAD, THREE | {"4": b"4,four"}, b"", ["4"]),
    Lines("a.csv", "blank lines at the end", HEAD, THREE, b"\n\n"),
    Lines("a.csv", "blank lines at the start", b"\n\n" + HEAD, THREE),
    Lines("a.csv", "pandas to_csv, quoted line ends", HEAD, csv('"x\ny"', '"a\nb"', '"x\r\ny"')),
    Lines("a.csv", "pandas to_csv, doubled quotes", HEAD, csv('"He said ""no"""', '"""no"""', "z")),
    Lines("a.csv", "pandas to_csv, QUOTE_ALL", b'"id","text"\n',
          {"1": b'"1","a"\n', "2": b'"2","b,c"\n'}),
    Lines("a.csv", "pandas to_csv with its index", b",id,text\n",
          {"a": b"0,a,x\n", "b": b"1,b,y\n", "c": b"2,c,z\n"}),
    Lines("a.csv", "that index as the id", b",text\n", {"0": b"0,x\n", "1": b"1,y\n"}, id=""),
    Lines("a.csv", "polars write_csv", b"id,text,n,x\n",
          {"a1": b'a1,"He said ""no"", twice",1,0.5\n', "a2": b'a2,"two\nlines",,\n',
           "a3": b"a3,\xc3\xbc,3,NaN\n"}),
    Lines("a.csv", "DuckDB, force_quote", b'"id","text"\n', {"u-1": b'"u-1","one"\n',
          "u-2": b'"u-2","two"\n'}),
    Lines("a.tsv", "polars write_csv, tabs, BOM, CR LF", BOM + b"id\ttext\r\n",
          {"a": b'a\t"x\ny"\r\n', "b": b"b\tz\r\n"}),
    Lines("a.tab", "R write.table", b"id\ttext\n", {"a": b"a\tx\n", "b": b"b\ty\n"}),
    Lines("a.tsv", "quotes are characters", b"id\ttext\n",
          {"a": b'a\t"x\n', "b": b'b\ty"\n', "c": b"c\tz\n"}, quote="none"),
    Lines("a.csv", "quotes inside cells", HEAD, csv('a "b" c', '5" pipe', "6' pole")),
    Lines("a.csv", "a poem in a cell", HEAD, csv('"Roses are red,\nviolets are blue,\n"', "x")),
    Lines("a.csv", "a separator at each end", b"id,text,\n", csv("a,", "b,")),
    Lines("a.csv", "ids with zeros in front", HEAD, {"01": b"01,x\n", "1": b"1,y\n"}),
    Lines("a.csv", "ids by case", HEAD, {"A": b"A,x\n", "a": b"a,y\n"}),
    Lines("a.csv", "ids by a space", HEAD, {"a ": b"a ,x\n", "a": b"a,y\n"}),
    Lines("a.csv", "ids by a no-break space", HEAD,
          {"a": b"a,x\n", "a\u00a0": b"a\xc2\xa0,y\n"}),
    Lines("a.csv", "ids by the form of an accent", HEAD,
          {"é": "é,x\n".encode(), "e\u0301": "e\u0301,y\n".encode()}),
    Lines("a.csv", "ids in scientific notation", HEAD, {"1000": b"1000,x\n", "1e3": b"1e3,y\n"}),
    Lines("a.csv", "1 and 1.0, which are text", HEAD, {"1": b"1,x\n", "1.0": b"1.0,y\n"}),
    Lines("a.csv", "an id of 40 digits", HEAD, {"1" * 40: b"1" * 40 + b",x\n", "2": b"2,y\n"}),
    Lines("a.csv", "nan, null and None as ids", HEAD,
          {"nan": b"nan,x\n", "null": b"null,y\n", "None": b"None,z\n"}),
    Lines("a.csv", "two columns of the same ids", b"id,ID,text\n", csv("1,x", "2,y", "3,z")),
    Lines("a.csv", "a column of groups", b"id,parent_id,text\n", csv("1,x", "1,y", "1,z")),
    Lines("a.csv", "another name", b"comment_id,text\n", THREE, id="comment_id"),
    Lines("a.csv", "a name with spaces and quotes", b'"my ""id"", 1",text\n', THREE,
          id='my "id", 1'),
    Lines("a.csv", "a row of 100,000 characters", HEAD, csv("x" * 100_000, "y", "z")),
    Lines("a.csv", "scripts of the world", HEAD,
          {name: f"{name},{text}\n".encode() for name, text in TALES.items()}),
    Lines("a.csv", "U+2028 in a cell", HEAD, csv("a\u2028b", "c\u0085d", "e\x0bf")),
    Lines("a.csv", "files joined by cat, with their marks", BOM + HEAD,
          {"1": b"1,x\n", "2": b"\xef\xbb\xbf2,y\n", "3": b"3,z\n"}),
    Lines("a.csv.gz", "gzip", HEAD, THREE, pack=gzip.compress, unpack=gzip.decompress),
    Lines("a.csv.gz", "gzip files joined by cat", HEAD, THREE, unpack=gzip.decompress,
          pack=lambda content: gzip.compress(content[:11]) + gzip.compress(content[11:])),
    Lines("a.csv.GZ", "gzip, padded on a tape", HEAD, THREE, unpack=gzip.decompress,
          pack=lambda content: gzip.compress(content) + b"\0" * 64),
    Lines("a.csv.zst", "zstd", HEAD, THREE, pack=zstd, unpack=unzstd),
    Lines("a.csv.zst", "zstd files joined by cat", HEAD, THREE, unpack=unzstd,
          pack=lambda content: zstd(content[:11]) + zstd(content[11:])),
    Lines("a.csv.zip", "zip", HEAD, THREE, pack=zipped, unpack=unzipped),
    Lines("a.csv.zip", "zip of macOS", HEAD, THREE, unpack=unzipped,
          pack=lambda content: zipped(content, "__MACOSX/._inner.csv")),
    Lines("a.jsonl", "pandas to_json", b"", jsonl((1, 1), (2, 2), (3, 3))),
    Lines("a.ndjson", "another ending", b"", jsonl((1, 1), (2, 2))),
    Lines("a.jsonl", "a byte-order mark", BOM, jsonl((1, 1), (2, 2))),
    Lines("a.jsonl", "blank lines", b"\n \n", jsonl((1, 1), (2, 2)), b"\n"),
    Lines("a.jsonl", "pandas, integers with a gap are floats", b"", jsonl((1, "1.0"), (2, "2.0"))),
    Lines("a.jsonl", "an exponent", b"", jsonl((1, 1), (1000, "1e3"))),
    Lines("a.jsonl", "ids of text", b"", jsonl((1, '"1"'), (2, '"2"'))),
    Lines("a.jsonl", "ids of both kinds", b"", jsonl((1, '"1"'), (2, "2"))),
    Lines("a.jsonl", "integers above 2**53", b"",
          jsonl((9007199254740992, 9007199254740992), (9007199254740993, 9007199254740993))),
    Lines("a.jsonl", "integers above 2**64", b"", jsonl((2**70, 2**70), (2**70 + 1, 2**70 + 1))),
    Lines("a.jsonl", "booleans beside text", b"", jsonl(("true", "true"), ("True", '"True"'))),
    Lines("a.jsonl", "an escaped id", b"", jsonl(("a", '"\\u0061"'), ("é", '"\\u00e9"'))),
    Lines("a.jsonl", "nested objects with the key id", b"",
          {str(at): f'{{"meta": {{"id": {3 - at}}}, "id": {at}, "text": "x"}}\n'.encode()
           for at in (1, 2)}),
    Lines("a.jsonl", "U+2028 in a text", b"",
          {str(at): f'{{"id": {at}, "text": "a\u2028b"}}\n'.encode() for at in (1, 2)}),
    Lines("a.jsonl", "an integer of 5,000 digits beside", b"",
          {str(at): f'{{"id": {at}, "text": "x", "n": {"9" * 5000}}}\n'.encode() for at in (1, 2)}),
    Lines("a.jsonl", "another key is there twice", b"",
          {str(at): f'{{"id": {at}, "n": 1, "n": 2, "text": "x"}}\n'.encode() for at in (1, 2)}),
    Lines("a.jsonl", "keys in another order in each row", b"",
          {"1": b'{"id": 1, "text": "x"}\n', "2": b'{"text": "y", "id": 2}\n'}),
    Lines("a.jsonl", "CR LF", b"", {"1": b'{"id": 1, "text": "x"}\r\n',
          "2": b'{"id": 2, "text": "y"}\r\n'}),
    Lines("a.jsonl", "NaN beside, as Python writes it", b"",
          {"1": b'{"id": 1, "text": "x", "n": NaN}\n', "2": b'{"id": 2, "text": "y", "n": 1}\n'}),
    Lines("a.jsonl.gz", "gzip", b"", jsonl((1, 1), (2, 2)), pack=gzip.compress,
          unpack=gzip.decompress),
)  # fmt: skip


def parquet(ids: Any, **options: Any) -> Callable[[Path], Any]:
    """What writes a Parquet file of three rows with these ids."""
    table = pa.table({"id": ids, "text": ["x", None, "z"], "n": [1.5, None, float("nan")]})
    return lambda path: pq.write_table(table, path, **options)


def arrow(ids: Any, *, file: bool, **options: Any) -> Callable[[Path], None]:
    """What writes an Arrow file or stream of three rows with these ids."""
    table = pa.table({"id": ids, "text": ["x", "y", "z"]})
    start = pa.ipc.new_file if file else pa.ipc.new_stream

    def write(path: Path) -> None:
        with start(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as sink:
            sink.write_table(table, max_chunksize=2)

    return write


def stored(name: str) -> Callable[[Path], Any]:
    """What copies a file that another program wrote."""
    return lambda path: path.write_bytes((FILES / name).read_bytes())


def pandas(**changes: Any) -> Callable[[Path], Any]:
    """What writes a Parquet file by pandas, with its index."""

    def write(path: Path) -> None:
        import pandas as pd

        frame = pd.DataFrame({"id": [3, 1, 2], "text": ["x", "y", "z"]}).astype(changes)
        frame.set_index("id").to_parquet(path)

    return write


DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
TIMES = [datetime.datetime(2024, 1, day, 12) for day in (1, 2, 3)]
DECIMALS = [decimal.Decimal(one) for one in ("1.00", "2.50", "3.25")]
UUIDS = [uuid.UUID(int=at) for at in (1, 2, 3)]
ABC, NUMBERS = ["a", "b", "c"], ["1", "2", "3"]
COLUMNS = (
    Columns("a.parquet", "pyarrow", parquet(ABC), ABC),
    Columns("a.pq", "another ending", parquet(ABC), ABC),
    Columns("a.parquet", "integers of 8 bits", parquet(pa.array([1, 2, 3], pa.int8())), NUMBERS),
    Columns("a.parquet", "integers of 64 bits without a sign",
            parquet(pa.array([1, 2**64 - 1, 2**63], pa.uint64())),
            ["1", str(2**64 - 1), str(2**63)]),
    Columns("a.parquet", "pandas, integers with a gap are floats", parquet([1.0, 2.0, 3.0]),
            NUMBERS),
    Columns("a.parquet", "fractions", parquet([0.1, 0.2, 0.3]), ["0.1", "0.2", "0.3"]),
    Columns("a.parquet", "fractions of 32 bits", parquet(pa.array([0.1, 0.2, 0.3], pa.float32())),
            ["0.1", "0.2", "0.3"]),
    Columns("a.parquet", "decimals", parquet(DECIMALS), ["1", "2.50", "3.25"]),
    Columns("a.parquet", "booleans", parquet([True, False, None]), ["true", "false", ""]),
    Columns("a.parquet", "an id is null", parquet(["a", "b", None]), ["a", "b", ""]),
    Columns("a.parquet", "days", parquet(DAYS), ["2024-01-01", "2024-01-02", "2024-01-03"]),
    Columns("a.parquet", "times", parquet(TIMES), [str(one) for one in TIMES]),
    Columns("a.parquet", "times in nanoseconds",
            parquet(pa.array([1, 2, 3], pa.timestamp("ns"))),
            [f"1970-01-01 00:00:00.00000000{at}" for at in (1, 2, 3)]),
    Columns("a.parquet", "UUIDs", parquet(pa.array([u.bytes for u in UUIDS], pa.uuid())),
            [str(one) for one in UUIDS]),
    Columns("a.parquet", "a dictionary", parquet(pa.array(ABC).dictionary_encode()), ABC),
    Columns("a.parquet", "long text", parquet(pa.array(ABC, pa.large_string())), ABC),
    Columns("a.parquet", "views", parquet(pa.array(ABC, pa.string_view())), ABC),
    Columns("a.parquet", "a row in each group", parquet(ABC, row_group_size=1), ABC),
    Columns("a.parquet", "version 1.0, gzip", parquet(ABC, version="1.0", compression="gzip"), ABC),
    Columns("a.parquet", "pages of version 2", parquet(ABC, data_page_version="2.0"), ABC),
    Columns("a.parquet", "no statistics", parquet(ABC, write_statistics=False), ABC),
    Columns("a.parquet", "page checksums, brotli",
            parquet(ABC, write_page_checksum=True, compression="brotli"), ABC),
    Columns("a.parquet", "pandas, the id is the index", pandas(), ["3", "1", "2"]),
    Columns("a.parquet", "pandas, Int64", pandas(id="Int64"), ["3", "1", "2"]),
    Columns("a.parquet", "pandas, category", pandas(id="category"), ["3", "1", "2"]),
    Columns("a.parquet", "Polars", stored("polars.parquet"), [f"a{at}" for at in range(1, 7)]),
    Columns("a.parquet", "Polars, Categorical", stored("polars_categorical.parquet"),
            ["a1", "a2", "a3"]),
    Columns("a.parquet", "Polars, UInt64", stored("polars_uint64.parquet"),
            [str(2**64 - 1), str(2**63), "7"]),
    Columns("a.parquet", "Polars, Decimal", stored("polars_decimal.parquet"),
            ["1.50", "2.25", "3"]),
    Columns("a.parquet", "DuckDB", stored("duck.parquet"), [f"a{at}" for at in range(1, 7)]),
    Columns("a.parquet", "DuckDB, TIMESTAMPTZ", stored("duck_tz.parquet"),
            [f"2024-01-0{day} 00:00:00+00:00" for day in (1, 2)]),
    Columns("a.arrow", "Polars, IPC", stored("polars.arrow"), [f"a{n}" for n in range(1, 7)]),
    Columns("a.arrow", "Arrow stream", arrow(ABC, file=False), ABC),
    Columns("a.arrow", "Arrow file", arrow(ABC, file=True), ABC),
    Columns("a.feather", "Feather, LZ4", arrow(ABC, file=True, compression="lz4"), ABC),
    Columns("a.arrow", "stream, zstd", arrow(ABC, file=False, compression="zstd"), ABC),
)  # fmt: skip


def with_columns(names: Sequence[str], *columns: Any) -> Callable[[Path], Any]:
    arrays = [pa.array(each) for each in columns]
    return lambda path: pq.write_table(pa.Table.from_arrays(arrays, names=[*names]), path)


EXCEL = b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0"
REFUSED = (
    Refused("a.csv", "nothing in it", b"", "is empty"),
    Refused("a.csv", "a header alone", HEAD, "none of its 1 ids is there"),
    Refused("a.csv", "Excel in Europe", b"id;text\n1;a\n2;b\n", "separated by semicolons"),
    Refused("a.csv", "Excel, with its line", b"sep=;\nid;text\n1;a\n2;b\n", "a line for Excel"),
    Refused("a.csv", "tabs", b"id\ttext\n1\ta\n2\tb\n", "name it .tsv"),
    Refused("a.csv", "bars", b"id|text\n1|a\n2|b\n", "separated by bars"),
    Refused("a.tsv", "commas", PLAIN, "name it .csv"),
    Refused("a.csv", "a title above", b"My export\n" + PLAIN, "no column 'id'"),
    Refused("a.csv", "a comment above", b"# of 2024\n" + PLAIN, "no column 'id'"),
    Refused("a.csv", "a column ID", b"ID,text\n1,a\n2,b\n", "name the column with the ids in --id"),
    Refused("a.csv", "a column behind a space", b"text, id\na,1\nb,2\n", "no column 'id'"),
    Refused("a.csv", "a row that is short", HEAD + b"1,a\n2\n", "row 2"),
    Refused("a.csv", "a comma too many", HEAD + b"1,a,b\n2,c\n", "row 1 (line 2)"),
    Refused("a.csv", "cut off in a quote", HEAD + b'1,a\n2,"b\n', "not well-formed"),
    Refused("a.csv", "Spark, backslashes", HEAD + b'1,"a \\"b\\" c"\n2,b\n', "not well-formed"),
    Refused("a.csv", "two columns of a name", b"id,id,text\n1,2,a\n2,1,b\n", "there 2 times"),
    Refused("a.csv", "UTF-16", PLAIN.decode().encode("utf-16"), "UTF-16"),
    Refused("a.csv", "UTF-16 without a mark", PLAIN.decode().encode("utf-16-le"), "UTF-16"),
    Refused("a.csv", "NUL bytes, after a crash", b"\0" * 512, "NUL"),
    Refused("a.csv", "an Excel workbook", EXCEL * 40, "Excel workbook"),
    Refused("a.csv", "a page of a login", b"<!DOCTYPE html><html></html>", "a page of HTML"),
    Refused("a.csv", "Git LFS", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    Refused("a.csv", "an id twice", HEAD + b"1,a\n2,b\n2,c\n", "several rows", ranked=False),
    Refused("a.csv", "part of the table", PLAIN, "1 of its 2 ids", ("2", "9"), ranked=False),
    Refused("a.csv", "two columns with the ids", b"id,comment_id\n1,3\n2,1\n3,2\n", "of other rows",
            ranked=False),
    Refused("a.csv", "all rows", HEAD + b"2,a\n", "nothing would be left", ranked=False),
    Refused("a.csv", "ids as floats", HEAD + b"1.0,a\n2.0,b\n", "none of its", ranked=False),
    Refused("a.csv", "ids with zeros", HEAD + b"001,a\n002,b\n", "none of its", ranked=False),
    Refused("a.csv", "a quote that closes three rows later",
            b"id,text,label\n" + b"".join(b"r%d,text %d,0\n" % (n, n) for n in range(9))
            + b'r9,"No,1\nr10,b,0\nr11,c,0\nr12,yes",1\n', "holds what looks like a whole row"),
    Refused("a.csv.gz", "cut off", gzip.compress(PLAIN * 99)[:-9], "truncated or damaged gz"),
    Refused("a.csv.gz", "not packed", PLAIN, "not a gzip file"),
    Refused("a.csv", "packed", gzip.compress(PLAIN), "name it so, with .gz at the end"),
    Refused("a.csv.zip", "two files", zipped(PLAIN, "other.csv"), "holds 2 files"),
    Refused("a.csv.bz2", "bzip2", b"BZh91AY", "cannot tell the format"),
    Refused("a.json", "a list that is cut off", b'[{"id": 1}, {"id": 2}', "not valid JSON"),
    Refused("a.xlsx", "a workbook", EXCEL, "cannot tell the format"),
    Refused("a.jsonl", "a list of objects", b'[{"id": 1}, {"id": 2}]\n', "not a JSON object"),
    Refused("a.jsonl", "indented", b'{\n "id": 1\n}\n', "row 1: not valid JSON"),
    Refused("a.jsonl", "commas behind", b'{"id": 1},\n{"id": 2}\n', "row 1: not valid JSON"),
    Refused("a.jsonl", "comments", b'// of 2024\n{"id": 2}\n', "row 1: not valid JSON"),
    Refused("a.jsonl", "two objects in a line", b'{"id": 1}{"id": 2}\n', "row 1: not valid JSON"),
    Refused("a.jsonl", "CR alone", b'{"id": 1}\r{"id": 2}\r', "CR alone"),
    Refused("a.jsonl", "Latin-1", b'{"id": 1, "t": "\xe9"}\n{"id": 2}\n', "not valid UTF-8"),
    Refused("a.jsonl", "the id twice", b'{"id": 1, "id": 2}\n{"id": 3}\n', "more than once"),
    Refused("a.jsonl", "1, 1.0 and '1'", b'{"id": 2}\n{"id": 2.0}\n{"id": "2"}\n{"id": 1}\n',
            "several rows", ranked=False),
    Refused("a.jsonl", "a nested id", b'{"m": {"id": 2}}\n{"m": {"id": 1}}\n', "no column 'id'"),
    Refused("a.jsonl", "lists", b'{"id": [1]}\n{"id": [2]}\n', "not one value", ranked=False),
    Refused("a.parquet", "CSV", PLAIN, "is not a Parquet file"),
    Refused("a.parquet", "cut off", b"PAR1" + b"\0" * 99, "damaged or not a Parquet file"),
    Refused("a.parquet", "no rows", with_columns(["id"], pa.array([], pa.int64())), "none of its",
            ranked=False),
    Refused("a.parquet", "bytes, of Impala", with_columns(["id"], [b"1", b"2"]), "not one value",
            ranked=False),
    Refused("a.parquet", "objects", with_columns(["id"], [{"a": 1}, {"a": 2}]), "not one value",
            ranked=False),
    Refused("a.parquet", "two columns of a name", with_columns(["id", "id"], [1, 2], [2, 1]),
            "there 2 times"),
    Refused("a.parquet", "0.0 and -0.0", with_columns(["id"], [0.0, -0.0, 1.0]), "several rows",
            ("0",), ranked=False),
    Refused("a.arrow", "Parquet", with_columns(["id"], [1, 2]), "is a Parquet file"),
    Refused("a.parquet", "an Arrow file", arrow(ABC, file=True), "is an Arrow file"),
    Refused("a.arrow", "cut off", b"ARROW1\0\0" + b"\xff" * 40, "damaged or not an Arrow"),
)  # fmt: skip

LISTS = (
    List("l.txt", "a text editor", b"2\n3\n", ["2", "3"]),
    List("l.txt", "Windows Notepad", BOM + b"2\r\n3\r\n", ["2", "3"]),
    List("l.txt", "two marks", BOM + BOM + b"2\n", ["2"]),
    List("l.txt", "old Mac", b"2\r3\r", ["2", "3"]),
    List("l.txt", "no line end", b"2", ["2"]),
    List("l.txt", "spaces and blank lines", b"\n  2\t\n\n3 \n \n", ["2", "3"]),
    List("l", "no ending", b"2\n", ["2"]),
    List("l.csv", "pandas with its index", b",id\n0,2\n1,3\n", ["2", "3"]),
    List("l.csv", "more columns", b"text,id\nb,2\n", ["2"]),
    List("l.csv.gz", "packed", gzip.compress(b"id\n2\n"), ["2"]),
    List("l.tsv", "tabs", b"id\tx\n2\ty\n", ["2"]),
    List("l.jsonl", "ids of both kinds", b'{"id": 2}\n{"id": "3"}\n', ["2", "3"]),
    List("l.jsonl", "floats", b'{"id": 2.0}\n', ["2"]),
    List("l.txt", "nothing in it", b"", "names no id"),
    List("l.txt", "blank lines", b"\n \n", "names no id"),
    List("l.txt", "a header", b"id\n2\n", "1 of its 2 ids are not there (column 'id'), as 'id'"),
    List("l.txt", "a comment", b"# bad\n2\n", "as '# bad'"),
    List("l.txt", "an id twice", b"2\n3\n2\n", "more than once, the first is '2'"),
    List("l.txt", "all in one line", b"2,3\n", "none of its 1 ids is there"),
    List("l.txt", "quoted", b'"2"\n', "none of its 1 ids is there"),
    List("l.txt", "numbers from 0", b"0\n1\n2\n", "as '0'"),
    List("l.txt", "UTF-16", "2\n".encode("utf-16"), "UTF-16"),
    List("l.txt", "Latin-1", b"caf\xe9\n", "not valid UTF-8"),
    List("l.txt", "packed", gzip.compress(b"2\n"), "is a gzip file"),
    List("l.txt", "a no-break space", "2\u00a0\n".encode(), "none of its 1 ids is there"),
    List("l.csv", "no header", b"2\n3\n", "no column 'id'"),
    List("l.csv", "semicolons", b"id;x\n2;y\n", "separated by semicolons"),
    List("l.csv", "a cell without an id", b"id,x\n2,a\n,b\n", "there is no id"),
    List("l.jsonl", "lists", b'{"id": [2]}\n', "not one value"),
    List("l.jsonl", "null", b'{"id": 2}\n{"id": null}\n', "there is no id"),
    List("l.json", "a list in JSON", b'["2"]', "ids of your own in JSON as JSON Lines"),
    List("l.csv", "the table itself", FIVE, "nothing would be left"),
)

SHARD = HEAD + b"4,d\n"
LEFT = HEAD + THREE["1"] + THREE["3"]
FOLDERS = (
    Folder("shards", {"a.csv": PLAIN, "b.csv": SHARD}, {"a.csv": LEFT, "b.csv": SHARD}),
    Folder("Spark", {"part-0.csv": PLAIN, "_SUCCESS": b"", ".part-0.csv.crc": b"x"},
           {"part-0.csv": LEFT}),
    Folder("the hub", {"a.csv": PLAIN, "README.md": b"#", ".gitattributes": b""},
           {"a.csv": LEFT, "README.md": b"#"}),
    Folder("macOS", {"a.csv": PLAIN, ".DS_Store": b"x", "._a.csv": b"x"}, {"a.csv": LEFT}),
    Folder("a shard loses all", {"a.csv": HEAD + b"2,b\n", "b.csv": SHARD},
           {"a.csv": HEAD, "b.csv": SHARD}),
    Folder("a shard of a header", {"a.csv": PLAIN, "b.csv": HEAD}, {"a.csv": LEFT, "b.csv": HEAD}),
    Folder("columns in another order", {"a.csv": PLAIN, "b.csv": b"text,id\nd,4\n"},
           {"a.csv": LEFT, "b.csv": b"text,id\nd,4\n"}),
    Folder("some packed", {"a.csv": PLAIN, "b.csv.gz": gzipped(SHARD)},
           {"a.csv": LEFT, "b.csv.gz": gzipped(SHARD)}),
    Folder("an empty file", {"a.csv": PLAIN, "b.csv": b""}, "b.csv: is empty"),
    Folder("no header", {"a.csv": PLAIN, "b.csv": b"4,d\n"}, "b.csv: no column 'id'"),
    Folder("a copy", {"a.csv": PLAIN, "a (1).csv": PLAIN}, "several rows"),
    Folder("plain and packed", {"a.csv": PLAIN, "a.csv.gz": gzipped(PLAIN)}, "same file twice"),
    Folder("two formats", {"a.csv": PLAIN, "b.jsonl": b'{"id": 4}\n'}, "files of several formats"),
    Folder("a backup", {"a.csv": PLAIN, "a.csv.bak": PLAIN}, "a.csv.bak"),
    Folder("a download that runs", {"a.csv": PLAIN, "b.csv.part": SHARD}, "b.csv.part"),
    Folder("a link to nothing", {"a.csv": PLAIN, "b.csv": None}, "a link to nothing"),
    Folder("the list lies in it", {"a.csv": PLAIN, "bad.txt": b"2\n"}, "bad.txt"),
    Folder("splits", {"train/a.csv": PLAIN, "test/a.csv": SHARD}, "a folder with tables"),
    Folder("years in folders", {"a.csv": PLAIN, "y=2024/a.csv": SHARD}, "a folder with tables"),
    Folder("Delta Lake", {"a.csv": PLAIN, "_delta_log/0.json": b"{}"}, "Delta Lake"),
    Folder("nothing in it", {}, "no table in this folder"),
)  # fmt: skip
