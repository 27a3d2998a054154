"""Parquet and Arrow written again: as they are stored, whoever wrote them, or one line says why
not."""

from __future__ import annotations

import io
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.data import footers, readers
from mamushi.data.matching import RowRemoval
from mamushi.data.rewriting import rewrite
from mamushi.errors import UserError
from tests.support.workflow import ROOT

FILES = ROOT / "tests" / "cases" / "files"
"""What Polars, DuckDB and Arrow wrote, of six rows each."""
VIEW = pa.string_view()


def without(data: Path, ids: list[str], out: Path) -> Path:
    rewrite(data, out, RowRemoval(ids, "id"))
    return out


# Parquet ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["polars", "duck", "types", "view"])
def test_a_file_of_another_program_keeps_its_schema(tmp_path: Path, name: str) -> None:
    """Footers of version 1 with nanoseconds and unsigned integers, intervals, views."""
    data = FILES / f"{name}.parquet"
    out = without(data, ["a2"], tmp_path / "out.parquet")
    was, now = pq.ParquetFile(data), pq.ParquetFile(out)
    trees = []
    for path in (data, out):
        with path.open("rb") as handle:
            trees.append(footers.read_footer(handle, path))
    for field in (footers.VERSION, footers.SCHEMA, footers.METADATA):
        assert trees[0].get(field) == trees[1].get(field)
    assert was.schema.equals(now.schema)
    assert was.schema_arrow.equals(now.schema_arrow, check_metadata=True)
    rows = was.read().to_pylist()
    assert now.read().to_pylist() == [row for row in rows if row["id"] != "a2"]
    assert now.metadata.num_rows == 5


def chunks(path: Path) -> list[list[tuple[Any, ...]]]:
    metadata = pq.ParquetFile(path).metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    columns = [[group.column(at) for at in range(group.num_columns)] for group in groups]
    return [
        [(c.path_in_schema, c.compression, c.has_offset_index, c.is_stats_set) for c in group]
        for group in columns
    ]


def test_pages_sorting_and_row_groups_stay(tmp_path: Path) -> None:
    data, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table = pa.table(
        {
            "id": pa.array(list("abcdefgh")),
            "n": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int16()),
            "when": pa.array([10**15 + at * 1000 for at in range(8)], pa.timestamp("ns")),
            "price": pa.array([Decimal(at) / 4 for at in range(8)], pa.decimal128(30, 2)),
            "tags": pa.array([[{"k": str(at)}] for at in range(8)]),
        }
    )
    pq.write_table(
        table,
        data,
        row_group_size=2,
        sorting_columns=[pq.SortingColumn(1, descending=True)],
        write_page_index=True,
        data_page_version="2.0",
        compression={"id": "zstd", "n": "gzip", "when": "none"},
        version="1.0",
        coerce_timestamps="us",
    )
    # The second row group goes whole.
    without(data, ["a", "c", "d"], out)
    was, now = pq.ParquetFile(data), pq.ParquetFile(out)
    left = [at for at in range(8) if at not in (0, 2, 3)]
    assert now.read().equals(was.read().take(left), check_metadata=True)
    groups = [now.metadata.row_group(at) for at in range(now.num_row_groups)]
    assert [group.num_rows for group in groups] == [1, 2, 2]
    assert {group.sorting_columns for group in groups} == {(pq.SortingColumn(1, descending=True),)}
    before = chunks(data)
    assert chunks(out) == [before[0], *before[2:]]
    kinds = []
    for path in (data, out):
        with path.open("rb") as handle:
            group = footers.value(footers.read_footer(handle, path), footers.ROW_GROUPS)[0]
            column = footers.value(group, footers.COLUMNS)[1]
            kinds.append(
                footers.first_page_kind(handle, footers.value(column, footers.COLUMN_METADATA))
            )
    assert kinds == [footers.DATA_PAGE_2] * 2


def test_statistics_tell_of_the_rows_that_are_left_and_filters_find_them(tmp_path: Path) -> None:
    data, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    columns = {
        "id": pa.array(["a", "b", "c"]),
        "u": pa.array([2**32 - 1, 5, 7], pa.uint32()),
        "d": pa.array([Decimal("-1.50"), Decimal("9.25"), Decimal("0.00")], pa.decimal128(20, 2)),
        "t": pa.array([3, 1, 2], pa.time64("us")),
    }
    pq.write_table(pa.table(columns), data)
    without(data, ["b"], out)
    group = pq.ParquetFile(out).metadata.row_group(0)
    bounds = {group.column(at).path_in_schema: group.column(at).statistics for at in range(4)}
    assert (bounds["u"].min, bounds["u"].max) == (7, 2**32 - 1)
    assert (bounds["d"].min, bounds["d"].max) == (Decimal("-1.50"), Decimal("0.00"))
    assert pq.read_table(out, filters=[("u", ">", 2**31)])["id"].to_pylist() == ["a"]
    assert pq.read_table(out, filters=[("d", "<", Decimal("0.00"))])["id"].to_pylist() == ["a"]


def test_old_times_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    data, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for year, beyond in ((2000, False), (9999, True), (1, True)):
        when = pa.array([datetime(year, 1, 1), None], pa.timestamp("us"))
        table = pa.table({"id": ["a", "b"], "seen": when})
        pq.write_table(table, data, use_deprecated_int96_timestamps=True)
        if beyond:
            with pytest.raises(UserError, match=r"column 'seen' holds times \(INT96\) before 1678"):
                without(data, ["b"], out)
            assert not out.exists()
        else:
            without(data, ["b"], out)
            assert pq.read_table(out).to_pylist() == [{"id": "a", "seen": datetime(2000, 1, 1)}]
            out.unlink()


def test_a_list_of_the_old_form_is_refused_by_its_name(tmp_path: Path) -> None:
    """In two levels, as early programs wrote it: here by taking a level out of the schema."""
    data, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "tags": [[1], [2, 3]]}), data)
    with data.open("rb+") as handle:
        footer = footers.read_footer(handle, data)
        root, name, tags, middle, leaf = footers.value(footer, footers.SCHEMA)
        del middle
        leaf = {**leaf, footers.REPETITION: (5, 2)}
        footers.replace(
            handle, footers.with_items(footer, footers.SCHEMA, [root, name, tags, leaf])
        )
    with pytest.raises(UserError, match=r"a\.parquet: column 'tags' is stored in a way"):
        without(data, ["a"], out)
    assert not out.exists()


def test_the_footer_that_is_read_is_the_footer_that_is_written() -> None:
    for path in FILES.glob("*.parquet"):
        content = path.read_bytes()
        footer = footers.read_footer(io.BytesIO(content), path)
        assert content.endswith(footers.encoded(footer))


@pytest.mark.parametrize("cut", [1, 7, 40, 200])
def test_a_file_cut_short_is_damaged(tmp_path: Path, cut: int) -> None:
    for name in ("duck.parquet", "polars.arrow"):
        data = tmp_path / name
        data.write_bytes((FILES / name).read_bytes()[:-cut])
        with pytest.raises(UserError, match="damaged or not a"):
            without(data, ["a2"], tmp_path / f"out{data.suffix}")
    assert not [*tmp_path.glob("out*")]


# Arrow --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["polars.arrow", "polars_stream.arrow", "ree.arrow"])
def test_a_stream_stays_a_stream_and_a_file_a_file(tmp_path: Path, name: str) -> None:
    out = without(FILES / name, ["a2"], tmp_path / "out.arrow")
    was, now = read_arrow(FILES / name), read_arrow(out)
    assert (out.read_bytes()[:6] == b"ARROW1") == (name == "polars.arrow")
    assert was.schema.equals(now.schema, check_metadata=True)
    assert now.to_pylist() == [row for row in was.to_pylist() if row["id"] != "a2"]
    assert readers.read_file_columns(out, ["id"]).columns["id"] == now["id"].to_pylist()


def read_arrow(path: Path) -> pa.Table:
    is_file = path.read_bytes()[:6] == b"ARROW1"
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(str(path)).read_all()


SECRET = "this goes, and no byte of it stays"
TEXTS = [SECRET, "b", None, "a text of more than twelve bytes"]
KINDS: dict[str, pa.Array] = {
    "string_view": pa.array(TEXTS, VIEW),
    "binary_view": pa.array([text and text.encode() for text in TEXTS], pa.binary_view()),
    "list of views": pa.array([[text] for text in TEXTS], pa.list_(VIEW)),
    "struct of views": pa.array([{"a": text} for text in TEXTS], pa.struct([("a", VIEW)])),
    "map of views": pa.array([[("k", text)] for text in TEXTS], pa.map_(pa.string(), VIEW)),
    "list_view": pa.array([[text] for text in TEXTS], pa.list_view(pa.string())),
    "large list of lists": pa.array([[[text]] for text in TEXTS], pa.large_list(pa.list_(VIEW))),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 3, 4], pa.int32()), pa.array([SECRET, "b", None])
    ),
    "run-end encoded views": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 3, 4], pa.int32()), pa.array([SECRET, "b", None], VIEW)
    ),
    "sparse union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0, 1], pa.int8()), [pa.array(TEXTS), pa.array([1, 2, 3, 4])]
    ),
    "dense union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0, 1], pa.int8()),
        pa.array([0, 0, 1, 1], pa.int32()),
        [pa.array([SECRET, "b"]), pa.array([1, 2])],
    ),
    "extension": pa.ExtensionArray.from_storage(
        pa.opaque(VIEW, "text", "own"), pa.array(TEXTS, VIEW)
    ),
    "uuid": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([bytes([at]) * 16 for at in range(4)], pa.binary(16))
    ),
    "null": pa.nulls(4),
    "decimal32": pa.array([Decimal("1.5"), None, Decimal("2.5"), None], pa.decimal32(3, 1)),
}


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_is_written_and_what_goes_leaves_nothing(
    tmp_path: Path, kind: str, is_file: bool
) -> None:
    data, out = tmp_path / "a.arrow", tmp_path / "b.arrow"
    table = pa.table({"id": list("wxyz"), "value": KINDS[kind]})
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(str(data), table.schema) as writer:
        writer.write_table(table)
    without(data, ["w", "y"], out)
    now = read_arrow(out)
    now.validate(full=True)
    assert now.schema.equals(table.schema, check_metadata=True)
    assert now.to_pylist() == [table.to_pylist()[at] for at in (1, 3)]
    assert SECRET.encode() not in out.read_bytes()


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_batches_keep_their_metadata_and_compression(
    tmp_path: Path, compression: str | None, is_file: bool
) -> None:
    data, out = tmp_path / "a.feather", tmp_path / "b.feather"
    options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
    schema = pa.schema(
        [("id", pa.string()), ("kind", pa.dictionary(pa.int8(), pa.string()))], {"own": "é"}
    )
    start = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with start(str(data), schema, options=options) as writer:
        for at, known in enumerate((["p"], ["p", "q"], ["p", "q", "r"])):
            ids = pa.array([f"{at}-{place}" * 500 for place in range(3)])
            kinds = pa.DictionaryArray.from_arrays(pa.array([at] * 3, pa.int8()), known)
            batch = pa.record_batch([ids, kinds], schema=schema)
            writer.write_batch(batch, custom_metadata={"batch": str(at)})
    # Nothing is left of the first batch.
    gone = [f"0-{place}" * 500 for place in range(3)] + ["1-1" * 500]
    without(data, gone, out)
    was, now = read_arrow(data), read_arrow(out)
    assert now.schema.equals(was.schema, check_metadata=True)
    assert now.to_pylist() == [row for row in was.to_pylist() if row["id"] not in gone]
    if is_file:
        source = pa.ipc.open_file(str(out))
        numbers = range(source.num_record_batches)
        found = [source.get_batch_with_custom_metadata(at).custom_metadata for at in numbers]
    else:
        batches = pa.ipc.open_stream(str(out)).iter_batches_with_custom_metadata()
        found = [batch.custom_metadata for batch in batches]
    assert [about[b"batch"] for about in found] == [b"1", b"2"]
    # The ids that are left take 1,500 bytes each, and next to nothing where they are compressed.
    assert (out.stat().st_size < 5000) == (compression is not None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.arrow", b"FEA1" + b"\0" * 20, "is a Feather file of version 1, not an Arrow stream"),
        ("a.parquet", b"PARE" + b"\0" * 20, "is an encrypted Parquet file, not a Parquet file"),
        ("a.parquet", b"id,text\n1,2\n", r"is not a Parquet file: it begins with b'id,text\\n"),
        ("a.parquet", b"ARROW1\0\0", "is an Arrow file, not a Parquet file; name it by what it is"),
        ("a.arrow", b"PAR1" * 8, "is a Parquet file, not an Arrow stream or file"),
        ("a.arrow", b"\x1f\x8b" * 8, "is a gzip file, not an Arrow stream or file"),
        ("a.parquet", b"PAR1" * 8, "damaged or not a Parquet file"),
    ],
)
def test_what_is_no_damage_is_not_called_so(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    data = tmp_path / name
    data.write_bytes(content)
    with pytest.raises(UserError, match=message):
        readers.read_file_columns(data, ["id"])
    with pytest.raises(UserError, match=message):
        without(data, ["1"], tmp_path / f"out{data.suffix}")
