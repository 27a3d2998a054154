"""What is left in models after a deletion, beside gold: single forget texts, and abilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import Config
from mamushi.config.settings import Settings, setting
from mamushi.io import paths
from mamushi.io.digests import content_digests
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import OpenedArm, open_arm
from mamushi_extras.left.harness import files_of_tasks

GPU = ("membership", "task_scores")
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
    from mamushi_extras.left.attacks import audit_texts
    from mamushi_extras.left.schemas import MEMBERSHIP

    table = audit_texts(settings.grid, settings.starts, settings.ready, root)
    publish(out_folder, [(MEMBERSHIP, table)], job.origin)


def task_digests(config: Config) -> dict[str, str]:
    """Return the digests of the files of tasks."""
    return content_digests(files_of_tasks(config["tasks"]["names"]))


class TaskScores(OpenedArm):
    """How the model is opened, and the tasks, with the digests of their files."""

    names: list[str] = setting("tasks.names")
    examples: int | None = setting("tasks.examples")
    inputs: dict[str, str] = setting(task_digests)


def task_scores(
    *,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    settings: TaskScores,
    job: Job,
) -> None:
    """Ask a model tasks of lm-evaluation-harness. Raises as ``score_tasks``."""
    from importlib.metadata import version

    import pyarrow as pa

    from mamushi.errors import UserError
    from mamushi.io.tables import write_table
    from mamushi.lm.loading import open_tokenizer
    from mamushi_extras.left.harness import score_tasks
    from mamushi_extras.left.schemas import TASK_SCORES

    tokenizer = open_tokenizer(model_card)
    model, accelerator = open_arm(model_card, trained, unlearned, settings.precision)
    if accelerator.num_processes > 1:
        problem = "is cut over several GPUs, and lm-evaluation-harness reads models of one"
        do = "leave it out of tasks.models, or export it and run lm_eval there"
        raise UserError(problem, where=model_card, do=do)
    rows = score_tasks(model, tokenizer, settings.names, settings.examples, settings.precision)
    table = pa.Table.from_pylist(rows, schema=TASK_SCORES.schema)
    write_table(out, TASK_SCORES, table, metadata={**job.origin, "lm_eval": version("lm_eval")})


class TaskTable(Settings):
    """Of which models the tasks are collected."""

    grid: dict[str, Any] = setting(lambda config: grid.axes(config, "tasks"))


def task_table(
    *, root: Path = paths.RESULTS, out_folder: Output, settings: TaskTable, job: Job
) -> None:
    """Collect what the models of all cells reach in tasks, beside the gold model of their seed.
    Raises ``KeyError`` for a file of other tasks than gold's, and as ``read_table``."""
    import pyarrow as pa

    from mamushi.config.arms import Arm
    from mamushi.errors import located
    from mamushi.io.tables import publish, read_table
    from mamushi_extras.left.schemas import TASK_SCORES, TASKS

    def scores(where: dict[str, str]) -> dict[Any, dict[str, Any]]:
        rows = read_table(paths.under(root, paths.TASK_ANSWERS, **where), TASK_SCORES).to_pylist()
        return {tuple(row[key] for key in ("task", "metric", "filter")): row for row in rows}

    rows = []
    for path in grid.of_models(settings.grid, paths.TASK_ANSWERS):
        where = {**(paths.wildcards(paths.TASK_ANSWERS, path) or {})}
        del where["root"]
        reached, gold = scores(where), scores({**where, "arm": "gold"})
        arm = Arm.parse(where.pop("arm"))
        about = {
            **{**where, "seed": int(where["seed"]), "selector": arm.selector},
            "method": arm.endpoint or arm.unlearner or "retraining",
            "beta": None if arm.beta is None else float(arm.beta),
        }
        with located(path):
            rows += [{**about, **row, "gold": gold[key]["value"]} for key, row in reached.items()]
    publish(out_folder, [(TASKS, pa.Table.from_pylist(rows, schema=TASKS.schema))], job.origin)
