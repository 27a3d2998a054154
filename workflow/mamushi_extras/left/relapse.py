"""The table ``relapse``: how fast an unlearned model relearns, beside gold."""

from collections.abc import Iterator, Mapping
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.config import arms
from mamushi.config.arms import RETRAINING_SOURCE
from mamushi.evaluation.intervals import Floats, finite_or_none
from mamushi.evaluation.sad import GridLists, read_perplexity
from mamushi.io import paths
from mamushi.io.columns import Table
from mamushi.io.tables import DOMAINS, FORGET, read_table
from mamushi_extras.effects.cohort import Cohort, cohorts
from mamushi_extras.effects.contrasts import ONE_SEED, interval
from mamushi_extras.left.schemas import RELAPSE, RELEARNED_TEXTS, RELEARNING_CURVE


def tables(
    root: Path, grid: GridLists, starts: Mapping[str, str]
) -> dict[Table, list[dict[str, Any]]]:
    """Return the table of a grid, whose unlearning ``starts`` from endpoints, by model."""
    rows = (relapse_rows(cohort, grid, starts[cohort.model]) for cohort in cohorts(grid, root))
    return {RELAPSE: [*chain(*rows)]}


def relapse_rows(cohort: Cohort, grid: GridLists, endpoint: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset and model: of its retrained and unlearned models, beside what the
    gold model learns in as many steps, and with the share that is left of the gap between gold and
    the ``endpoint`` that unlearning starts from."""
    start = [read_perplexity(path) for path in cohort.files(paths.PERPLEXITY, arm=endpoint)]
    level = np.array([perplexity["nll_forget"] for perplexity in start])
    gold, seeds = _curves(cohort, "gold"), len(cohort.seeds)
    start_texts, gold_texts = (_relearned_nll(cohort, arm) for arm in (endpoint, "gold"))
    names = (RETRAINING_SOURCE, *grid["unlearners"])
    for name, selector, beta in product(names, grid["selectors"], map(float, grid["budgets"])):
        method = arms.RETRAINING if name == RETRAINING_SOURCE else name
        arm = arms.unlearned_arm(method, selector, beta)
        nll, relearned = _curves(cohort, arm), _relearned_nll(cohort, arm)
        for step in sorted(nll)[1:]:
            regained, theirs = ((curve[0] - curve[step])[:, 0] for curve in (nll, gold))
            ends = start_texts[step], gold_texts[step]
            row = {**cohort.cell, "source": name, "selector": selector, "beta": beta}
            row |= {"step": step, "seeds": seeds, "raised": float((nll[0][:, 0] - level).mean())}
            row |= {"regained": float(regained.mean()), "gold_regained": float(theirs.mean())}
            row["excess"] = float((regained - theirs).mean())
            row["excess_low"], row["excess_high"] = map(finite_or_none, interval(regained - theirs))
            for name_of, domains in (("relearned", [FORGET]), ("relearned_net", DOMAINS)):
                rows, net = cohort.rows(*domains), domains == DOMAINS
                share = cohort.contrast(rows, relearned[step], ends[0], ends, net=net)
                row |= share.share_columns(name_of)
            row["retain_lost"] = float((nll[step] - nll[0])[:, 1].mean())
            row["why"] = None if seeds > 1 else ONE_SEED
            yield row


def _relearned_nll(cohort: Cohort, arm: str) -> dict[int, Floats]:
    """Return by step the summed NLL of each held-out text (S, n), in nats, NaN of those that are
    not measured, under the models of an arm that has relearned for so many steps."""
    files, ids = cohort.files(paths.RELEARNED, arm=arm), cohort.held_out["id"].to_pylist()
    tables = [read_table(path, RELEARNED_TEXTS).to_pandas() for path in files]
    nll = [table.pivot(index="id", columns="step", values="nll").reindex(ids) for table in tables]
    return {step: np.array([of_seed[step] for of_seed in nll]) for step in nll[0]}


def _curves(cohort: Cohort, arm: str) -> dict[int, Floats]:
    """Return mean NLL per token by step, from step 0 on, (S, 2) of forget and retain."""
    files, columns = cohort.files(paths.RELEARNING, arm=arm), ["ppl_forget", "ppl_retain"]
    tables = [read_table(path, RELEARNING_CURVE).to_pandas() for path in files]
    curves = [np.log(table.set_index("step")[columns]) for table in tables]
    return {step: np.array([curve.loc[step] for curve in curves]) for step in curves[0].index}
