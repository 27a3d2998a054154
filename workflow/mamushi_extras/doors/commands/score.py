"""Score the texts of any table by a saved ranking, without the run that fitted it.

FILE is what `mamushi export LIST --to scorer` has written. DATA is a table, a file or a folder of
files, read a block at a time. The result has an id and a score a row, in the order of the rows: the
higher, the more like what was to be forgotten; none of a text that says nothing.
"""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mamushi.errors import UserError
from mamushi_curate.commands import _options

SCORED_AT_ONCE = 8192  # Texts that are in memory at a time.


def run(
    data: str,
    /,
    *,
    scorer: Annotated[Path, Parameter(name="--with")],
    out: Path,
    text: str | None = None,
    id: str | None = None,
    model: str | None = None,
    cells: _options.Cells = _options.Cells(),
) -> tuple[int, Any]:
    """Write the scores. Raises ``UserError`` as ``read_scorer``, ``Conversations.read`` and
    ``readers.table_rows``, and ``ValueError`` for a table without rows.

    :param data: The table, a file or a folder, or a URL.
    :param scorer: What scores: a `stack` that was exported.
    :param out: What to write, .parquet or .csv by its ending.
    :param text: Column with the texts, as where it was fitted, else `text`.
    :param id: Column with the ids, else the number of the row, from 1.
    :param model: Of a scorer of vectors: the model that made these, a folder or an id on the hub.
    """
    import pyarrow as pa
    from pyarrow import csv

    from mamushi.io.digests import provenance
    from mamushi.io.files import atomic
    from mamushi.io.tables import write_table
    from mamushi_curate.rewriting import refuse_existing
    from mamushi_curate.tables import readers
    from mamushi_curate.tables.conversations import Conversations
    from mamushi_curate.tables.lines import Dialect, check_columns
    from mamushi_extras.doors.schemas import NEW_SCORES
    from mamushi_extras.doors.scorers import read_scorer

    if out.suffix not in (".parquet", ".csv"):
        raise UserError("no such format", where=out, do="end it in .parquet or .csv")
    refuse_existing(out)
    fitted, path = read_scorer(scorer, model), _options.fetch(data)[1]
    spoken = Conversations(text or fitted.text, fitted.part)
    needed, dialect = [*spoken.columns, *filter(None, [id])], Dialect.of(vars(cells))
    check_columns(path, readers.columns(path, dialect), needed)
    rows, blocks = enumerate(readers.table_rows(path, needed, dialect), 1), []
    while block := list(islice(rows, SCORED_AT_ONCE)):
        names = [
            readers.name_at(row.get(id), id, place) if id else str(number)
            for number, (place, row) in block
        ]
        scores = fitted.scores([spoken.read(row, place).text for _, (place, row) in block])
        columns = {"id": names, "score": pa.array(scores, mask=scores != scores)}
        blocks.append(pa.table(columns, NEW_SCORES.schema))
    table = pa.concat_tables(blocks)
    if out.suffix == ".parquet":
        write_table(out, NEW_SCORES, table, metadata={"provenance": provenance({}, scorer=scorer)})
    else:
        with atomic(out) as draft:
            csv.write_csv(table, draft)
    unscored = table["score"].null_count
    print(f"{len(table):,} texts scored, {unscored:,} of them say nothing: {out}")
    return 0, {"written": out, "rows": len(table), "without_a_score": unscored}
