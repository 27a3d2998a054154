"""Models that are trained: tiny ones from nothing, endpoints, and retrained models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mamushi.config.kinds import Config, Settings, setting
from mamushi.config.sections import Training
from mamushi.io.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.io.files import write_json
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages._models import Cell, checkpoint_of, finish_training, record_training

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.lm.tokens import Span, TokenSet

    Spans = Mapping[str, Sequence[Span]]

GPU = ("base_model", "finetune")


def sizes_of(config: Config, model: str) -> dict[str, Any]:
    """Return what a tiny model is built of."""
    no_sizes = ("training", "contaminated", "base", "pretraining")
    return {key: v for key, v in config["models"][model].items() if key not in no_sizes}


class BaseModel(Settings):
    """The tiny model's definition."""

    name: str = setting(lambda config, model: model)
    sizes: dict[str, Any] = setting(sizes_of)
    pretraining: dict[str, Any] = setting("models.{model}.pretraining")


def base_model(*, examples: list[Input], out: Output, settings: BaseModel, job: Job) -> None:
    """Build a tiny model with a real architecture, give it a tokenizer and pretrain it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.lm import device, loading, tiny

    training = settings.pretraining
    texts: list[str] = []
    for path in examples:
        table = parquet.read_table(path, schemas.EXAMPLES, ["text", "domain", "section"])
        mask = pc.and_(
            pc.equal(table["section"], training["section"]),
            pc.is_in(table["domain"], value_set=pa.array(training["domains"], pa.string())),
        )
        texts.extend(table["text"].filter(mask).to_pylist())
    model, tokenizer = tiny.build(settings.sizes, texts, training["seed"])
    device.reproducible(training["seed"])
    model.to(device.accelerator("fp32").device)
    log = tiny.pretrain(model, tokenizer, texts, training, training["seed"])
    model.to("cpu")

    card = loading.save_base(out, settings.name, model, tokenizer)
    parquet.write_table(out / "train_log.parquet", schemas.TRAIN_LOG, log)
    write_json(out / "card.json", {**card, "provenance": job.origin})


def training_of(config: Config, model: str, role: str) -> dict[str, Any]:
    """Return how a model is trained. Matched to the steps of beta 0 or not is the same for
    contaminated and beta 0."""
    training: dict[str, Any] = config["models"][model]["training"]
    return training if role in ("gold", "retrained") else training | {"steps": "by_data"}


class FineTune(Cell):
    """What a model is trained on: contaminated, gold, beta 0, or retrained."""

    role: str
    section: str = setting(
        lambda config, role: CONTAMINATION if role == "contaminated" else INFERENCE
    )
    domains: list[str] = setting(
        lambda config, role: [RETAIN] if role == "gold" else [FORGET, RETAIN]
    )
    training: Training = setting(training_of)


def finetune(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    removal: Input | None = None,
    spans: Input | None = None,
    tensors: Output,
    log_table: Output,
    card: Output,
    perplexity: Output | None = None,
    nll: Output | None = None,
    evaluation: str | None = None,
    settings: FineTune,
    job: Job,
) -> None:
    """Fine-tune a base model on a section's texts, without those of a removal list, or with spans
    of tokens left out of the loss, and measure it where ``evaluation`` are settings for that. A
    killed run of the same origin goes on from its state."""
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.parameters import freeze
    from mamushi.lm.storage import save_trained
    from mamushi.lm.tokens import read_spans, read_tokens
    from mamushi.lm.training import finetune

    training = settings.training
    removed = (
        parquet.read_table(removal, schemas.REMOVALS, ["id"])["id"].to_pylist() if removal else []
    )
    section = read_tokens(tokens, examples, settings.section, training.max_length)
    read = reading(section, settings, removed, read_spans(spans) if spans else None)
    device.reproducible(settings.seed)
    accelerator = device.accelerator(training.precision)
    prepare = partial(freeze, settings=training.model_dump())
    model = open_placed(model_card, [], training.precision, accelerator, prepare)
    log = finetune(
        model,
        read.texts,
        training.model_dump() | job.execution.model_dump(),
        seed=settings.seed,
        accelerator=accelerator,
        total=read.steps,
        name=settings.role,
        checkpoint=checkpoint_of(card, job),
        remaining=read.remaining,
    )
    save_trained(tensors, model, job.origin)
    record_training(
        job,
        accelerator,
        schemas.TRAIN_LOG,
        log,
        texts=len(read.texts),
        removed=len({*removed}),
        steps=read.steps,
        trained_parameters=model.num_parameters(only_trainable=True),
        trained_tensors=sum(p.requires_grad for p in model.parameters()),
        **({} if read.mass is None else {"mass": read.mass}),
    )
    # It makes room for the model that is measured.
    del model, accelerator
    finish_training(job, evaluation, trained=tensors, unlearned=None)


class Reading(NamedTuple):
    """What a training reads: its ``texts``, of which of the section's texts they are (n,), and in
    how many ``steps``; ``mass`` is the sum of their tokens' weights where some are left out."""

    texts: TokenSet
    remaining: NDArray[np.bool_]
    steps: int
    mass: float | None = None


def reading(
    section: TokenSet, settings: FineTune, removed: Collection[str], spans: Spans | None
) -> Reading:
    """Return the section's texts of the domains that are trained on, without those ``removed``, or
    with the ``spans`` left out."""
    import numpy as np

    from mamushi.lm.batches import steps
    from mamushi.lm.tokens import masked, mass, subset

    training, weight, texts = settings.training, None, section
    if spans is None:
        remaining = np.isin(section.domains.astype(str), settings.domains)
        remaining &= ~np.isin(section.ids.astype(str), np.array([*removed], dtype=str))
    else:
        texts = masked(section, spans)
        masses = mass(texts, section)
        remaining = masses > 0
        # Weights are fp32: what should be a whole number must not lose a step by its last digit.
        weight = round(float(masses[remaining].sum()), 3)
    texts = subset(texts, np.flatnonzero(remaining))
    # Matched or aligned, every budget, gold at 1 too, gets the updates that beta 0 gets.
    counted = (weight or len(texts)) if training.steps == "by_data" else len(section)
    return Reading(texts, remaining, steps(counted, training.batch_size, training.epochs), weight)
