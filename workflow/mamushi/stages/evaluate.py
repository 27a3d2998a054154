"""Perplexity of any model of a cell on the held-out texts of both domains."""

from __future__ import annotations

from mamushi.config.arms import Arm
from mamushi.config.kinds import Config, setting
from mamushi.config.sections import MeasuredDeep
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import OpenedArm, Trains, open_arm, speed_up

GPU = ("evaluate",)


def trains(config: Config, model: str, arm: str) -> Trains | None:
    """Return what unlearning trained of an arm; None where it was not unlearned."""
    return Trains.of(config, model=model) if Arm.parse(arm).unlearner else None


class Evaluate(OpenedArm):
    """How the model is opened and measured."""

    evaluation: MeasuredDeep = setting("evaluation")
    trains: Trains | None = setting(trains, default=None)


def evaluate(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    nll: Output,
    settings: Evaluate,
    job: Job,
) -> None:
    """Measure a model of a cell on the held-out sets: base, endpoint, retrained or unlearned."""
    from mamushi.io import schemas
    from mamushi.io.tables import EVALUATION, FORGET, INFERENCE, write_table
    from mamushi.lm.perplexity import nll_table, perplexity_table, require_domains, text_nll
    from mamushi.lm.raking import plan_raking
    from mamushi.lm.tokens import read_tokens

    length, most = settings.evaluation.max_length, settings.evaluation.deep_tokens
    texts = read_tokens(tokens, examples, EVALUATION, length)
    require_domains(texts)
    raking = None
    if most:
        inference = read_tokens(tokens, examples, INFERENCE, length, domains=[FORGET])
        raking = plan_raking(texts, inference, most)
    model, accelerator = open_arm(model_card, trained, unlearned, settings.precision)
    if settings.trains:
        speed_up(model, accelerator, settings.trains, length, job)
    text_losses = text_nll(model, texts, job.execution.batch_tokens, accelerator, raking)
    table = perplexity_table(text_losses, texts.domains)
    if accelerator.is_main_process:
        write_table(nll, schemas.NLL, nll_table(text_losses, texts.ids), metadata=job.origin)
        write_table(out, schemas.PERPLEXITY, table, metadata=job.origin)
