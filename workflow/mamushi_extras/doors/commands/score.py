"""Score the texts of any table by a saved selector, without the run that fitted it.

FILE is what `mamushi export LIST --to scorer` has written. DATA is a table, a file or a folder of
files, read a block at a time. The result has an id and a score a row, in the order of the rows: the
higher, the more like what was to be forgotten; none of a text that says nothing.
"""

import argparse
from itertools import islice
from pathlib import Path

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi_curate.commands import _options

SCORED_AT_ONCE = 8192
"""Texts that are in memory at a time."""
SCORE_FORMATS = (".parquet", ".csv")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("data", metavar="DATA", help="the table, a file or a folder, or a URL")
    scorer = "what scores: a selector that was exported"
    parser.add_argument(
        "--with", required=True, type=Path, metavar="FILE", dest="scorer", help=scorer
    )
    out = f"what to write, {', '.join(SCORE_FORMATS)} by its ending"
    parser.add_argument("--out", required=True, type=_options.local_path, metavar="FILE", help=out)
    text = "column with the texts (default: as where it was fitted, else `text`)"
    parser.add_argument("--text", metavar="COLUMN", help=text)
    ids = "column with the ids (default: the number of the row, from 1)"
    parser.add_argument("--id", metavar="COLUMN", help=ids)
    model = "of a scorer of vectors: the model that made these, a folder or an id on the hub"
    parser.add_argument("--model", help=model)
    _options.dialect(parser)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Write the scores. Raises ``UserError`` as ``read_scorer``, ``Conversations.read`` and
    ``readers.table_rows``, and ``ValueError`` for a table without rows."""
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

    if args.out.suffix not in SCORE_FORMATS:
        do = f"end it in {', '.join(SCORE_FORMATS)}"
        raise UserError("no such format", where=args.out, do=do)
    refuse_existing(args.out)
    scorer = read_scorer(args.scorer, args.model)
    path = _options.fetch(args.data)[1]
    spoken = Conversations(args.text or scorer.text, scorer.part)
    needed, dialect = [*spoken.columns, *filter(None, [args.id])], Dialect.of(vars(args))
    check_columns(path, readers.columns(path, dialect), needed)
    rows, blocks = enumerate(readers.table_rows(path, needed, dialect), 1), []
    while block := list(islice(rows, SCORED_AT_ONCE)):
        names = [
            readers.name_at(cells.get(args.id), args.id, place) if args.id else str(number)
            for number, (place, cells) in block
        ]
        scores = scorer.scores([spoken.read(cells, place).text for _, (place, cells) in block])
        columns = {"id": names, "score": pa.array(scores, mask=scores != scores)}
        blocks.append(pa.table(columns, NEW_SCORES.schema))
    table = pa.concat_tables(blocks)
    if args.out.suffix == ".parquet":
        origin = provenance({}, scorer=args.scorer)
        write_table(args.out, NEW_SCORES, table, metadata={"provenance": origin})
    else:
        with atomic(args.out) as draft:
            csv.write_csv(table, draft)
    unscored = table["score"].null_count
    print(f"{len(table):,} texts scored, {unscored:,} of them say nothing: {args.out}")
    _as_json.put({"written": args.out, "rows": len(table), "without_a_score": unscored})
