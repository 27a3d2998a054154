"""List the examples to remove at one budget: the top of a ranking, with all their copies."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from mamushi.errors import UserError
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, Remove


def settings(config: Config, beta: str) -> Remove:
    return Remove(beta=float(beta), code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    scores: Path = reads("scores to rank by")
    duplicates: Path = reads("the dataset's duplicates table")
    out: Path = writes("the removals table to write")


def run(files: Files, settings: Remove, job: Job) -> None:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_metadata, read_table, write_table
    from mamushi.selection.removals import budget_of, removals

    scores = read_table(files.scores, schemas.SCORES)
    duplicates = read_table(files.duplicates, schemas.DUPLICATES)
    examples = read_metadata(files.scores)["provenance"]["inputs"]["examples"]
    if read_metadata(files.duplicates)["examples"] != examples:
        raise UserError(
            f"was made with other examples than {files.scores}",
            where=files.duplicates,
            do="make the examples and the scores again",
        )
    k = budget_of(settings.beta, scores)
    if k == 0:
        # The budgets of the grid are refused where the texts are counted; between two of a sweep
        # there may be one so small, and unlearning then measures the start.
        n1 = len(scores) - scores["rank"].null_count
        said = f"a budget of {settings.beta:g} is less than one of {n1} forget texts"
        print(f"{files.out}: {said}: the list is empty", file=sys.stderr)
    table = removals(scores, duplicates, k)
    write_table(files.out, schemas.REMOVALS, table, metadata={"provenance": job.origin})
