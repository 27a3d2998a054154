"""Fine-tune a base model without the examples of a removal list, and measure it.

Both in one process: loading the base model once more and passing billions of trained weights
through a file would cost more than the measurement. The weights are kept only when asked for.

In the place of a list there can be weights of the texts, or spans of them to leave out of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _asking, _models
from mamushi.stages._settings import Opened, Retrain, Trains

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_asking.AnswerFiles, _models.TrainingFiles):
    removal: Path = reads("removals table")
    weights: Path | None = reads("weights of the texts, in its place", default=None)
    spans: Path | None = reads("spans to leave out of the loss, in its place", default=None)
    perplexity: Path = writes("perplexity table to write")
    nll: Path = writes("table of every text's NLL to write")
    tensors: Path | None = writes("trained tensors to write", default=None)


def run(files: Files, settings: Retrain, job: Job) -> None:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, write_table
    from mamushi.lm.perplexity import nll_table, perplexity_table, require_domains, text_nll
    from mamushi.lm.sharding import active, takes_part
    from mamushi.lm.storage import save_trained
    from mamushi.lm.tokens import read_tokens

    _asking.require(settings.questions)
    length = settings.evaluation.max_length
    held_out = read_tokens(files.tokens, files.examples, EVALUATION, length)
    require_domains(held_out)
    model, accelerator = _models.fine_tuned(files, settings, job, _removed(files), _edit(files))
    if not takes_part(accelerator):
        return
    nll = text_nll(model, held_out, job.execution.batch_tokens, accelerator)
    table = perplexity_table(nll, held_out.domains)
    # What is asked by training further opens the model with other gradients.
    reopened = settings.questions is not None and settings.questions.relapse is not None
    beside = files.card.with_name(f"{files.card.name}.trained")
    tensors = files.tensors or (beside if reopened else None)
    if tensors:
        save_trained(tensors, model, job.origin)

    def open_to_train(trains: Trains, seed: int) -> PreTrainedModel:
        if active(accelerator):
            accelerator.wait_for_everyone()
        kept = _models.ModelFiles(model_card=files.model_card, trained=tensors)
        how = Opened(training=settings.training, precision=settings.training.precision)
        return _models.opened(kept, how, trains, seed)[0]

    subject = _asking.subject(files, model, accelerator, job, settings.training.precision)
    subject.open_to_train = open_to_train
    del model
    _asking.write(files, _asking.answers(subject, settings.questions), accelerator, job)
    if accelerator.is_main_process:
        write_table(files.nll, schemas.NLL, nll_table(nll, held_out.ids), metadata=job.origin)
        write_table(files.perplexity, schemas.PERPLEXITY, table, metadata=job.origin)
        beside.unlink(missing_ok=True)
        files.state.unlink(missing_ok=True)


def _removed(files: Files) -> list[str]:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table

    if files.weights or files.spans:
        return []
    ids: list[str] = read_table(files.removal, schemas.REMOVALS, ["id"])["id"].to_pylist()
    return ids


def _edit(files: Files) -> Callable[[TokenSet], TokenSet] | None:
    """What is done to the texts where they are not removed."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table
    from mamushi.lm import edits

    if files.weights:
        table = read_table(files.weights, schemas.WEIGHTS)
        kept = dict(zip(table["id"].to_pylist(), table["weight"].to_pylist(), strict=True))
        return lambda texts: edits.weighed(texts, kept)
    if files.spans:
        spans: dict[str, list[tuple[int, int]]] = {}
        for row in read_table(files.spans, schemas.SPANS).to_pylist():
            spans.setdefault(row["id"], []).append((row["start"], row["stop"]))
        return lambda texts: edits.masked(texts, spans)
    return None
