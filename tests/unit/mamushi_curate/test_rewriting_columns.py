"""Parquet and Arrow written again: any table of any types without any rows, or one line says why
not."""

import os
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mamushi.errors import UserError
from mamushi.io.domains import name_of
from mamushi_curate.removal import Removal
from mamushi_curate.rewriting import rewrite
from mamushi_curate.tables import readers
from tests.support.workflow import ROOT

FILES = ROOT / "tests" / "cases" / "files"
"""What Polars, DuckDB and Arrow wrote, of six rows each."""
EXAMPLES = int(os.environ.get("MAMUSHI_RANDOM_TABLES", "150"))
VIEW = pa.string_view()
FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), None]
TEXTS = ["", "ä", "a text of more than twelve bytes", "x\0y", None]
WHEN = datetime(2024, 2, 29, 13, 1, 7, 123456)
NANOSECONDS = [1, 1_700_000_000_123_456_789, -5, None]
TYPES: list[tuple[pa.DataType, list[Any]]] = [
    *((kind, [0, 1, 100, None]) for kind in (pa.int8(), pa.uint16(), pa.uint32(), pa.int64())),
    (pa.uint64(), [0, 2**64 - 1, None]),
    *((kind, FLOATS) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *((kind, TEXTS) for kind in (pa.string(), pa.large_string(), VIEW)),
    *((kind, [b"", b"\xff", None]) for kind in (pa.binary(), pa.large_binary())),
    (pa.binary(3), [b"abc", None]),
    (pa.bool_(), [True, False, None]),
    (pa.null(), [None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    (pa.dictionary(pa.int32(), pa.large_string(), ordered=True), ["low", "high"]),
    (pa.decimal128(20, 2), [Decimal("-1.50"), Decimal("9.25"), None]),
    (pa.decimal256(60, 5), [Decimal(10) ** 50, None]),
    (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    (pa.time64("us"), [time(1, 2, 3, 4), None]),
    *((pa.timestamp(unit), [WHEN.replace(microsecond=0), None]) for unit in ("s", "ms")),
    (pa.timestamp("us", "Europe/Vienna"), [WHEN.replace(tzinfo=UTC), None]),
    (pa.timestamp("ns"), NANOSECONDS),
    (pa.duration("us"), [timedelta(days=3), None]),
    (pa.list_(pa.float16()), [[1.0, float("nan")], [], None]),
    (pa.large_list(pa.list_(pa.string())), [[["a"], []], None]),
    (pa.list_(pa.float32(), 2), [[1.0, 2.0], None]),
    (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))]), [{"a": 1, "b": ["x"]}, None]),
    (pa.map_(pa.string(), pa.float64()), [[("k", 1.0)], [], None]),
    (pa.list_(pa.struct([("role", pa.string())])), [[{"role": "user"}], None]),
    (pa.uuid(), [bytes(16), None]),
    (pa.json_(), ['{"a": 1}', None]),
]


@st.composite
def tables(draw: Any) -> tuple[pa.Table, list[str]]:
    """A table of up to 40 rows of some types, and the ids that go."""
    rows = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns: dict[str, Any] = {"id": pa.array([f"id {at}" for at in range(rows)])}
    for at, number in enumerate(draw(st.lists(st.integers(0, len(TYPES) - 1), max_size=6))):
        kind, values = TYPES[number]
        cells = [values[place] for place in rng.integers(0, len(values), rows)]
        storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        array = pa.array(cells, storage)
        columns[f"c{at}.{kind}"[:20]] = (
            array if storage == kind else pa.ExtensionArray.from_storage(kind, array)
        )
    table = pa.table(columns)
    if draw(st.booleans()):
        fields = [field.with_metadata({"of": "ä"}) for field in table.schema]
        table = table.cast(pa.schema(fields, {"own": "value", "pandas": "{}"}))
    gone = draw(st.sets(st.sampled_from(range(rows)), min_size=1, max_size=rows - 1))
    return table, [f"id {at}" for at in gone]


def write_random(table: pa.Table, path: Path, draw: Any) -> None:
    """Write a table in pieces, with settings of any kind."""
    rows = draw(st.integers(1, 40))
    if path.suffix == ".parquet":
        codecs = st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4", "brotli"])
        pq.write_table(
            table,
            path,
            row_group_size=rows,
            compression=draw(codecs),
            use_dictionary=draw(st.booleans()),
            write_statistics=draw(st.booleans()),
            use_deprecated_int96_timestamps=draw(st.booleans()),
            use_compliant_nested_type=draw(st.booleans()),
            write_page_index=draw(st.booleans()),
            data_page_version=draw(st.sampled_from(["1.0", "2.0"])),
            sorting_columns=[pq.SortingColumn(0)] if draw(st.booleans()) else None,
        )
        return
    codec = draw(st.sampled_from([None, "lz4", "zstd"]))
    start = pa.ipc.new_file if draw(st.booleans()) else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(compression=codec, unify_dictionaries=True)
    with start(str(path), table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=rows):
            writer.write_batch(batch)


CHUNK = ("path_in_schema", "compression", "is_stats_set", "has_offset_index", "has_dictionary_page")


def read(path: Path) -> tuple[pa.Table, list[Any]]:
    """Return a table, and of each row group, or batch, what is known of it."""
    if path.suffix != ".parquet":
        is_file = path.read_bytes()[:6] == b"ARROW1"
        source = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(str(path))
        table = source.read_all()
        table.validate(full=True)
        return table, [is_file] * max(column.num_chunks for column in table.columns)
    source = pq.ParquetFile(path)
    groups = [source.metadata.row_group(at) for at in range(source.num_row_groups)]
    return source.read(), [
        [
            group.sorting_columns,
            *(getattr(group.column(at), name) for at in range(group.num_columns) for name in CHUNK),
        ]
        for group in groups
    ]


def printed(table: pa.Table) -> list[list[str]]:
    """Return how Python prints each value, by column: NaN is not equal to itself."""
    return [[repr(value) for value in column.to_pylist()] for column in table.columns]


@settings(max_examples=EXAMPLES, database=None)
@given(tables(), st.sampled_from([".parquet", ".arrow"]), st.data())
def test_any_table_without_any_rows(
    made: tuple[pa.Table, list[str]], suffix: str, data: st.DataObject
) -> None:
    table, gone = made
    with TemporaryDirectory() as folder:
        path, out = Path(folder, f"a{suffix}"), Path(folder, f"b{suffix}")
        write_random(table, path, data.draw)
        was, blocks = read(path)
        rewrite(path, out, Removal({name: {} for name in gone}))
        now, blocks_now = read(out)
    assert now.schema.equals(was.schema, check_metadata=True)
    stays = [name not in gone for name in was["id"].to_pylist()]
    expected = [
        [value for value, stay in zip(column, stays, strict=True) if stay]
        for column in printed(was)
    ]
    assert printed(now) == expected
    remaining = iter(blocks)
    assert all(any(block == other for other in remaining) for block in blocks_now)


@pytest.mark.parametrize("name", [path.name for path in sorted(FILES.iterdir())])
def test_a_file_of_another_program_keeps_schema_and_values(tmp_path: Path, name: str) -> None:
    data, out = FILES / name, tmp_path / f"out{Path(name).suffix}"
    ids = readers.read_file_columns(data, ["id"]).columns["id"]
    if name in ("types.parquet", "duck_uuid.parquet"):
        with pytest.raises(UserError, match=r"column 'iv?' as Interval"):
            rewrite(data, out, Removal({name_of(ids[1]) or "": {}}))
        assert not [*tmp_path.iterdir()]
        return
    rewrite(data, out, Removal({name_of(ids[1]) or "": {}}))
    (was, blocks), (now, blocks_now) = read(data), read(out)
    assert now.schema.equals(was.schema, check_metadata=True)
    assert printed(now) == [[column[0], *column[2:]] for column in printed(was)]
    assert len(blocks) == len(blocks_now)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize(
    ("index", "labels"),
    [
        (pd.RangeIndex(100, 108, 2, name="row"), [100, 106]),
        (pd.RangeIndex(4), [0, 1]),
        (pd.Index(list("wxyz"), name="name"), ["w", "z"]),
    ],
)
def test_rows_keep_the_labels_of_pandas(
    tmp_path: Path, index: Any, labels: list[Any], suffix: str
) -> None:
    """A range from 0 without a name stands for the number of the row."""
    data, out = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    table = pa.Table.from_pandas(pd.DataFrame({"id": list("abcd")}, index=index))
    if suffix == ".parquet":
        pq.write_table(table, data, row_group_size=2)
    else:
        with pa.ipc.new_file(str(data), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    rewrite(data, out, Removal({"b": {}, "c": {}}))
    frame = read(out)[0].to_pandas()
    assert frame.index.tolist() == labels
    assert frame.index.name == index.name
    assert frame["id"].tolist() == ["a", "d"]


SECRET = "this goes, and no byte of it stays"
SECRETS = [SECRET, "b", None, "a text of more than twelve bytes"]
KINDS: dict[str, pa.Array] = {
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 3, 4], pa.int32()), pa.array([SECRET, "b", None])
    ),
    "dense union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0, 1], pa.int8()),
        pa.array([0, 0, 1, 1], pa.int32()),
        [pa.array([SECRET, "b"]), pa.array([1, 2])],
    ),
    "dictionary of ids": pa.array([SECRET, "b", "c", "d"]).dictionary_encode(),
    "extension": pa.ExtensionArray.from_storage(
        pa.opaque(VIEW, "text", "own"), pa.array(SECRETS, VIEW)
    ),
}


OF_ARROW = [(kind, suffix) for kind in KINDS for suffix in (".arrow", ".stream.arrow")]


@pytest.mark.parametrize(("kind", "suffix"), [*OF_ARROW, ("dictionary of ids", ".parquet")])
def test_what_goes_leaves_no_byte(tmp_path: Path, kind: str, suffix: str) -> None:
    data, out = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    columns = {"id": pa.array(list("wxyz")), kind: KINDS[kind]}
    table = pa.table({"id": KINDS[kind]} if kind == "dictionary of ids" else columns)
    if suffix == ".parquet":
        pq.write_table(table, data, compression="none")
    else:
        start = pa.ipc.new_stream if "stream" in suffix else pa.ipc.new_file
        with start(str(data), table.schema) as writer:
            writer.write_table(table)
    ids = table["id"].to_pylist()
    rewrite(data, out, Removal({ids[0]: {}, ids[2]: {}}))
    now = read(out)[0]
    assert now.schema.equals(table.schema, check_metadata=True)
    assert now.to_pylist() == [table.to_pylist()[at] for at in (1, 3)]
    assert SECRET.encode() not in out.read_bytes()
