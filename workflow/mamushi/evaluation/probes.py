"""The tables of the probes: what each model says, and how fast an unlearned one relearns."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.config import arms
from mamushi.config.arms import Arm
from mamushi.config.grid import cells
from mamushi.evaluation.cohort import RETRAINING_SOURCE, Cohort, cohorts
from mamushi.evaluation.intervals import Floats, finite_or_none, interval
from mamushi.evaluation.masking import mask
from mamushi.evaluation.sad import GridLists, read_perplexity
from mamushi.io import paths, schemas
from mamushi.io.tables import FORGET, read_table

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


def relapse_table(
    grid: GridLists, starts: Mapping[str, str], root: str | Path = "results"
) -> pa.Table:
    """Return the table ``relapse``: the forget NLL that models regain by relearning, over seeds.

    Rows are of retrained and unlearned models at all ``budgets`` of the grid, each beside what the
    gold model learns in as many steps, and with its share of the gap that start and gold have after
    them. ``starts`` names, by model, the endpoint that unlearning starts from.
    """
    rows: list[dict[str, Any]] = []
    for cohort in cohorts(grid, root):
        rows += _relapses(cohort, grid, starts[cohort.model])
    return pa.Table.from_pylist(rows, schema=schemas.RELAPSE.schema)


def _relapses(cohort: Cohort, grid: GridLists, endpoint: str) -> Iterator[dict[str, Any]]:
    start = [read_perplexity(path) for path in cohort.files(paths.PERPLEXITY, arm=endpoint)]
    level = np.array([perplexity["nll_forget"] for perplexity in start])
    gold, seeds, texts = _curves(cohort, "gold"), len(cohort.seeds), cohort.rows(FORGET)
    start_texts, gold_texts = (_relearned(cohort, arm) for arm in (endpoint, "gold"))
    names = (RETRAINING_SOURCE, *grid["unlearners"])
    for name, selector, beta in product(names, grid["selectors"], map(float, grid["budgets"])):
        method = arms.RETRAINING if name == RETRAINING_SOURCE else name
        arm = arms.unlearned(method, selector, beta)
        nll, relearned = _curves(cohort, arm), _relearned(cohort, arm)
        for step in sorted(nll)[1:]:
            regained, theirs = ((curve[0] - curve[step])[:, 0] for curve in (nll, gold))
            ends = start_texts[step], gold_texts[step]
            share = cohort.contrast(texts, relearned[step], ends[0], ends)
            row = {**cohort.cell, "source": name, "selector": selector, "beta": beta}
            row |= {"step": step, "seeds": seeds, "raised": float((nll[0][:, 0] - level).mean())}
            row |= {"regained": float(regained.mean()), "gold_regained": float(theirs.mean())}
            row["excess"] = float((regained - theirs).mean())
            row["excess_low"], row["excess_high"] = map(finite_or_none, interval(regained - theirs))
            row |= share.share_columns("relearned") | {"relearned_withheld": share.reason}
            row["retain_lost"] = float((nll[step] - nll[0])[:, 1].mean())
            row["why"] = None if seeds > 1 else "one seed: training again may change as much"
            yield row


def _relearned(cohort: Cohort, arm: str) -> dict[int, Floats]:
    """Return by step the summed NLL of each held-out text (S, n), in nats, NaN of those that are
    not measured, under the models of an arm that has relearned for so many steps."""
    by_seed = [
        read_table(path, schemas.RELEARNED_TEXTS).to_pandas().pivot(index="id", columns="step")
        for path in cohort.files(paths.RELEARNED, arm=arm)
    ]
    ids = cohort.held_out["id"].to_pylist()
    nll = np.array([frame["nll"].reindex(ids) for frame in by_seed])
    return dict(zip(by_seed[0]["nll"], np.moveaxis(nll, -1, 0), strict=True))


def _curves(cohort: Cohort, arm: str) -> dict[int, Floats]:
    """Return mean NLL per token by step, from step 0 on, (S, 2) of forget and retain."""
    files = cohort.files(paths.RELEARNING, arm=arm)
    curves = [read_table(path, schemas.RELEARNING_CURVE).sort_by("step") for path in files]
    columns = ("ppl_forget", "ppl_retain")
    ends = [np.log(np.column_stack([curve[name] for name in columns])) for curve in curves]
    return dict(zip(curves[0]["step"].to_pylist(), np.stack(ends, axis=1), strict=True))
