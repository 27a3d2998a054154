"""Odd and hostile tables, lists and folders, each with where it came from and what is right of it.

Of a file of lines the bytes of each row stand by its id, so that what has to be left is known
without this program: all bytes but those of the listed rows.
"""

import gzip
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
    gone: Sequence[str] = ()
    """Ids that go; by default the second."""
    id: str = "id"
    pack: Callable[[bytes], bytes] = bytes
    unpack: Callable[[bytes], bytes] = bytes
    quote: str = "double"

    @property
    def listed(self) -> list[str]:
        return [*self.gone] or [[*self.rows][1]]

    def without(self, gone: Sequence[str]) -> bytes:
        kept = (row for name, row in self.rows.items() if name not in gone)
        return self.head + b"".join(kept) + self.tail


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


HEAD = b"id,text\n"
THREE = csv("one", "two", "three")
PLAIN = HEAD + b"".join(THREE.values())
FIVE = HEAD + b"".join(csv("a", "b", "c", "d", "e").values())
TEXTS = [
    *("01", "1", "1.0", "1000", "1e3", "1" * 40, "nan", "null", "None", "A", "a", "a ", "a\u00a0"),
    *("é", "e\u0301", "这是一个测试", "نص", "👩‍👩‍👧 🇩🇪"),
]

LINES = (
    Lines("a.csv", "marks, CR LF and LF, blank lines, no end", BOM + BOM + b"\n" + HEAD,
          csv("x", "y", end="\r\n") | {"3": b"\xef\xbb\xbf3,z\n\n", "4": b"4,four"},
          gone=["2", "4"]),
    Lines("a.csv", "old Mac, CR alone", b"id,text\r", csv("x", "y", "z", end="\r")),
    Lines("a.csv", "quotes, line ends and other rows in cells", b'"id","text"\n',
          csv('"x\ny, z"', '"a\r\nb"', '"He said ""no"""', 'a "b" c', "a\u2028b\x85", "x" * 9**5)),
    Lines("a.tsv", "quotes are characters", b"id\ttext\n",
          {"a": b'a\t"x\n', "b": b'b\ty"\n', "c": b"c\tz\n"}, quote="none"),
    Lines("a.csv", "ids that are text, each another one", HEAD,
          {name: f"{name},{at}\n".encode() for at, name in enumerate(TEXTS)}, gone=TEXTS[1::2]),
    Lines("a.csv.GZ", "gzip files joined by cat, padded on a tape", HEAD, THREE,
          unpack=gzip.decompress,
          pack=lambda of: gzip.compress(of[:11]) + gzip.compress(of[11:]) + b"\0" * 64),
    Lines("a.ndjson", "numbers as they are written, marks, blank lines", BOM + b"\n \n",
          jsonl((1, "1.0"), (1000, "1e3"), (2**53, 2**53), (2**53 + 1, 2**53 + 1),
                (2**70, 2**70), (2**70 + 1, 2**70 + 1)), b"\n", gone=["1000", str(2**53 + 1)]),
    Lines("a.jsonl.gz", "ids of several kinds", b"",
          jsonl((1, '"1"'), (2, "2"), ("true", "true"), ("True", '"True"'), ("a", '"\\u0061"'))
          | {"x": b'{"text": "a\xe2\x80\xa8b", "id": "x", "m": {"id": "a"}}\r\n',
             "y": b'{"id": "y", "n": 1, "n": NaN, "m": %s}\n' % (b"9" * 5000)},
          pack=gzip.compress, unpack=gzip.decompress),
)  # fmt: skip


def parquet() -> Callable[[Path], Any]:
    """What writes a Parquet file of three rows."""
    ids = pa.array([1, 2**64 - 1, 2**63], pa.uint64())
    table = pa.table({"id": ids, "text": ["x", None, "z"], "n": [1.5, None, float("nan")]})
    return lambda path: pq.write_table(table, path)


def stored(name: str) -> Callable[[Path], Any]:
    """What copies a file that another program wrote."""
    return lambda path: path.write_bytes((FILES / name).read_bytes())


COLUMNS: tuple[tuple[str, Callable[[Path], Any]], ...] = (
    ("a.parquet", parquet()),
    ("a.parquet", stored("duck_tz.parquet")),
    ("a.arrow", stored("polars.arrow")),
)
"""Files of columns, and how each is made."""


LISTS: tuple[tuple[str, bytes, bytes, Sequence[str] | str], ...] = (
    ("l.txt", b"2\n3\n", FIVE, ["2", "3"]),
    ("l.csv", b",id\n0,2\n1,3\n", FIVE, ["2", "3"]),
    ("l.jsonl", b'{"id": 2.0}\n{"id": "3"}\n', FIVE, ["2", "3"]),
    ("l.txt", b"2.0\n3.0\n", FIVE, ["2", "3"]),
    ("l.txt", b"\"2\"\n'3'\n", FIVE, ["2", "3"]),
    ("l.txt", b"2.0\n", HEAD + b"1,a\n2,b\n2.0,c\n", "several rows"),
    ("l.txt", b"id\n2\n", FIVE, "1 of its 2 ids are not there (column 'id', as '1'): 'id'"),
    ("l.csv", b"2\n3\n", FIVE, "no column 'id'"),
    ("l.csv", FIVE, FIVE, "nothing would be left"),
    ("l.txt", b"2\n", b"ID,text\n1,a\n2,b\n", "did you mean 'ID'"),
    ("l.txt", b"2\n", HEAD + b"001,a\n002,b\n", "none of its"),
)
"""A list, its table, and the ids that it means there, or the words of the refusal."""

SHARD = HEAD + b"4,d\n"
LEFT = HEAD + THREE["1"] + THREE["3"]
FOLDERS = (
    Folder("shards, of Spark", {"a.csv": PLAIN, "b.csv": SHARD, "_SUCCESS": b"", ".a.crc": b"x"},
           {"a.csv": LEFT, "b.csv": SHARD}),
    Folder("folders by year, with one that is no table's",
           {"year=1/a.csv": PLAIN, "year=2/a.csv": SHARD, "notes/x.md": b"", "_old/a.csv": PLAIN},
           {"notes/x.md": b"", "year=1/a.csv": LEFT, "year=2/a.csv": SHARD}),
    Folder("a copy", {"a.csv": PLAIN, "a (1).csv": PLAIN}, "several rows"),
    Folder("a link to nothing", {"a.csv": PLAIN, "b.csv": None}, "not read with it: b.csv"),
    Folder("Delta Lake", {"a.csv": PLAIN, "_delta_log/0.json": b"{}"}, "it: _delta_log"),
)  # fmt: skip
