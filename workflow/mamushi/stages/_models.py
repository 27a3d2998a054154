"""What the stages with a model have in common: the files that they read, and how it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.configuration.settings import FineTune, Opened, Started
from mamushi.running.stage import Job, reads, writes

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """A model that is kept: a base and, where it was trained, its tensors."""

    model_card: Path = reads("card of the base model")
    trained: Path | None = reads("trained tensors to lay over it", default=None)


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """The texts of a dataset and their tokens."""

    examples: Path = reads("examples table")
    tokens: Path = reads("token cache of the model")


@dataclass(frozen=True, kw_only=True)
class TrainingFiles(TextFiles):
    """What a training reads, and how it is recorded."""

    model_card: Path = reads("card of the base model")
    log_table: Path = writes("step log to write")
    card: Path = writes("card to write")

    @property
    def state(self) -> Path:
        """The checkpoint that a killed run goes on from; deleted when all is written."""
        return self.card.with_name(f"{self.card.name}.state")


def opened(files: ModelFiles, how: Opened) -> tuple[PreTrainedModel, Accelerator]:
    """The model on its device, as it was at the end of its training, and its accelerator."""
    from mamushi.lm import device
    from mamushi.lm.loading import open_trained

    device.reproducible(0)
    accelerator = device.accelerator(how.precision)
    training = None if how.training is None else asdict(how.training)
    model = open_trained(files.model_card, files.trained, training)
    return device.place(model, how.precision, accelerator.device), accelerator


def opened_to_train(
    files: ModelFiles, chosen: Started, seed: int
) -> tuple[PreTrainedModel, Accelerator]:
    """The model that unlearning starts from on its device, in eval mode, and its accelerator.

    Gradients are on for the last ``trained_blocks`` blocks alone, which lie in fp32, and so does
    all that the start model trained, as it does when the start and the gold standard are measured:
    rounded to the forward precision it would be another model than the one at which the scale of
    recovery has its zero. Raises ``UserError`` when the model has fewer blocks than are to be
    trained.
    """
    from mamushi.errors import UserError
    from mamushi.lm import device
    from mamushi.lm.loading import open_trained
    from mamushi.lm.parameters import decoder_blocks, freeze

    start, wanted = chosen.start, chosen.trained_blocks
    device.reproducible(seed)
    accelerator = device.accelerator(start.precision)
    training = None if start.training is None else asdict(start.training)
    model = open_trained(files.model_card, files.trained, training)
    blocks = decoder_blocks(model)[1]
    if wanted > len(blocks):
        raise UserError(
            f"asks for {wanted} blocks, but the model has {len(blocks)}",
            where="unlearning.trained_blocks",
            do=f"set it to {len(blocks)} or fewer",
        )
    # Which weights lie in fp32 is read from what takes gradients: first what either training does.
    blocks[len(blocks) - wanted :].requires_grad_(True)
    device.place(model, start.precision, accelerator.device)
    others = ("train_input_embedding", "train_output_head", "train_final_norm")
    freeze(model, {"trained_blocks": wanted, **dict.fromkeys(others, False)})
    return model, accelerator


def fine_tuned(
    files: TrainingFiles, chosen: FineTune, job: Job, removed: Sequence[str] = (), **told: Any
) -> tuple[PreTrainedModel, Accelerator]:
    """A fresh base model, fine-tuned on the section's texts but for ``removed``.

    Writes the step log and the card, which says what is ``told`` as well; a killed run of the same
    origin goes on from its state.
    """
    import numpy as np

    from mamushi.artifacts import schemas
    from mamushi.artifacts.files import write_json
    from mamushi.artifacts.provenance import fingerprint
    from mamushi.artifacts.tables import write_table
    from mamushi.artifacts.tensors import drop_others
    from mamushi.lm import device
    from mamushi.lm.batches import steps
    from mamushi.lm.finetune import finetune
    from mamushi.lm.loading import open_model
    from mamushi.lm.parameters import freeze
    from mamushi.lm.tokens import read_tokens

    training = chosen.training
    wanted = (files.tokens, files.examples, chosen.section, training.max_length)
    texts = read_tokens(*wanted, domains=chosen.domains, without=removed)
    section = read_tokens(*wanted)
    kept = np.fromiter(map(set(texts.ids).__contains__, section.ids), bool, len(section))
    # The step-matched arm gives every budget, gold at 1 too, the updates that beta 0 gets.
    counted = section if training.steps == "matched" else texts
    total = steps(len(counted), training.batch_size, training.epochs)

    device.reproducible(chosen.seed)
    accelerator = device.accelerator(training.precision)
    model = open_model(files.model_card)
    freeze(model, asdict(training))
    device.place(model, training.precision, accelerator.device)
    log = finetune(
        model,
        texts,
        asdict(training) | asdict(job.execution),
        total=total,
        seed=chosen.seed,
        accelerator=accelerator,
        what=chosen.role,
        state=files.state,
        fingerprint=fingerprint(job.origin),
        kept=kept,
    )
    if accelerator.is_main_process:
        write_table(files.log_table, schemas.TRAIN_LOG, log.columns, metadata=job.origin)
        changed = [p for p in model.parameters() if p.requires_grad]
        counts = {
            "texts": len(texts),
            "removed": len(removed),
            "steps": total,
            "trained_parameters": sum(p.numel() for p in changed),
            "trained_tensors": len(changed),
        }
        drop_others(files.card, job.origin)
        write_json(files.card, {**job.origin, **counts, **told})
    return model, accelerator
