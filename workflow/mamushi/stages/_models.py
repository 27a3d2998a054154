"""How the stages open a model, and what they share of its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mamushi.config import arms
from mamushi.config.kinds import Config, Section
from mamushi.config.models import Lora, Method, Trained, Training
from mamushi.running.stage import Job, Settings, typed

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.io.schemas import Table
    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.trunk import Trunk

ENTERS_THE_BLOCKS = ("trained_blocks", "max_length", "precision")
"""Settings of a training that decide what enters its blocks."""


class Cell(Settings):
    """A dataset, a model and a seed."""

    dataset: str
    model: str
    seed: int

    @property
    def cell(self) -> dict[str, Any]:
        """Return the wildcards of the cell's folder, and the first columns of its tables."""
        return {"dataset": self.dataset, "model": self.model, "seed": self.seed}


class Trains(Method):
    """What unlearning trains, ``trained_blocks`` by the method ``partial`` alone."""

    method: Literal["partial", "lora", "full"] = "partial"
    lora: Lora = Lora()
    trained_blocks: int

    @classmethod
    def of(cls, config: Config, *, model: str) -> Trains:
        """Return what is trained of a model in unlearning and in relearning."""
        training = config["models"][model]["training"]
        return typed(
            cls,
            method=training["method"],
            lora=training["lora"],
            trained_blocks=config["unlearning"]["trained_blocks"],
        )


class OpenedArm(Section):
    """How any model of a cell is opened: what its tensors hold, None without any, and its
    precision; ``unlearned`` is what unlearning trained of it, where it was unlearned, and then the
    rest is of its start."""

    training: Trained | None
    precision: str
    unlearned: Trains | None = None

    @classmethod
    def of(cls, config: Config, *, model: str, arm: str) -> OpenedArm:
        """Return how an arm of this model is opened."""
        training, named = config["models"][model]["training"], arms.Arm.parse(arm)
        is_untrained = arms.is_untrained(config, model, named.origin(config, model))
        return typed(
            OpenedArm,
            training=None if is_untrained else training,
            precision=training["precision"],
            unlearned=Trains.of(config, model=model) if named.unlearner else None,
        )


def open_arm(
    model_card: Path,
    trained: Path | None,
    unlearned: Path | None,
    settings: OpenedArm,
    trains: Trains | None = None,
    seed: int = 0,
) -> tuple[PreTrainedModel, Accelerator]:
    """Return any model of a cell on its device in eval mode, as it was at the end of its training,
    and its accelerator: with ``trained`` laid over its base and, where it was unlearned,
    ``unlearned`` over both.

    Where it is trained further, gradients are on for the last ``trained_blocks`` alone, which
    lie in fp32, and so does all that was trained before, as it does when the start and the gold
    standard are measured: rounded to the forward precision it would be another model than the one
    at which the scale of recovery has its zero. The methods ``lora`` and ``full`` go on with what
    was trained: its adapters, or new ones where it has none, and all parameters.
    """
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.parameters import freeze
    from mamushi.lm.storage import load_trained

    trains = settings.unlearned or trains

    def turn_on(model: PreTrainedModel) -> None:
        if trains:
            _require_gradients(model, trains)

    device.reproducible(seed)
    accelerator = device.accelerator(settings.precision)
    training = None if settings.training is None else asdict(settings.training)
    model = open_placed(model_card, trained, training, settings.precision, accelerator, turn_on)
    if trains:
        untrained = dict.fromkeys(("train_input_embedding", "train_output_head"), False)
        freeze(model, {**untrained, **asdict(trains)})
    if unlearned:
        load_trained(unlearned, model)
    return model, accelerator


def _require_gradients(model: PreTrainedModel, trains: Trains) -> None:
    """Turn gradients on for what is trained next, beside those that are on: which weights lie in
    fp32 is read from them. The methods that go on with what was trained have no others."""
    from mamushi.lm.parameters import freeze, last_blocks

    if trains.method != "partial":
        freeze(model, asdict(trains))
        return
    last_blocks(model, trains.trained_blocks).requires_grad_(True)


def state_of(card: Path) -> Path:
    """Return the checkpoint from which a killed training goes on; deleted when all is written, of a
    retrained model when it has been measured."""
    return card.with_name(f"{card.name}.state")


def record_training(
    log_table: Path,
    card: Path,
    schema: Table,
    log: Mapping[str, Any],
    counts: Mapping[str, Any],
    job: Job,
    *,
    keeps_state: bool = False,
) -> None:
    """Write the step log, and the card in the place of what an earlier training left; then delete
    the state to go on from, last, so that a kill before still has it. Or keep it for who measures
    the model in the same job of a cluster: where that fails, Snakemake deletes the model as well
    (a group is one job), and the next attempt goes on from there."""
    from mamushi.io.files import write_json
    from mamushi.io.tables import write_table
    from mamushi.io.tensors import drop_others

    write_table(log_table, schema, log, metadata=job.origin)
    drop_others(card, job.origin)
    write_json(card, {**job.origin, **counts})
    if not keeps_state:
        state_of(card).unlink(missing_ok=True)


def base_trunk(
    path: Path | None,
    tokens: Path,
    examples: Path,
    section: str,
    training: Training,
    model: PreTrainedModel,
    accelerator: Accelerator,
    job: Job,
) -> Trunk | None:
    """Return the base model's trunk, which all seeds and lists share: it is there where neither its
    blocks nor what enters them is trained, for the texts of the inference section."""
    from mamushi.io.domains import INFERENCE
    from mamushi.lm.tokens import read_tokens

    # A tied head is the embedding under another name.
    embedding_moves = model.get_input_embeddings().weight.requires_grad
    if section != INFERENCE or training.method != "partial" or embedding_moves:
        return None
    texts = [read_tokens(tokens, examples, INFERENCE, training.max_length)]
    inputs = ("examples", "tokens", "model_card")
    origin = {
        "training": {key: asdict(training)[key] for key in ENTERS_THE_BLOCKS},
        "inputs": {key: job.origin["inputs"].get(key) for key in inputs},
    }
    return cached_trunk(path, origin, model, training.trained_blocks, texts, accelerator, job)


def start_trunk(
    path: Path | None,
    tokens: Path,
    examples: Path,
    lengths: tuple[int, int],
    start: OpenedArm,
    trains: Trains,
    model: PreTrainedModel,
    accelerator: Accelerator,
    job: Job,
) -> Trunk | None:
    """Return what the frozen blocks of unlearning's start give for the texts that are ranked and
    those that are held out, cut at these ``lengths``. All jobs share it that unlearn from there, or
    ask what came of it; what unlearning trained of ``model`` has no part in it."""
    from mamushi.io.tables import EVALUATION, FORGET, INFERENCE, RETAIN
    from mamushi.lm.tokens import read_tokens

    if path is None or trains.method != "partial":
        return None
    ranked, held_out = lengths
    texts = [
        read_tokens(tokens, examples, INFERENCE, ranked, domains=[FORGET]),
        read_tokens(tokens, examples, INFERENCE, ranked, domains=[RETAIN]),
        read_tokens(tokens, examples, EVALUATION, held_out),
    ]
    inputs = ("examples", "tokens", "model_card", "trained")
    origin = {
        "training": None if start.training is None else asdict(start.training),
        "precision": start.precision,
        "trained_blocks": trains.trained_blocks,
        "lengths": [*lengths],
        "inputs": {name: job.origin["inputs"].get(name) for name in inputs},
        "versions": job.origin["versions"],
    }
    return cached_trunk(path, origin, model, trains.trained_blocks, texts, accelerator, job)


def cached_trunk(
    path: Path | None,
    origin: Mapping[str, Any],
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
    ``origin``, all that it depends on, and made by the first to come while the others wait.
    """
    from mamushi.errors import UserError
    from mamushi.lm.sharding import active
    from mamushi.running.identity import of_modules
    from mamushi.running.locks import exclusive
    from mamushi.unlearning.trunk import Trunk, separable, write_trunk

    if path is None or not job.execution.cache_trunk or active(accelerator):
        return None
    if not separable(model, trained_blocks):
        return None
    origin = {**origin, "code": of_modules("mamushi.unlearning.trunk")}

    def read_current() -> Trunk | None:
        try:
            trunk = Trunk(path)
        except UserError:
            # Missing, or cut off by a full disk or a kill: made again.
            return None
        recorded = {key: trunk.metadata.get(key) for key in origin}
        return trunk if recorded == origin else None

    if read_current() is None:
        with exclusive(path.with_suffix(".lock"), f"writes the same {path}"):
            if read_current() is None:
                batch = job.execution.batch_tokens
                write_trunk(path, model, texts, trained_blocks, batch, accelerator, origin)
    return read_current()
