"""What a model makes of single forget texts, from which membership inference starts: those that
were there to be ranked, and those that were held out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Membership
from mamushi.running.stage import Job, writes
from mamushi.stages import _asked

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_asked.AskedFiles):
    out: Path = writes("table of the texts' likelihoods to write")


def run(files: Files, chosen: Membership, job: Job) -> None:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, INFERENCE, write_table
    from mamushi.lm.likelihoods import text_statistics, zlib_bytes
    from mamushi.lm.loading import open_tokenizer

    texts, sections, planted = _asked.texts_of(files, chosen, (INFERENCE, EVALUATION))
    # What the model reads of a text, and not what was cut off.
    tokenizer = open_tokenizer(files.model_card)
    read = [
        tokenizer.decode(texts[row].tolist(), skip_special_tokens=True) for row in range(len(texts))
    ]
    model, accelerator = _asked.opened(files, chosen)
    batch = job.execution.batch_tokens
    found = text_statistics(model, texts, batch, accelerator, chosen.least)
    columns = {
        "id": texts.ids,
        "section": sections,
        "planted": planted,
        "tokens": texts.lengths - 1,
        "zlib": zlib_bytes(read),
        **found,
    }
    if accelerator.is_main_process:
        write_table(files.out, schemas.LIKELIHOODS, columns, metadata=job.origin)
