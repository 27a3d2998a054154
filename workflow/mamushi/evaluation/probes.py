"""The table ``generations``: what each model says, and what the gold model makes of it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.config.arms import Arm
from mamushi.config.grid import cells
from mamushi.evaluation.masking import mask
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.tables import read_table


def answer_rows(
    arm: Arm, said: Mapping[str, Sequence[Any]], texts: Sequence[str], likelihoods: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a model, from its ``continuations``, the ``texts`` that they decode to, and
    their mean log-likelihoods per token under the gold model, in nats. Profanity in texts is
    masked; the numbers are of the unmasked tokens."""
    source, beta = arm.endpoint or arm.unlearner, None if arm.beta is None else float(arm.beta)
    head = {"source": source, "selector": arm.selector, "beta": beta}
    answers = zip(said["prompt"], said["tokens"], texts, likelihoods, strict=True)
    for prompt, tokens, text, likelihood in answers:
        row = {**head, "prompt": prompt, "text": mask(text), "tokens": len(tokens)}
        yield {**row, "repetition": repetition(tokens), "gold_log_likelihood": likelihood}


def repetition(tokens: Sequence[int], window: int = 16) -> float:
    """Return the share of tokens that occur among the ``window`` tokens before them, 0 without any
    (rep/l of Welleck et al. 2020, Neural Text Generation With Unlikelihood Training)."""
    repeated = sum(t in tokens[max(0, i - window) : i] for i, t in enumerate(tokens))
    return repeated / len(tokens) if tokens else 0.0


def tables(root: Path, grid: Mapping[str, Any]) -> dict[Table, list[dict[str, Any]]]:
    """Return the rows of the table ``generations`` of all runs of a grid, in its order."""
    files = [paths.under(root, paths.JUDGED, **run) for run in cells(grid)]
    of_runs = [read_table(path, schemas.GENERATIONS) for path in files]
    return {schemas.GENERATIONS: [row for table in of_runs for row in table.to_pylist()]}
