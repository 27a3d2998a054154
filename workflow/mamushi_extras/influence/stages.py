"""Influence along a training or at trained weights, and the rankings of texts and tokens by it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Config
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import state_of
from mamushi.stages.select import Score, rank_pool
from mamushi.stages.train import FineTune
from mamushi_extras.tokens.stages import TokenScores

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi_extras.influence.measuring import Kept
    from mamushi_extras.tokens.masks import ScoresByText

GPU = ("influence",)


class InfluenceOf(FineTune):
    """How beta 0 is trained, and how influence is measured along it; or at the weights of a model
    that is ``trained_before``."""

    trained_before: bool
    points: int
    batches: int
    targets: int
    less: float
    eps: float | None

    @classmethod
    def of(cls, config: Config, *, dataset: str, model: str, seed: int) -> InfluenceOf:  # type: ignore[override]
        """Return how a cell's influence is measured."""
        beta0 = FineTune.of(config, dataset=dataset, model=model, seed=seed, role="beta0")
        trained_before = config["models"][model]["contaminated"]
        return cls(**vars(beta0), trained_before=trained_before, **config["influence"])


def influence(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    out: Output,
    settings: InfluenceOf,
    job: Job,
) -> None:
    """Train beta 0 again, and measure the influence of every token that it reads on other texts.

    Texts of the contamination section are the targets. Of a model that is trained before, nothing
    is trained, and without such a section the targets of either half of the texts are of the other.
    A killed run of the same origin goes on from its state, beside ``out``, with what was measured
    so far. Raises ``UserError`` without targets.
    """
    from mamushi.io.domains import INFERENCE
    from mamushi.io.tables import write_table
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.tokens import read_tokens
    from mamushi_extras.influence.measuring import split_by_text
    from mamushi_extras.influence.schemas import TOKEN_INFLUENCE

    training, state = settings.training, state_of(out)
    texts = read_tokens(tokens, examples, INFERENCE, training.max_length)
    device.reproducible(settings.seed)
    accelerator = device.accelerator(training.precision)
    model = open_placed(model_card, None, asdict(training), training.precision, accelerator)
    kept = _kept(out, texts, job)
    read = (examples, tokens, settings, job, texts, model, accelerator, kept)
    metadata = _at_weights(*read) if settings.trained_before else _along_training(*read, state)
    if accelerator.is_main_process:
        columns = {
            "id": texts.ids,
            "domain": texts.domains,
            "fold": metadata.pop("fold"),
            "influence": split_by_text(kept.total, texts),
        }
        write_table(out, TOKEN_INFLUENCE, columns, metadata={"provenance": job.origin, **metadata})
        for path in (kept.path, state):
            path.unlink(missing_ok=True)


def _along_training(
    examples: Path,
    tokens: Path,
    settings: InfluenceOf,
    job: Job,
    texts: TokenSet,
    model: PreTrainedModel,
    accelerator: Accelerator,
    kept: Kept,
    state: Path,
) -> dict[str, Any]:
    """Train beta 0, and measure at its points. Return what the table says of it."""
    import pyarrow as pa

    from mamushi.lm.batches import steps
    from mamushi.lm.training import finetune
    from mamushi_extras.influence.measuring import Direction, InfluenceMeter, points_of

    training = settings.training
    targets = _targets(tokens, examples, settings)
    total = steps(len(texts), training.batch_size, training.epochs)
    options = asdict(training) | asdict(job.execution)
    direction, points = Direction(settings.less, settings.eps), points_of(total, settings.points)
    meter = InfluenceMeter(model, texts, targets, direction, points, accelerator, options, kept)
    finetune(
        model,
        texts,
        options,
        seed=settings.seed,
        accelerator=accelerator,
        total=total,
        name="influence",
        state=state,
        fingerprint=kept.fingerprint,
        updated=meter.updated,
    )
    counts = {domain: len(target) for domain, target in targets.items()}
    none = pa.nulls(len(texts), pa.int16())
    return {"fold": none, "points": kept.steps, "targets": counts, "eps": meter.eps}


def _at_weights(
    examples: Path,
    tokens: Path,
    settings: InfluenceOf,
    job: Job,
    texts: TokenSet,
    model: PreTrainedModel,
    accelerator: Accelerator,
    kept: Kept,
) -> dict[str, Any]:
    """Measure at the weights that the model has. Return what the table says of it."""
    import pyarrow as pa

    from mamushi.data.labels import group_codes
    from mamushi.io.domains import CONTAMINATION
    from mamushi.io.vectors import ranked
    from mamushi.lm.tokens import read_tokens
    from mamushi_extras.influence.at_weights import measure_at_weights, target_folds, targets_of
    from mamushi_extras.influence.measuring import STEP, Direction

    contamination = read_tokens(tokens, examples, CONTAMINATION, settings.training.max_length)
    groups = group_codes(ranked(examples, "group")["group"])
    folds = target_folds(texts, groups, contamination, settings.seed)
    drawn = (contamination, settings.targets, settings.seed)
    targets = {fold: targets_of(texts, folds, fold, *drawn) for fold in sorted({*folds.tolist()})}
    options = asdict(settings.training) | asdict(job.execution)
    eps = settings.eps or STEP[accelerator.mixed_precision]
    measured = (settings.batches, options, settings.seed, accelerator, kept)
    measure_at_weights(model, texts, folds, targets, Direction(settings.less, eps), *measured)
    counts = {domain: [len(of[domain]) for of in targets.values()] for domain in targets[0]}
    is_crossed = len(targets) > 1
    fold = folds if is_crossed else pa.nulls(len(texts), pa.int16())
    return {"fold": fold, "batches": settings.batches, "targets": counts, "eps": eps}


def _targets(tokens: Path, examples: Path, settings: InfluenceOf) -> dict[str, TokenSet]:
    """Return the texts of either domain whose NLL counts."""
    from mamushi.io.domains import CONTAMINATION, FORGET, RETAIN
    from mamushi.lm.tokens import read_tokens
    from mamushi_extras.influence.measuring import draw_targets

    contamination = read_tokens(tokens, examples, CONTAMINATION, settings.training.max_length)
    drawn = (settings.targets, settings.seed)
    return {domain: draw_targets(contamination, domain, *drawn) for domain in (FORGET, RETAIN)}


def _kept(out: Path, texts: TokenSet, job: Job) -> Kept:
    """Return what a killed run has measured, beside the state of its training."""
    import numpy as np

    from mamushi.io.provenance import fingerprint
    from mamushi_extras.influence.measuring import Kept, count_predicted

    nothing = np.zeros(count_predicted(texts))
    kept = Kept(out.with_name(f"{out.name}.points"), fingerprint(job.origin), nothing)
    kept.restore(state_of(out))
    return kept


def influence_scores(
    *,
    examples: Input,
    embeddings: Input,
    influence: Input,
    out: Output,
    settings: Score,
    job: Job,
) -> None:
    """Rank the forget set by the influence of its texts.

    The embeddings say which texts are ranked, as for every selector, and nothing else. Raises
    ``UserError`` for an influence of other texts.
    """
    from mamushi.selection.pool import read_pool
    from mamushi_extras.influence.pooling import pooled_influence

    pool = read_pool(embeddings, examples)
    pool = pool.with_columns(**pooled_influence(influence, pool.ids.tolist()))
    rank_pool(pool, settings, examples, embeddings, out, job.origin)


def influence_token_scores(
    *,
    examples: Input,
    tokens: Input,
    influence: Input,
    out: Output,
    settings: TokenScores,
    job: Job,
) -> None:
    """Score every token of the forget and retain texts by its influence. Raises ``UserError`` for
    an influence of other texts, or of other tokens: a model that was contaminated before may have
    another tokenizer than its base, from which retraining starts."""
    from dataclasses import replace

    from mamushi.errors import UserError
    from mamushi_extras.influence.pooling import read_influence
    from mamushi_extras.tokens.stages import read_token_pool, write_scores

    pool = read_token_pool(examples, tokens, settings.max_length)
    measured = read_influence(influence, pool.texts.ids.tolist())
    if [*map(len, measured)] != pool.texts.counted.tolist():
        problem = "the model that was measured and its base make other tokens of the same texts"
        raise UserError(problem, where=influence, do="rank texts, by influence")
    values: ScoresByText = [*measured]
    write_scores(out, replace(pool, influence=values), settings, job.origin)
