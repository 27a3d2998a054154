"""Does what was deleted come back? Fine-tune a model on a few texts, of the forget domain, of the
retain domain and of neither, and round its weights; and what it says of every text before that.

The gold standard is treated in the same way, since it learns the domain too, and is rounded too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from mamushi.configuration.settings import Relearn
from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _models

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles):
    unlearned: Path | None = reads("unlearned tensors to lay over these", default=None)
    nll: Path = writes("table of the NLL of every text to write: held-out and forget texts")
    out: Path = writes("table of what comes back to write")


def run(files: Files, chosen: Relearn, job: Job) -> None:
    """Raises ``UserError`` where there is no forget text to learn, or training diverges."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE, RETAIN, write_table
    from mamushi.lm.loading import open_tokenizer
    from mamushi.lm.perplexity import nll_table, require_domains, text_nll
    from mamushi.lm.storage import load_trained
    from mamushi.lm.tokens import read_tokens
    from mamushi.unlearning.relapse import relapse, unrelated

    source = (files.tokens, files.examples)
    held_out = read_tokens(*source, EVALUATION, chosen.evaluation.max_length)
    require_domains(held_out)
    model, accelerator = _models.opened_to_train(files, chosen, chosen.seed)
    if files.unlearned:
        load_trained(files.unlearned, model)
    batch = job.execution.batch_tokens
    # What was removed, and what was not.
    ranked = read_tokens(*source, INFERENCE, chosen.evaluation.max_length, domains=[FORGET])
    parts = [nll_table(text_nll(model, t, batch, accelerator), t.ids) for t in (held_out, ranked)]
    texts = {
        name: read_tokens(*source, INFERENCE, chosen.max_length, domains=[name])
        for name in (FORGET, RETAIN)
    }
    texts["unrelated"] = unrelated(open_tokenizer(files.model_card), chosen.max_length)
    found = relapse(
        model,
        texts,
        held_out,
        asdict(chosen.relearning),
        seed=chosen.seed,
        accelerator=accelerator,
        batch_tokens=batch,
    )
    nll = {name: [*parts[0][name], *parts[1][name]] for name in parts[0]}
    if accelerator.is_main_process:
        write_table(files.nll, schemas.NLL, nll, metadata=job.origin)
        write_table(files.out, schemas.RELAPSES, found, metadata=job.origin)
