"""A run's list with all that an audit of it reads, in a results folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mamushi.artifacts import paths
from tests.support.removal_files import CELL, removal_list
from tests.support.score_files import domains, write_examples, write_scores

FORGET, RETAIN, LISTED = 60, 240, 30


def write_audited(
    root: Path,
    forget: int = FORGET,
    retain: int = RETAIN,
    listed: int = LISTED,
    copies: Mapping[str, Sequence[str]] | None = None,
    texts: Mapping[int, str] | None = None,
) -> Path:
    """Forget texts f0, f1, ... in the order of the ranking, of which the first ``listed`` are the
    list, and retain texts r0, r1, ..., of which the first look most like them."""
    ids = [*(f"f{i}" for i in range(forget)), *(f"r{i}" for i in range(retain))]
    of = {name: (copies or {}).get(name, ()) for name in ids[:listed]}
    path = removal_list(root, of, data=root.parent / "comments.csv")
    domain = domains(np.arange(len(ids)) < forget)
    score = np.concatenate([np.linspace(5, 0, forget), np.linspace(1, -6, retain)])
    where = {**CELL, "selector": "mamushi"}
    write_scores(paths.under(root, paths.SCORES, **where), ids, domain, score)
    text = [(texts or {}).get(i, f"words of {name}") for i, name in enumerate(ids)]
    write_examples(paths.under(root, paths.EXAMPLES, **where), ids, domain, text=text)
    return path
