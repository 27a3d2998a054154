"""A run's list with all that an audit of it reads, in a results folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.io import paths
from mamushi.io.tables import write_table
from mamushi_extras.unlabelled.schemas import POSTERIOR
from tests.support.removal_files import CELL, link, removal_list
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
    where: dict[str, Any] = {**CELL, "selector": "mamushi"}
    write_scores(paths.under(root, paths.SCORES, **where), ids, domain, score)
    text = [(texts or {}).get(i, f"words of {name}") for i, name in enumerate(ids)]
    write_examples(paths.under(root, paths.EXAMPLES, **where), ids, domain, text=text)
    return link(path)


def write_corpus(root: Path) -> Path:
    """A list of the first 20 of 100 texts of a corpus, c0, c1, ..., that nobody labelled, ranked by
    an example, and a wanted text."""
    names = [f"c{i}" for i in range(100)]
    ids, ranked = [*names, "like:1", "unlike:1"], np.arange(102) < 100
    path = removal_list(root, {name: () for name in names[:20]}, data=root.parent / "comments.csv")
    domain, score = domains(np.arange(102) == 100), np.linspace(5, -5, 102)
    columns = {
        **{"id": ids, "domain": domain, "score": score, "fold": pa.nulls(102, pa.int16())},
        "rank": pa.array(np.arange(1, 103), mask=~ranked),
        **{"log_ratio": score, "posterior": 1 / (1 + np.exp(-score))},
    }
    where: dict[str, Any] = {**CELL, "selector": "mamushi"}
    write_table(paths.under(root, paths.POSTERIOR, **where), POSTERIOR, columns)
    text = [f"words of {name}" for name in ids]
    write_examples(paths.under(root, paths.EXAMPLES, **where), ids, domain, text=text)
    return link(path)
