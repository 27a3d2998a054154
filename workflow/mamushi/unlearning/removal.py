"""Which texts to unlearn: the table `removals` of this program, or a list of one's own."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError, located
from mamushi.io import schemas, tabular
from mamushi.io.tables import MARK, read_table
from mamushi.lm.tokens import TokenSet, subset
from mamushi.selection.removals import text_digests

OURS = {"id", "score", "rank", "copies"}
"""Columns by which a removal list of this program is known."""
OF_ALL = ({"id", "rank", "fold"}, {"id", "rank", "frequency"}, {"id", "domain", "section"})
"""Columns of this program's tables of all texts."""
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_ids(path: str | Path) -> list[str]:
    """Read the ids of a removal list, in its order: the column ``id`` of Parquet, CSV, TSV and JSON
    Lines, or the lines of any other file, packed with gzip or not; each id once. Raises
    ``UserError`` for a list without an id, and for a row without one."""
    path = Path(path)
    if not path.is_file():
        raise UserError(tabular.no_file(path), where=path)
    with located(path):
        table = _read(path)
        if table is None:
            with pa.input_stream(str(path)) as stream:
                lines = re.split(r"\r\n?|\n", stream.read().decode().lstrip("\ufeff"))
            ids = [line.strip(" \t") for line in lines if line.strip()]
        elif "id" not in table.column_names:
            raise UserError(f"no column 'id'; it has {', '.join(table.column_names)}")
        else:
            ids = table["id"].cast(pa.string()).to_pylist()
    if not all(ids) or not ids:
        raise UserError("names no id" + " in a row" * bool(ids), where=path)
    return [*dict.fromkeys(ids)]


def _read(path: Path) -> pa.Table | None:
    """Read a list that is a table; None of another."""
    kind = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    if kind in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        return pq.read_table(path)
    if kind in SEPARATORS:
        from pyarrow import csv

        options = csv.ParseOptions(delimiter=SEPARATORS[kind], newlines_in_values=True)
        # 007 and 1.0 stay as they are.
        types = csv.ConvertOptions(column_types={"id": pa.string()})
        return csv.read_csv(path, parse_options=options, convert_options=types)
    if kind in (".jsonl", ".ndjson"):
        # pyarrow would take text for dates.
        with pa.input_stream(str(path)) as stream:
            rows = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
        texts = {name: [row.get(name) for row in rows] for name in rows[0]} if rows else {"id": []}
        texts["id"] = [None if name is None else str(name) for name in texts["id"]]
        return pa.table({name: column for name, column in texts.items() if name in {*OURS}})
    if tabular.format_of(path) in (None, "txt"):
        return None
    raise UserError("is no list; give Parquet, CSV, TSV, JSON Lines or an id a line", where=path)


def columns_of(path: Path) -> set[str] | None:
    """Return the columns of a list that is a table; None of another. Raises ``UserError`` for
    another table of this program, most of which name all texts."""
    with located(path):
        table = _read(path) if path.is_file() else None
    if table is None:
        return None
    names, is_ours = {*table.column_names}, MARK.encode() in (table.schema.metadata or {})
    if names >= OURS or not (is_ours or any(names >= columns for columns in OF_ALL)):
        return names
    do = "give removals/SELECTOR/betaB.parquet, or make one with mamushi list"
    raise UserError("is another table of a run, and no list", where=path, do=do)


def listed_texts(forget: TokenSet, path: Path, examples: Path) -> TokenSet:
    """Return the listed of the ``forget`` texts, in their order, so that a list means the same
    however it is sorted; that of a budget of less than one text is empty. Raises ``UserError`` for
    ids that are not there and, of a list of this program, where ``examples`` has another text."""
    digests: list[str] = []
    if (columns_of(path) or set()) >= OURS:
        table = read_table(path, schemas.REMOVALS, ["id", "text_sha256"])
        ids, digests = (table[name].to_pylist() for name in ("id", "text_sha256"))
    else:
        ids = read_ids(path)
    rows = pc.index_in(pa.array(ids, pa.string()), pa.array(forget.ids, pa.string()))
    if rows.null_count:
        unknown = ids[rows.is_null().index(True).as_py()]
        are = f"of its {len(ids)} ids are no forget texts of the inference section"
        raise UserError(f"{rows.null_count} {are}, the first is {unknown!r}", where=path)
    if digests:
        for name, *both in zip(ids, digests, text_digests(examples, ids), strict=True):
            if both[0] != both[1]:
                raise UserError(f"its text {name!r} is another one than in {examples}", where=path)
    return subset(forget, np.sort(rows.to_numpy()).astype(np.int64))
