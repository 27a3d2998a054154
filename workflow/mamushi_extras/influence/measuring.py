"""Influence of every token on the NLL of other texts, by two forward passes at a few points of a
training, and no gradient of a single text.

At a point with weights w, g_f and g_r are the gradients of the mean NLL of other texts of either
domain, the *targets*, and v = (g_f - g_r) / (sqrt(second moment of Adam) + epsilon). The influence
of a token with loss l is its slope along v:

    [l(w + h v) - l(w - h v)] / 2h,  h = eps |w| / |v|

summed over points, times the learning rate there: what a step on this token alone would take off
the targets' NLL, to first order (TracIn: Pruthi et al. 2020). At the weights of a model that
somebody else has trained there is one point, and the second moment is the mean of the squared
gradients of batches. Targets are texts of the contamination section or, where there is none, of
either half of the ranked texts the other half's (cross-fitting).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.config.sections import Execution, Training
from mamushi.errors import UserError
from mamushi.io.domains import FORGET, RETAIN
from mamushi.io.files import atomic, header, trained_metadata
from mamushi.lm import sharding
from mamushi.lm.perplexity import token_nll
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet, subset
from mamushi.lm.training import gradient, mean_nll_objective, minimize_nll, steps
from mamushi.running.stage import Job
from mamushi.selection.arrays import Doubles
from mamushi.selection.folds import stratified_folds
from mamushi_extras.tokens.masks import TokenPool

Targets = Mapping[str, TokenSet]
"""Texts of either domain whose NLL counts."""

STEP = {"no": 3e-4, "bf16": 3e-3}
"""eps, by the mixed precision: of SmolLM2-135M slopes in bf16 are 0.13 from those in fp32 at 0.003,
0.27 at 0.001, where rounding counts, and 0.33 at 0.01, which is no longer straight."""


def points_of(total: int, points: int) -> list[int]:
    """Return the steps, of ``total`` and counted from 1, after which is measured: evenly spaced,
    the last one among them."""
    return sorted({max(1, round(total * k / points)) for k in range(1, points + 1)})


def draw_targets(texts: TokenSet, most: int, seed: int) -> dict[str, TokenSet]:
    """Draw at most so many texts of either domain that have a token to predict, by id. Raises
    ``UserError`` where there is none."""
    drawn = {}
    for domain in (FORGET, RETAIN):
        rows = np.flatnonzero((texts.domains == domain) & (texts.counted > 0))
        if not len(rows):
            problem = f"influence: no {domain} text to be a target has a token to predict"
            do = "give the dataset more texts, or its contamination section a share above 0"
            raise UserError(problem, do=do)
        rows = rows[np.argsort(texts.ids[rows].astype(str), kind="stable")]
        order = np.random.default_rng([seed, domain == FORGET]).permutation(rows)
        drawn[domain] = subset(texts, order[:most])
    return drawn


class Slopes:
    """Measures the slopes of the losses of ``texts`` at the weights that the model has, along what
    helps ``targets`` of both domains. Of a sharded model each process moves its own rows."""

    def __init__(
        self,
        model: PreTrainedModel,
        texts: TokenSet,
        targets: Targets,
        accelerator: Accelerator,
        training: Training,
        execution: Execution,
    ) -> None:
        self.model, self.texts, self.accelerator = model, texts, accelerator
        self.training, self.execution = training, execution
        self.eps = STEP[accelerator.mixed_precision]
        self.trained = [p for p in model.parameters() if p.requires_grad]
        self.objectives = {}
        for domain, of in targets.items():
            # The mean NLL of all targets of a domain, as one step of a training on them.
            step = training.model_copy(update={"batch_size": len(of)})
            read = of, step, execution.micro_batch_size, 0
            objective = mean_nll_objective(model, *read, accelerator, "influence")
            module = accelerator.prepare_model(objective.module, evaluation_mode=True)
            self.objectives[domain] = objective, module

    def slopes(self, moments: Iterable[Tensor]) -> Doubles:
        """Return the slope of each token's loss along v, (predicted,), with the second ``moments``
        of the trained parameters. A coordinate that no text has moved stays where it is. Raises
        ``UserError`` for a slope that is not finite."""
        for domain in (RETAIN, FORGET):
            objective, module = self.objectives[domain]
            gradient(objective, module, objective.step(0), self.accelerator, self.trained, False)
            for parameter in self.trained if domain == RETAIN else ():
                if parameter.grad is not None:
                    parameter.grad.neg_()
        for parameter, moment in zip(self.trained, moments, strict=True):
            if parameter.grad is not None:
                root = moment.sqrt().add_(self.training.epsilon)
                sharding.shard_of(parameter.grad).div_(root).masked_fill_(moment == 0, 0.0)
        slopes = self._along_gradients()
        self.model.zero_grad(set_to_none=True)
        if not np.isfinite(slopes).all():
            problem = "influence: a loss, or the gradient of the target texts, is not finite"
            raise UserError(problem, do="lower training.learning_rate or train in fp32")
        return slopes

    @torch.no_grad()
    def _along_gradients(self) -> Doubles:
        """Return central differences of the token losses (predicted,) along the gradients."""
        moved = [(p, p.grad) for p in self.trained if p.grad is not None]
        length = _norm([along for _, along in moved])
        if length == 0:
            return np.zeros(int(self.texts.counted.sum()))
        h = self.eps * _norm([parameter.detach() for parameter in self.trained]) / length
        shards = [(sharding.shard_of(p.detach()), sharding.shard_of(along)) for p, along in moved]
        start, losses = [shard.clone() for shard, _ in shards], []
        for sign in (1, -1):
            for (shard, along), weight in zip(shards, start, strict=True):
                shard.copy_(weight).add_(along, alpha=sign * h)
            size = self.execution.batch_tokens
            losses.append(token_nll(self.model, self.texts, size, self.accelerator))
        for (shard, _), weight in zip(shards, start, strict=True):
            shard.copy_(weight)
        slopes: Doubles = (losses[0] - losses[1]) / (2 * h)
        return slopes


def _norm(tensors: Sequence[Tensor]) -> float:
    return float(sharding.full_tensor(nn.utils.get_total_norm(tensors)))


class InfluenceMeter(Slopes):
    """Sums the influence of the tokens of ``texts`` at some ``points`` of a training of the model:
    its ``updated`` is that of the ``Objective``. What the ``steps`` so far sum up to, the ``total``
    (predicted,), is in a file at ``path`` beside the ``checkpoint`` of the training."""

    def __init__(self, *how: Any, points: Sequence[int], checkpoint: Checkpoint) -> None:
        super().__init__(*how)
        self.points, self.checkpoint = points, checkpoint
        self.path = checkpoint.path.with_suffix(".points")
        self.total, self.steps = np.zeros(int(self.texts.counted.sum())), list[int]()

    def restore(self) -> None:
        """Read the file of this run. Without it the training's state goes as well, since it would
        begin behind points that nobody measured."""
        with suppress(UserError):
            metadata = trained_metadata(self.path)
            if metadata["fingerprint"] == self.checkpoint.fingerprint:
                self.total, self.steps = load_file(self.path)["total"], metadata["steps"]
                return
        self.checkpoint.path.unlink(missing_ok=True)

    def updated(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        """Measure after ``step`` if it is one of the points and was not measured before, and write
        down the sum; leave weights, moments and mode as they were. Raises ``UserError`` as
        ``slopes``."""
        if step not in self.points or step in self.steps:
            return
        mode = self.model.training
        self.model.eval()
        rate = float(optimizer.param_groups[-1]["lr"])
        moments = (corrected_moment(optimizer, parameter) for parameter in self.trained)
        self.total = self.total + rate * self.slopes(moments)
        self.steps = [*self.steps, step]
        self.model.train(mode)
        metadata = header({"fingerprint": self.checkpoint.fingerprint, "steps": self.steps})
        with atomic(self.path) as draft:
            save_file({"total": self.total}, draft, metadata=metadata)


def corrected_moment(optimizer: torch.optim.Optimizer, parameter: nn.Parameter) -> Tensor:
    """Return Adam's second moment of a parameter, corrected for its start: 0 where it has none."""
    state = optimizer.state.get(parameter)
    if not state:
        return torch.zeros((), device=parameter.device)
    _, beta = optimizer.param_groups[0]["betas"]
    moment: Tensor = sharding.shard_of(state["exp_avg_sq"]) / (1 - beta ** float(state["step"]))
    return moment


def measure_along_training(
    model: PreTrainedModel,
    pool: TokenPool,
    job: Job,
    accelerator: Accelerator,
    checkpoint: Checkpoint,
) -> tuple[Doubles, dict[str, Any]]:
    """Train the model on the ranked texts, and return their influence, (predicted,), on
    ``targets`` texts a domain of the contamination section, and what the table says of it; the
    settings are those of the ``job``."""
    texts, training, seed = pool.texts, job.settings.training, job.settings.seed
    targets = draw_targets(pool.contamination, job.settings.targets, seed)
    total = steps(len(texts), training.batch_size, training.epochs)
    points = points_of(total, job.settings.points)
    how = (model, texts, targets, accelerator, training, job.execution)
    meter = InfluenceMeter(*how, points=points, checkpoint=checkpoint)
    meter.restore()
    options: Any = {"accelerator": accelerator, "checkpoint": checkpoint, "updated": meter.updated}
    options |= {"micro_batch_size": job.execution.micro_batch_size, "seed": seed}
    minimize_nll(model, texts, training, examples=len(texts), name="influence", **options)
    counts = {domain: len(of) for domain, of in targets.items()}
    return meter.total, {"points": meter.steps, "targets": counts, "eps": meter.eps}


def draw_by_fold(
    pool: TokenPool, most: int, seed: int
) -> tuple[NDArray[np.int16], dict[int, Targets]]:
    """Return the fold (texts,) of each ranked text, and ``most`` target texts a domain for each
    fold. With a contamination section there is one fold, with targets of that section. Otherwise
    there are two folds of whole groups, and each has targets of the other one."""
    texts = pool.texts
    if len(pool.contamination):
        return np.zeros(len(texts), np.int16), {0: draw_targets(pool.contamination, most, seed)}
    folds = stratified_folds(texts.domains == FORGET, 2, seed, pool.groups)
    others = {fold: subset(texts, np.flatnonzero(folds != fold)) for fold in (0, 1)}
    return folds, {fold: draw_targets(others[fold], most, seed) for fold in others}


def measure_at_weights(
    model: PreTrainedModel, pool: TokenPool, job: Job, accelerator: Accelerator
) -> tuple[Doubles, dict[str, Any]]:
    """Return the influence of every predicted token of the texts on the targets of its fold,
    (predicted,), and what the table says of it, with the ``fold`` of each text, None where there is
    one; ``job`` is as along a training. Weights are left as they were."""
    settings, training, texts = job.settings, job.settings.training, pool.texts
    folds, targets = draw_by_fold(pool, settings.targets, settings.seed)
    model.eval()
    read = texts, training, job.execution.micro_batch_size, settings.seed
    objective = mean_nll_objective(model, *read, accelerator, "influence")
    module = accelerator.prepare_model(objective.module, evaluation_mode=True)
    trained = [p for p in model.parameters() if p.requires_grad]
    # Adam's if all of a training's steps were taken at these weights.
    moments = [torch.zeros_like(sharding.shard_of(p.detach())) for p in trained]
    for number in range(settings.batches):
        gradient(objective, module, objective.step(number), accelerator, trained, False)
        for moment, parameter in zip(moments, trained, strict=True):
            if parameter.grad is not None:
                along = sharding.shard_of(parameter.grad)
                moment.addcmul_(along, along, value=1 / settings.batches)
        model.zero_grad(set_to_none=True)
    values = np.zeros(int(texts.counted.sum()))
    for fold, theirs in targets.items():
        inside = subset(texts, np.flatnonzero(folds == fold))
        slopes = Slopes(model, inside, theirs, accelerator, training, job.execution).slopes(moments)
        values[np.repeat(folds == fold, texts.counted)] = training.learning_rate * slopes
    return values, {
        "fold": folds if len(targets) > 1 else None,
        "batches": settings.batches,
        "targets": {domain: [len(of[domain]) for of in targets.values()] for domain in targets[0]},
        "eps": STEP[accelerator.mixed_precision],
    }
