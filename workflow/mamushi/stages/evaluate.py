"""Perplexity of a kept model (base, contaminated, gold, beta 0) on the held-out sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Evaluate
from mamushi.running.stage import Job, writes
from mamushi.stages import _models

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles):
    out: Path = writes("perplexity table to write")
    nll: Path = writes("table of every text's NLL to write")


def run(files: Files, chosen: Evaluate, job: Job) -> None:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, write_table
    from mamushi.lm.perplexity import nll_table, perplexity_table, require_domains, text_nll
    from mamushi.lm.tokens import read_tokens

    model, accelerator = _models.opened(files, chosen)
    length = chosen.evaluation.max_length
    texts = read_tokens(files.tokens, files.examples, EVALUATION, length)
    require_domains(texts)
    nll = text_nll(model, texts, job.execution.batch_tokens, accelerator)
    table = perplexity_table(nll, texts.domains)
    if accelerator.is_main_process:
        write_table(files.out, schemas.PERPLEXITY, table, metadata=job.origin)
        write_table(files.nll, schemas.NLL, nll_table(nll, texts.ids), metadata=job.origin)
