"""Influence along a training or at trained weights."""

from functools import partial

from mamushi.config.kinds import setting
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import checkpoint_of
from mamushi.stages.train import FineTune

GPU = ("influence",)


class InfluenceOf(FineTune):
    """How beta 0 is trained, and how influence is measured along it; or at the weights of a model
    that is ``trained_before``."""

    trained_before: bool = setting("models.{model}.contaminated")
    points: int = setting("influence.points")
    batches: int = setting("influence.batches")
    targets: int = setting("influence.targets")


def influence(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    out: Output,
    settings: InfluenceOf,
    job: Job,
) -> None:
    """Train beta 0 again, and measure the influence of every token that it reads on other texts; of
    a model that is trained before, nothing is trained. A killed run of the same origin goes on from
    its state, beside ``out``, with what was measured so far. Raises ``UserError`` without
    targets."""
    import pyarrow as pa

    from mamushi.io.tables import write_table
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.parameters import freeze
    from mamushi_extras.influence.measuring import (
        measure_along_training,
        measure_at_weights,
    )
    from mamushi_extras.influence.schemas import TOKEN_INFLUENCE
    from mamushi_extras.tokens.masks import read_token_pool, split_by_text

    training, checkpoint = settings.training, checkpoint_of(out, job)
    pool = read_token_pool(examples, tokens, training.max_length)
    device.seed_torch(settings.seed)
    accelerator = device.accelerator(training.precision)
    model = open_placed(model_card, [], accelerator, partial(freeze, training=training))
    if settings.trained_before:
        values, metadata = measure_at_weights(model, pool, job, accelerator)
    else:
        values, metadata = measure_along_training(model, pool, job, accelerator, checkpoint)
    texts, fold = pool.texts, metadata.pop("fold", None)
    columns = {
        "id": texts.ids,
        "domain": texts.domains,
        "fold": pa.nulls(len(texts), pa.int16()) if fold is None else fold,
        "influence": split_by_text(values, texts),
    }
    write_table(out, TOKEN_INFLUENCE, columns, metadata={"provenance": job.origin, **metadata})
    accelerator.wait_for_everyone()
    for suffix in (".state", ".points"):
        checkpoint.path.with_suffix(suffix).unlink(missing_ok=True)
