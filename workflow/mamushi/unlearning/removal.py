"""Which texts to unlearn: the table `removals` of this program, or a list of one's own."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError, located
from mamushi.io import schemas, tabular
from mamushi.io.domains import name_of
from mamushi.io.tables import MARK, read_table
from mamushi.lm.tokens import TokenSet, subset
from mamushi.selection.removals import text_digests

OURS = {"id", "score", "rank", "copies"}
"""Columns by which a removal list of this program is known."""
OF_ALL = ({"id", "rank", "fold"}, {"id", "rank", "frequency"}, {"id", "domain", "section"})
"""Columns of this program's tables of all texts."""
PARQUET = (".parquet", ".pq")
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_list(path: str | Path) -> pa.Table:
    """Read a removal list: the table `removals` of this program, of any other list the column
    ``id``, each id once. Raises ``UserError`` for a list without an id, for a row without one, for
    `removals` in another format, and for another table of this program, most of which name all
    texts."""
    table = _read(Path(path))
    names, is_ours = {*table.column_names}, MARK.encode() in (table.schema.metadata or {})
    if names >= OURS:
        if Path(path).suffix.lower() in PARQUET:
            return read_table(path, schemas.REMOVALS)
        problem = "is a removal list in another format, of which copies would stay"
        raise UserError(problem, where=path, do="give the .parquet that the run has made")
    if is_ours or any(names >= columns for columns in OF_ALL):
        do = "give removals/SELECTOR/betaB.parquet, or make one with mamushi list"
        raise UserError("is another table of a run, and no list", where=path, do=do)
    if "id" not in names:
        raise UserError(f"no column 'id'; it has {', '.join(table.column_names)}", where=path)
    ids = table["id"].cast(pa.string()).to_pylist()
    if not all(ids) or not ids:
        raise UserError("names no id" + " in a row" * bool(ids), where=path)
    return pa.table({"id": [*dict.fromkeys(ids)]})


def _read(path: Path) -> pa.Table:
    """Read a list as a table, of which JSON Lines have the columns of ``OURS`` alone."""
    if not path.is_file():
        raise UserError(tabular.why_not_a_file(path), where=path)
    kind = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    with located(path):
        if kind in PARQUET:
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if kind in SEPARATORS:
            from pyarrow import csv

            options = csv.ParseOptions(delimiter=SEPARATORS[kind], newlines_in_values=True)
            # 007 and 1.0 stay as they are.
            types = csv.ConvertOptions(column_types={"id": pa.string()})
            return csv.read_csv(path, parse_options=options, convert_options=types)
        if tabular.format_of(path) not in (None, "txt", "jsonl"):
            raise UserError("is no list; give Parquet, CSV, TSV, JSON Lines or an id a line")
        with pa.input_stream(str(path)) as stream:
            text = stream.read().decode().lstrip("\ufeff")
        if kind in (".jsonl", ".ndjson"):
            # pyarrow would take text for dates.
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
            names = OURS.intersection(*rows[:1])
            columns = {name: [row.get(name) for row in rows] for name in names}
            columns |= {"id": [name_of(row.get("id")) for row in rows]} if "id" in names else {}
            return pa.table(columns)
        lines = (line.strip(" \t") for line in re.split(r"\r\n?|\n", text))
        return pa.table({"id": pa.array(filter(None, lines), pa.string())})


def listed_texts(forget: TokenSet, path: Path, examples: Path) -> TokenSet:
    """Return the listed of the ``forget`` texts, in their order, so that a list means the same
    however it is sorted; that of a budget of less than one text is empty. Raises ``UserError`` for
    ids that are not there and, of a list of this program, where ``examples`` has another text."""
    table = read_list(path)
    ids, is_ours = table["id"].to_pylist(), OURS.issubset(table.column_names)
    rows = pc.index_in(pa.array(ids, pa.string()), pa.array(forget.ids, pa.string()))
    if rows.null_count:
        unknown = ids[rows.is_null().index(True).as_py()]
        are = f"of its {len(ids)} ids are no forget texts of the inference section"
        raise UserError(f"{rows.null_count} {are}, the first is {unknown!r}", where=path)
    digests = table["text_sha256"].to_pylist() if is_ours else []
    if is_ours and (texts := text_digests(examples, ids)) != digests:
        name = ids[np.flatnonzero(np.array(texts) != np.array(digests))[0]]
        raise UserError(f"its text {name!r} is another one than in {examples}", where=path)
    return subset(forget, np.sort(rows.to_numpy()).astype(np.int64))
