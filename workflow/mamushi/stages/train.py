"""Models that are trained: tiny ones from nothing, endpoints, and retrained models."""

from functools import partial
from typing import Any

from mamushi.config.kinds import Settings, setting
from mamushi.config.sections import Training
from mamushi.io.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.io.files import write_json
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages._models import Cell, checkpoint_of, finish_training

GPU = ("base_model", "finetune")

NO_SIZES = ("training", "contaminated", "base", "pretraining")
"""Keys of a tiny model that do not say what it is built of."""


class BaseModel(Settings):
    """The tiny model's definition."""

    name: str = setting(lambda config, model: model)
    sizes: dict[str, Any] = setting(
        lambda config, model: {
            key: value for key, value in config["models"][model].items() if key not in NO_SIZES
        }
    )
    pretraining: dict[str, Any] = setting("models.{model}.pretraining")


def base_model(*, examples: list[Input], out: Output, settings: BaseModel, job: Job) -> None:
    """Build a tiny model with a real architecture, give it a tokenizer and pretrain it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.lm import device, loading, tiny

    training, texts = settings.pretraining, list[str]()
    for path in examples:
        table = parquet.read_table(path, schemas.EXAMPLES, ["text", "domain", "section"])
        rows = pc.equal(table["section"], CONTAMINATION)
        rows = pc.and_(rows, pc.is_in(table["domain"], pa.array(training["domains"])))
        texts += table["text"].filter(rows).to_pylist()
    model, tokenizer = tiny.build(settings.sizes, texts, training["seed"])
    device.seed_torch(training["seed"])
    model.to(device.accelerator("fp32").device)
    log = tiny.pretrain(model, tokenizer, texts, training, training["seed"])
    model.to("cpu")
    card = loading.save_base(out, settings.name, model, tokenizer)
    parquet.write_table(out / "train_log.parquet", schemas.TRAIN_LOG, log)
    write_json(out / "card.json", {**card, "provenance": job.origin})


class FineTune(Cell):
    """What a model is trained on: contaminated, gold, beta 0, or retrained."""

    role: str
    section: str = setting(
        lambda config, role: CONTAMINATION if role == "contaminated" else INFERENCE
    )
    domains: list[str] = setting(
        lambda config, role: [RETAIN] if role == "gold" else [FORGET, RETAIN]
    )
    training: Training = setting(
        # Matched or not, contaminated and beta 0 are trained alike.
        lambda config, model, role: (
            config["models"][model]["training"]
            | ({} if role in ("gold", "retrained") else {"steps": "by_data"})
        )
    )


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
    import numpy as np

    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.parameters import freeze
    from mamushi.lm.storage import save_trained
    from mamushi.lm.tokens import mask_spans, mass, read_tokens, subset
    from mamushi.lm.training import minimize_nll

    training = settings.training
    texts = section = read_tokens(tokens, examples, settings.section, training.max_length)
    removed = parquet.read_table(removal, schemas.REMOVALS)["id"].to_pylist() if removal else []
    # What is left of each text.
    shares = np.isin(section.domains.astype(str), settings.domains)
    shares &= ~np.isin(section.ids.astype(str), np.array(removed, dtype=str))
    if spans:
        texts = mask_spans(section, parquet.read_table(spans, schemas.SPANS).to_pylist())
        shares = mass(texts, section)
    remaining = shares > 0
    texts = subset(texts, np.flatnonzero(remaining))
    # Weights are fp32: what should be a whole number must not lose a step by its last digit.
    weight = round(float(shares[remaining].sum()), 3)
    # Matched or aligned, every budget, gold at 1 too, gets the updates that beta 0 gets.
    counted = weight if training.steps == "by_data" else len(section)
    device.seed_torch(settings.seed)
    accelerator = device.accelerator(training.precision)
    model = open_placed(model_card, [], accelerator, partial(freeze, training=training))
    log = minimize_nll(
        model,
        texts,
        training,
        micro_batch_size=job.execution.micro_batch_size,
        examples=counted,
        seed=settings.seed,
        accelerator=accelerator,
        name=settings.role,
        checkpoint=checkpoint_of(card, job),
        remaining=remaining,
    )
    save_trained(tensors, model, job.origin)
    counts: dict[str, Any] = {
        "texts": len(texts),
        "removed": len({*removed}),
        "steps": len(log["step"]),
        "trained_parameters": model.num_parameters(only_trainable=True),
        "trained_tensors": sum(p.requires_grad for p in model.parameters()),
        **({"mass": weight} if spans else {}),
    }
    del model, accelerator
    finish_training(job, schemas.TRAIN_LOG, log, counts, trained=tensors, unlearned=None)
