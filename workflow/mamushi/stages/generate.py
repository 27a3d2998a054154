"""Continue the prompts with a kept model (base, contaminated, gold, beta 0), greedily."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Generate
from mamushi.running.stage import Job, writes
from mamushi.stages import _models

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.ModelFiles):
    out: Path = writes("continuations table to write")


def run(files: Files, chosen: Generate, job: Job) -> None:
    """Raises ``UserError`` for a prompt that does not fit the model with its continuation."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import write_table
    from mamushi.lm.generate import continuations
    from mamushi.lm.loading import open_tokenizer

    probe = chosen.probe
    tokenizer = open_tokenizer(files.model_card)
    model, accelerator = _models.opened(files, chosen)
    said = continuations(model, tokenizer, probe.prompts, probe.new_tokens, accelerator)
    if accelerator.is_main_process:
        write_table(files.out, schemas.CONTINUATIONS, said, metadata=job.origin)
