"""Models that are kept are asked, and gold reads what all models said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mamushi.config import arms
from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _asking, _models
from mamushi.stages._settings import (
    Cell,
    Config,
    Opened,
    Questions,
    Settings,
    Trains,
    asking,
    fill,
    setting,
)

GPU = True


class OpenedArm(Opened):
    """How any model of a cell is opened: ``unlearned`` is what unlearning trained of it, where it
    was unlearned, and then the rest is of its start."""

    unlearned: Trains | None = setting(
        lambda config, model, arm: (
            fill(Trains, config, model=model) if arms.Arm.parse(arm).unlearner else None
        ),
        default=None,
    )


def opened_arm(config: Config, model: str, arm: str) -> OpenedArm:
    """Return how a model of a cell is opened."""
    return fill(OpenedArm, config, model=model, arm=arm)


class Ask(Settings):
    """How the model is opened, and the question."""

    questions: Questions = setting(asking)
    model: OpenedArm = setting(opened_arm)


class AskFiles(_asking.AnswerFiles, _models.ModelFiles):
    examples: Path | None = reads("examples table", default=None)
    tokens: Path | None = reads("token cache of the model", default=None)
    unlearned: Path | None = reads("tensors that unlearning trained, over the others", default=None)


def ask(files: AskFiles, settings: Ask, job: Job) -> None:
    """Ask a model that is kept: what it says, knows of single texts, learns anew."""
    from mamushi.lm.storage import load_trained

    questions, how = settings.questions, settings.model
    further = questions.relearn
    seed = further.seed if further else 0
    model, accelerator = _models.opened(files, how, how.unlearned or further, seed)
    if files.unlearned:
        load_trained(files.unlearned, model)
    subject = _asking.subject(files, model, accelerator, job)
    _asking.write(files, _asking.answers(subject, questions), accelerator, job)


class Judge(Opened, Cell):
    """How the gold model is opened."""


class JudgeFiles(_models.ModelFiles):
    generations: list[Path] = reads(
        "continuations tables; whose they are is read from their place under results"
    )
    out: Path = writes("generations table to write")


def judge(files: JudgeFiles, settings: Judge, job: Job) -> None:
    """Let the gold model read what all models of a run said, and put the texts in a table.

    The higher its log-likelihood of a text, the more the text is like what a model says that never
    saw the forget domain. Raises ``UserError`` for files of another run, or that answer different
    prompts.
    """
    from mamushi.errors import UserError
    from mamushi.evaluation.probes import Continuations, generations_table, source_of
    from mamushi.io import schemas
    from mamushi.io.tables import read_table, write_table
    from mamushi.lm.generate import log_likelihoods
    from mamushi.lm.loading import open_tokenizer

    sources = [source_of(path, settings.cell) for path in files.generations]
    tables: list[dict[str, list[Any]]] = [
        read_table(path, schemas.CONTINUATIONS).to_pydict() for path in files.generations
    ]
    prompts = tables[0]["prompt"]
    for path, table in zip(files.generations, tables, strict=True):
        if table["prompt"] != prompts:
            raise UserError(
                f"answers other prompts than {files.generations[0]}",
                where=path,
                do="delete both and run again",
            )
    tokenizer = open_tokenizer(files.model_card)
    model, accelerator = _models.opened(files, settings)
    said = [
        Continuations(
            source=source,
            tokens=table["tokens"],
            texts=[tokenizer.decode(ids, skip_special_tokens=True) for ids in table["tokens"]],
            log_likelihoods=log_likelihoods(
                model,
                table["prompt_tokens"],
                table["tokens"],
                job.execution.batch_tokens,
                accelerator,
            ).tolist(),
        )
        for source, table in zip(sources, tables, strict=True)
    ]
    table = generations_table(settings.cell, prompts, said)
    if accelerator.is_main_process:
        write_table(files.out, schemas.GENERATIONS, table, metadata=job.origin)
