"""What the stages with a model have in common: the files that they read, and how it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.running import launch
from mamushi.running.identity import digest
from mamushi.running.stage import Files, Job, option, reads, writes
from mamushi.stages._settings import Opened, Trains

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.io.schemas import Table
    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.trunk import Trunk

TRUNK = ("mamushi.unlearning.trunk.Trunk", "mamushi.unlearning.trunk.write_trunk")


class ModelFiles(Files):
    """A model that is kept: a base and, where it was trained, its tensors."""

    model_card: Path = reads("card of the base model")
    trained: Path | None = reads("trained tensors to lay over it", default=None)


class TextFiles(Files):
    """The texts of a dataset and their tokens."""

    examples: Path = reads("examples table")
    tokens: Path = reads("token cache of the model")


class VectorFiles(Files):
    """A table of vectors of the texts that are ranked, which many jobs may share: how it is made
    has no part in the result."""

    examples: Path = reads("examples table")
    shard: str | None = option("the shard to make, such as 2-of-8 (default: all)", default=None)
    shards: list[Path] = option("shards to put together, in place of a model", default=())
    out: Path = writes("table of vectors to write, or the shard of it")


class BaseFiles(TextFiles):
    """The same with a base model."""

    model_card: Path = reads("card of the base model")


class TrainingFiles(BaseFiles):
    """What a training reads, and how it is recorded."""

    trunk: Path | None = option("folder that keeps the start model's hidden states", default=None)
    log_table: Path = writes("step log to write")
    card: Path = writes("card to write")

    @property
    def state(self) -> Path:
        """Return the checkpoint that a killed run goes on from; deleted when all is written."""
        return self.card.with_name(f"{self.card.name}.state")

    def record(
        self, kind: Table, log: Mapping[str, Any], counts: Mapping[str, Any], job: Job
    ) -> None:
        """Write the step log, and the card in the place of what an earlier training left."""
        from mamushi.io.files import write_json
        from mamushi.io.tables import write_table
        from mamushi.io.tensors import drop_others

        write_table(self.log_table, kind, log, metadata=job.origin)
        drop_others(self.card, job.origin)
        write_json(self.card, {**job.origin, **counts})


def joined(files: VectorFiles, kind: Table, job: Job) -> bool:
    """Put the shards of a table of vectors together, if there are any; says whether."""
    from mamushi.io.shards import join_shards, ranked

    if files.shards and not launch.is_secondary():
        join_shards(files.out, kind, files.shards, ranked(files.examples), job.origin)
    return bool(files.shards)


def opened(
    files: ModelFiles, how: Opened, trains: Trains | None = None, seed: int = 0
) -> tuple[PreTrainedModel, Accelerator]:
    """Return the model on its device in eval mode, as it was at the end of its training, and its
    accelerator.

    Where it is trained further, gradients are on for the last ``trained_blocks`` alone, which
    lie in fp32, and so does all that was trained before, as it does when the start and the gold
    standard are measured: rounded to the forward precision it would be another model than the one
    at which the scale of recovery has its zero. The methods ``lora`` and ``full`` go on with what
    was trained: its adapters, or new ones where it has none, and all parameters. Raises
    ``UserError`` when the model has fewer blocks than are to be trained.
    """
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.parameters import freeze

    def also(model: PreTrainedModel) -> None:
        if trains:
            _require_gradients(model, trains)

    device.reproducible(seed)
    accelerator = device.accelerator(how.precision)
    training = None if how.training is None else asdict(how.training)
    given = (files.model_card, files.trained, training, how.precision, accelerator)
    model = open_placed(*given, also)
    if trains:
        others = ("train_input_embedding", "train_output_head")
        freeze(model, {**dict.fromkeys(others, False), **asdict(trains)})
    return model, accelerator


def _require_gradients(model: PreTrainedModel, trains: Trains) -> None:
    """Turn gradients on for what is trained next, beside those that are on: which weights lie in
    fp32 is read from them. The methods that go on with what was trained have no others."""
    from mamushi.errors import UserError
    from mamushi.lm.parameters import decoder_blocks, freeze

    if trains.method != "partial":
        freeze(model, asdict(trains))
        return
    blocks, wanted = decoder_blocks(model)[1], trains.trained_blocks
    if wanted > len(blocks):
        raise UserError(
            f"asks for {wanted} blocks, but the model has {len(blocks)}",
            where="unlearning.trained_blocks",
            do=f"set it to {len(blocks)} or fewer",
        )
    blocks[len(blocks) - wanted :].requires_grad_(True)


def cached_trunk(
    path: Path | None,
    about: Mapping[str, Any],
    model: PreTrainedModel,
    trained_blocks: int,
    texts: Sequence[TokenSet],
    accelerator: Accelerator,
    job: Job,
) -> Trunk | None:
    """Return the output of the model's frozen blocks for ``texts``, from the folder ``path`` or
    computed and kept there.

    None where no folder is named, where ``execution.cache_trunk`` is off, for a model that is cut
    over processes, and where ``separable`` says so. ``model`` is still untrained. The folder is
    shared by all jobs that start there and is no artifact: a rule's output that is deleted once it
    is used would run again, and all that read it. So it is looked for here, checked against
    ``about``, all that it depends on, and made by the first to come while the others wait.
    """
    from mamushi.errors import UserError
    from mamushi.lm.sharding import active
    from mamushi.running.locks import exclusive
    from mamushi.unlearning.trunk import Trunk, separable, write_trunk

    if path is None or not job.execution.cache_trunk or active(accelerator):
        return None
    if not separable(model, trained_blocks):
        return None
    wanted = {**about, "code": digest(*TRUNK)}

    def found() -> Trunk | None:
        try:
            trunk = Trunk(path)
        except UserError:
            # Missing, or cut off by a full disk or a kill: made again.
            return None
        return trunk if {key: trunk.metadata.get(key) for key in wanted} == wanted else None

    if found() is None:
        with exclusive(str(path), job.stage, f"which writes the same {path}", path.parent):
            if found() is None:
                batch = job.execution.batch_tokens
                write_trunk(path, model, texts, trained_blocks, batch, accelerator, wanted)
    return found()
