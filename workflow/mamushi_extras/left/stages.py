"""What is left of single forget texts in models after a deletion, beside gold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.settings import Settings, setting
from mamushi.io import paths
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import OpenedArm, open_arm

GPU = ("membership",)
VERSION = 2


class Membership(OpenedArm):
    """How the model is opened, how many texts it reads, and where they are cut."""

    texts: int = setting("left.texts")
    max_length: int = setting("evaluation.max_length")


def membership(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    settings: Membership,
    job: Job,
) -> None:
    """Read single forget texts, from which membership inference starts: those that were there to be
    ranked, and those that were held out. Raises ``UserError`` if a likelihood is not finite.

    They are the same for every model of a dataset, and fewer are a part of more.
    """
    import numpy as np

    from mamushi.errors import UserError
    from mamushi.io.domains import EVALUATION, FORGET, INFERENCE
    from mamushi.io.tables import write_table
    from mamushi.lm.perplexity import text_nll
    from mamushi.lm.tokens import joined, read_tokens, subset
    from mamushi_extras.left.schemas import LIKELIHOODS

    drawn, sections = [], []
    for section in (INFERENCE, EVALUATION):
        candidates = read_tokens(tokens, examples, section, settings.max_length, domains=[FORGET])
        order = np.random.default_rng(0).permutation(np.flatnonzero(candidates.counted > 0))
        drawn.append(subset(candidates, np.sort(order[: settings.texts])))
        sections += [section] * len(drawn[-1])
    texts = joined(drawn)
    model, accelerator = open_arm(model_card, trained, unlearned, settings.precision)
    likelihoods = text_nll(model, texts, job.execution.batch_tokens, accelerator)
    if not np.isfinite(likelihoods.nll).all():
        problem = "the likelihood of a text is not finite: the model diverged"
        raise UserError(problem, do="lower its learning rate")
    if accelerator.is_main_process:
        counts = {"tokens": likelihoods.tokens, "nll": likelihoods.nll}
        columns = {"id": texts.ids, "section": sections, **counts}
        write_table(out, LIKELIHOODS, columns, metadata=job.origin)


class LeftTables(Settings):
    """Axes, ``starts`` by model, and the models that are ``ready``, trained before."""

    grid: dict[str, Any] = setting(lambda config: grid.axes(config, "left"))
    starts: dict[str, str] = setting(lambda config: grid.starts(config, "left"))
    ready: list[str] = setting(
        lambda config: [m for m, key in config["models"].items() if key.get("contaminated")]
    )


def left(*, root: Path = paths.RESULTS, out_folder: Output, settings: LeftTables, job: Job) -> None:
    """Collect what is left of forget texts in the models of all cells, beside the same of gold."""
    from mamushi.io.tables import publish
    from mamushi_extras.left.membership_table import audit_texts
    from mamushi_extras.left.schemas import MEMBERSHIP

    table = audit_texts(settings.grid, settings.starts, settings.ready, root)
    publish(out_folder, [(MEMBERSHIP, table)], job.origin)
