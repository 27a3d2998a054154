"""How many of the ranked texts were read in part: a model's vectors are of the first tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.domains import INFERENCE


def cut(root: Path, cell: Mapping[str, str | int]) -> str | None:
    """Return in one sentence how many texts of a cell were cut, at how many tokens, and what to do;
    None where none was, or no tokens are there."""
    import pyarrow.compute as pc

    from mamushi.io import schemas
    from mamushi.io.tables import read_groups, read_metadata, read_table

    tokens, examples, vectors = (
        paths.under(root, pattern, **cell)
        for pattern in (paths.TOKENS, paths.EXAMPLES, paths.EMBEDDINGS)
    )
    if not tokens.is_file():
        return None
    try:
        about = read_metadata(tokens)
        stored = int(about.get("positions") or about["max_length"])
        most = min(int(read_metadata(vectors)["settings"]["embedding"]["max_length"]), stored)
        ranked = pc.equal(read_table(examples, schemas.EXAMPLES, ["section"])["section"], INFERENCE)
        start = count = 0
        for group in read_groups(tokens, schemas.TOKENS, ["tokens"]):
            lengths = pc.list_value_length(group["tokens"])
            # Where no more tokens are kept, a text of just so many looks like a longer one.
            long = pc.greater(lengths, most) if stored > most else pc.equal(lengths, most)
            count += pc.sum(pc.and_(long, ranked.slice(start, len(group)))).as_py() or 0
            start += len(group)
    except (UserError, OSError, LookupError, TypeError, ValueError):
        # Of a damaged file, or one of another version, nothing is known.
        return None
    if not count:
        return None
    whole = pc.sum(ranked).as_py()
    longer = "are longer than" if stored > most else "have as many as or more than"
    raised = ", or raise embedding.max_length and tokens.max_length in the configuration"
    if most == about.get("positions"):
        raised = ", for the model has positions for no more"
    return (
        f"{count:,} of {whole:,} texts {longer} {most} tokens and were ranked by their first {most}"
        f"; to read them whole, give --windows WORDS to mamushi rank{raised}"
    )
