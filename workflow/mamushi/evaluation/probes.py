"""The table ``generations``: what each model says, and what the gold model makes of it."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.config.arms import Arm
from mamushi.config.grid import cells
from mamushi.evaluation.masking import mask
from mamushi.evaluation.sad import GridLists
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table

SOURCES = ("base", "contaminated", "beta0", "gold")
"""Endpoints in the order in which their texts are shown, before those of unlearners."""
Answers = Sequence[tuple[Sequence[int], str, float]]
"""Of each prompt the ids that a model said, what they decode to, and their mean log-likelihood per
token under the gold model, in nats."""


def arm_of(path: Path) -> Arm:
    """Return the model that a file of continuations is of, by its place in a results folder."""
    where = paths.wildcards(paths.GENERATIONS, path.absolute())
    assert where is not None
    return Arm.parse(where["arm"])


def generations_table(
    run: Mapping[str, Any], prompts: Sequence[str], answers: Mapping[Arm, Answers]
) -> pa.Table:
    """Return the table ``generations`` of one run: the answers of each model, prompt by prompt.

    Endpoints come first. Profanity in texts is masked; the numbers are of the unmasked tokens.
    """
    models = sorted(answers, key=lambda arm: [*SOURCES, arm.endpoint].index(arm.endpoint))
    rows = []
    for (place, prompt), arm in product(enumerate(prompts), models):
        tokens, text, likelihood = answers[arm][place]
        row = {key: run[key] for key in ("dataset", "model", "seed")}
        row |= {"source": arm.endpoint or arm.unlearner, "selector": arm.selector}
        row |= {"beta": arm.beta and float(arm.beta), "prompt": prompt, "text": mask(text)}
        row |= {"tokens": len(tokens), "repetition": repetition(tokens)}
        rows.append({**row, "gold_log_likelihood": float(likelihood)})
    return pa.Table.from_pylist(rows, schema=schemas.GENERATIONS.schema)


def repetition(tokens: Sequence[int], window: int = 16) -> float:
    """Return the share of tokens that occur among the ``window`` tokens before them, 0 without any
    (rep/l of Welleck et al. 2020, Neural Text Generation With Unlikelihood Training)."""
    repeated = sum(t in tokens[max(0, i - window) : i] for i, t in enumerate(tokens))
    return repeated / len(tokens) if tokens else 0.0


def all_generations(grid: GridLists, root: str | Path = "results") -> pa.Table:
    """Return the table ``generations`` of all runs of a grid, in its order."""
    files = [paths.under(root, paths.JUDGED, **run) for run in cells(grid)]
    tables = [read_table(path, schemas.GENERATIONS) for path in files]
    return pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
