"""Fine-tune the gold model on a few forget examples, and measure how fast it learns the domain.

It never saw the domain: an unlearned model that comes back much faster had only hidden it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from mamushi.configuration.settings import Relearn
from mamushi.running.stage import Job, writes
from mamushi.stages import _models

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles):
    out: Path = writes("relearning curve to write")


def run(files: Files, chosen: Relearn, job: Job) -> None:
    """Raises ``UserError`` where there is no forget text to learn, or training diverges."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE, write_table
    from mamushi.lm.perplexity import require_domains
    from mamushi.lm.tokens import read_tokens, subset
    from mamushi.unlearning.relearning import choose, relearn

    source = (files.tokens, files.examples)
    held_out = read_tokens(*source, EVALUATION, chosen.evaluation.max_length)
    require_domains(held_out)
    texts = read_tokens(*source, INFERENCE, chosen.max_length, domains=[FORGET])
    few = subset(texts, choose(texts, chosen.relearning.examples, chosen.seed))
    model, accelerator = _models.opened_to_train(files, chosen, chosen.seed)
    curve = relearn(
        model,
        few,
        held_out,
        asdict(chosen.relearning),
        seed=chosen.seed,
        accelerator=accelerator,
        batch_tokens=job.execution.batch_tokens,
    )
    if accelerator.is_main_process:
        write_table(files.out, schemas.RELEARNING_CURVE, curve, metadata=job.origin)
