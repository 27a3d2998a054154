"""Let the gold model read what all models of a run said, and put the texts in a table.

The higher its log-likelihood of a text, the more the text is like what a model says that never saw
the forget domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _models
from mamushi.stages._settings import Cell, Config, Opened, opened

GPU = True


class Judge(Opened, Cell):
    """Settings of the stage ``judge``: the gold model reads what all models of a cell said."""


def settings(config: Config, dataset: str, model: str, seed: int) -> Judge:
    return Judge(
        dataset=dataset,
        model=model,
        seed=seed,
        **vars(opened(config, model, "gold")),
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files(_models.ModelFiles):
    generations: list[Path] = reads(
        "continuations tables; whose they are is read from their place under results"
    )
    out: Path = writes("generations table to write")


def run(files: Files, settings: Judge, job: Job) -> None:
    """Raises ``UserError`` for files of another run, or that answer different prompts."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.errors import UserError
    from mamushi.evaluation.probes import Continuations, generations_table, source_of
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
