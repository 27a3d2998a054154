"""The training loop: of fine-tuning, unlearning, relearning, and the pretraining of tiny models.
What is minimized, and over which texts, is an ``Objective``; how, a ``Descent``."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.config.sections import Training
from mamushi.errors import UserError
from mamushi.lm import sharding
from mamushi.lm.attention import can_share
from mamushi.lm.batches import batch_of, examples_of_step, micro_batches
from mamushi.lm.device import deterministic
from mamushi.lm.loss import TokenLoss
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet
from mamushi.running import interruption
from mamushi.running.progress import Progress

Share = Callable[[nn.Module], Sequence[Tensor]]
"""Given the prepared module, a micro-batch's share of each loss of the step: scalars with
gradients, which add up over the micro-batches of all processes."""
Log = dict[str, list[Any]]
Updated = Callable[[int, torch.optim.Optimizer], None]

ADAMW = ("betas", "epsilon", "weight_decay", "gradient_clip")
"""Settings of any training that a ``Descent`` has as well."""
NORMS = 50  # steps between two norms of the gradient, where nothing needs it in each
TOGETHER = 10  # steps between two agreements of several processes


class Step(NamedTuple):
    """One update: this process's shares, at least one; predicted tokens of all processes; passes
    over the texts after it."""

    shares: Sequence[Share]
    tokens: int
    epoch: float


@dataclass(frozen=True)
class Objective:
    """What is minimized, and over what."""

    name: str
    model: PreTrainedModel
    module: nn.Module
    """What shares call, with the model in it."""
    step: Callable[[int], Step]
    """Gives a step by its number, counted from 0."""
    losses: tuple[str, ...] = ("loss",)
    """Names of what each share gives; the first one is minimized."""
    ends: Callable[[Mapping[str, list[float]]], bool] | None = None
    """Whether the training ends before the update of the step that was logged last: then each step
    waits for the device and must be finite before its update."""
    adjust: Callable[[], None] = lambda: None
    """Changes the gradient of a whole step, before its norm is taken."""
    updated: Updated = lambda step, optimizer: None
    """Called after the update of a step, counted from 1, with the moments and rate of that step."""


@dataclass(frozen=True)
class Descent:
    """AdamW, which clips gradients to a norm of ``gradient_clip``: its rate rises over the
    ``warmup`` steps, to its peak in ``rise``, as many or one more; then it is constant, or falls to
    0."""

    learning_rate: float
    betas: Sequence[float]
    epsilon: float
    weight_decay: float
    gradient_clip: float | None = None
    schedule: str = "constant"
    warmup: int = 0
    rise: int = 1
    vectors_decay: bool = True
    """Whether norms and biases decay as matrices do."""

    def optimizer(self, trained: Collection[nn.Parameter]) -> torch.optim.Optimizer:
        """Make the optimizer of these parameters."""
        groups: dict[float, list[nn.Parameter]] = {}
        for parameter in trained:
            decays = parameter.ndim > 1 or self.vectors_decay
            groups.setdefault(self.weight_decay if decays else 0.0, []).append(parameter)
        named = [{"params": group, "weight_decay": decay} for decay, group in groups.items()]
        betas = (self.betas[0], self.betas[1])
        return torch.optim.AdamW(named, self.learning_rate, betas, self.epsilon, fused=True)

    def rate(self, step: int, total: int) -> float:
        """Return the learning rate of ``step``, counted from 0, of ``total`` steps."""
        past, after, peak = step - self.warmup, total - self.warmup, self.learning_rate
        if past < 0:
            return peak * (step + 1) / self.rise
        if self.schedule == "linear":
            return peak * ((total - step) / after)
        if self.schedule == "cosine":
            return peak * 0.5 * (1.0 + math.cos(math.pi * past / after))
        return peak


@dataclass
class TrainingLoop:
    """Trains the parameters of the objective's model that require a gradient, in place.

    With a ``checkpoint``, everything is saved there from time to time, and when the process is
    asked to end; a training of its fingerprint goes on from it, on the CPU bit for bit as if it had
    never stopped.
    """

    objective: Objective
    descent: Descent
    total: int
    accelerator: Accelerator
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        objective, accelerator = self.objective, self.accelerator
        self.trained = {n: p for n, p in objective.model.named_parameters() if p.requires_grad}
        optimizer = self.descent.optimizer(self.trained.values())
        after = ("tokens", "tokens_per_second", "learning_rate", "gradient_norm", "seconds")
        self.log: Log = {name: [] for name in ("step", "epoch", *objective.losses, *after)}
        self.waiting: list[tuple[dict[str, float], Tensor]] = []
        """Steps that are not yet logged, and their losses."""
        if self.checkpoint is not None:
            self.checkpoint.restore(self.trained, optimizer, self.log)
        self.module = accelerator.prepare_model(objective.module, evaluation_mode=True)
        self.optimizer = accelerator.prepare_optimizer(optimizer)
        self.optimizer.zero_grad(set_to_none=True)
        self.last, self.saved = float(sum(self.log["seconds"][-1:])), time.monotonic()
        self.began = self.saved - self.last

    def run(self) -> Log:
        """Take the steps; return the columns of an artifact, with None for a norm that was not
        taken. Raises ``UserError`` that names the step at which a loss or norm is not finite."""
        start, notice = len(self.log["step"]), interruption.Notice()
        signals = interruption.SIGNALS if self.checkpoint else ()
        with (
            # A step of several processes that fails in one of them cannot be taken again.
            deterministic(strict=self.accelerator.num_processes == 1),
            interruption.handle_signals(notice.note, signals),
            Progress(self.total, self.objective.name, "step", start=start) as progress,
        ):
            for number in range(start, self.total):
                if not self.update(number):
                    break
                if progress.will_show():
                    self.collect()
                self.save(number + 1, int(notice.received or 0))
                progress.advance(1, "".join(f"loss {loss:.3f}" for loss in self.log["loss"][-1:]))
            self.collect()
        # Whoever measures the model next needs neither gradients nor moments.
        self.optimizer.zero_grad(set_to_none=True)
        self.accelerator.free_memory()
        return self.log

    def save(self, steps: int, received: int) -> None:
        """Save everything after so many steps where it is time, or where a signal, not 0, was
        ``received``, which ends the process."""
        several = self.accelerator.num_processes > 1
        if self.checkpoint is None or (several and steps % TOGETHER):
            return
        late = time.monotonic() - self.saved >= self.checkpoint.seconds
        if several:
            # All bring their shards, and have to agree.
            mine = torch.tensor([[received, late]], device=self.accelerator.device)
            received, late = self.accelerator.gather(mine).amax(0).tolist()
        if received or late:
            self.collect()
            self.saved = time.monotonic()
            self.checkpoint.save(self.trained, self.optimizer, self.log)
            # The first process that ends takes the others along, also the one that writes.
            self.accelerator.wait_for_everyone()
        if received:
            raise interruption.Stopped(received, f" after step {steps} of {self.total}")

    def update(self, number: int) -> bool:
        """Take a step, counted from 0; return False if the objective ends before its update."""
        objective, clip = self.objective, self.descent.gradient_clip
        trained = self.trained.values()
        step, rate = objective.step(number), self.descent.rate(number, self.total)
        # One that is not finite shows in the loss of the next step, which the last one has not.
        norm = number % NORMS == 0 or number == self.total - 1
        norm = norm or clip is not None or objective.ends is not None
        arguments = (objective, self.module, step, self.accelerator, trained, norm)
        try:
            measured = gradient(*arguments)
        except RuntimeError as error:
            if "does not have a deterministic implementation" not in str(error):
                raise
            print(f"equal runs may differ in their last bits: {error}", file=sys.stderr, flush=True)
            torch.use_deterministic_algorithms(True, warn_only=True)
            self.optimizer.zero_grad(set_to_none=True)
            measured = gradient(*arguments)
        if objective.ends is not None:
            measured = measured.cpu()
        seconds = time.monotonic() - self.began
        row = {"step": number + 1, "epoch": step.epoch, "tokens": step.tokens, "seconds": seconds}
        row |= {"tokens_per_second": step.tokens / max(seconds - self.last, 1e-9)}
        self.waiting.append((row | {"learning_rate": rate}, measured))
        self.last = seconds
        if objective.ends is not None:
            self.collect()
            if objective.ends(self.log):
                return False
        if clip is not None:
            nn.utils.clip_grads_with_norm_(trained, clip, measured[-1])
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        objective.updated(number + 1, self.optimizer)
        return True

    def collect(self) -> None:
        """Log the steps that wait: the one place that waits for the device."""
        for row, measured in self.waiting:
            # The norm comes last, where it was taken.
            names = (*self.objective.losses, "gradient_norm")
            losses = dict(zip(names, measured.tolist(), strict=False))
            for name, value in losses.items():
                if not math.isfinite(value):
                    problem = f"the {name.replace('_', ' ')} is {value} at step {row['step']}"
                    do = "lower its learning_rate, or train in fp32"
                    raise UserError(problem, where=self.objective.name, do=do)
            for name, column in self.log.items():
                column.append((row | losses).get(name))
        self.waiting.clear()


def gradient(
    objective: Objective,
    module: nn.Module,
    step: Step,
    accelerator: Accelerator,
    trained: Collection[nn.Parameter],
    norm: bool = True,
) -> Tensor:
    """Leave the gradient of a step in ``trained``; return its losses and, if asked for, the norm of
    that gradient: (losses + 1,), for which nothing here waits."""
    sums = torch.zeros(len(objective.losses), device=accelerator.device)
    # Autocast keeps its casts of weights until the outermost context ends: this one, so that they
    # are cast for the first micro-batch alone.
    torch.autocast_increment_nesting()
    try:
        for share in step.shares:
            losses = share(module)
            # Gradients are averaged over processes; multiplied back, they are the sum.
            accelerator.backward(losses[0] * accelerator.num_processes)
            sums += torch.stack(list(losses)).detach()
    finally:
        torch.autocast_decrement_nesting()
        torch.clear_autocast_cache()
    sums = accelerator.reduce(sums, "sum")
    objective.adjust()
    if not norm:
        return sums
    total = nn.utils.get_total_norm([p.grad for p in trained if p.grad is not None])
    return torch.cat([sums, sharding.full_tensor(total)[None]])


def steps(examples: float, batch_size: int, epochs: float) -> int:
    """Return the paper's number of steps, T = floor(epochs * n / batch), at least 1, of n
    ``examples``, which need not be whole: see ``tokens.mass``."""
    return max(1, int(epochs * examples // batch_size))


def mean_nll_objective(
    model: PreTrainedModel,
    texts: TokenSet,
    training: Training,
    micro_batch_size: int,
    seed: int,
    accelerator: Accelerator,
    name: str = "fine-tune",
    remaining: NDArray[np.bool_] | None = None,
    updated: Updated = Objective.updated,
) -> Objective:
    """Make the objective of fine-tuning: of each step the mean NLL over its predicted tokens.
    ``remaining`` is that of ``examples_of_step``."""
    batch, shared, aligned = training.batch_size, can_share(model), training.steps == "aligned"
    passed = len(texts) if remaining is None or not aligned else len(remaining)

    def step(number: int) -> Step:
        rows = examples_of_step(number, len(texts), batch, seed, remaining, aligned=aligned)
        tokens = int(np.maximum(texts.lengths[rows] - 1, 0).sum())
        weight = float(texts.counted[rows].sum()) or 1.0
        pieces = micro_batches(rows, micro_batch_size, accelerator)
        shares = [partial(loss, piece, weight) for piece in pieces]
        return Step(shares, tokens, (number + 1) * batch / passed)

    def loss(rows: NDArray[np.int64], weight: float, module: nn.Module) -> list[Tensor]:
        # A process that has no text runs the model all the same, on one that does not count.
        read = rows if len(rows) else np.array([texts.lengths.argmax()])
        batch = batch_of(texts, read, accelerator.device, shared=shared)
        return [module(batch) * ((len(rows) > 0) / weight)]

    return Objective(name, model, TokenLoss(model), step, updated=updated)


def minimize_nll(
    model: PreTrainedModel,
    texts: TokenSet,
    training: Training,
    *,
    micro_batch_size: int,
    examples: float,
    seed: int,
    accelerator: Accelerator,
    name: str = "fine-tune",
    checkpoint: Checkpoint | None = None,
    remaining: NDArray[np.bool_] | None = None,
    updated: Updated = Objective.updated,
) -> Log:
    """Train the parameters that require a gradient, in place, in the ``steps`` of so many
    ``examples``: ``checkpoint`` is that of ``TrainingLoop``, ``remaining`` of ``examples_of_step``
    and ``updated`` of ``Objective``. Raises ``UserError`` where there is nothing to train on."""
    if not (texts.counted > 0).any():
        raise UserError(f"{name}: no text with a token to predict")
    total = steps(examples, training.batch_size, training.epochs)
    adamw = training.betas, training.epsilon, training.weight_decay, training.gradient_clip
    warmup = training.warmup_steps
    descent = Descent(training.learning_rate, *adamw, training.schedule, warmup, warmup + 1)
    objective = mean_nll_objective(
        model, texts, training, micro_batch_size, seed, accelerator, name, remaining, updated
    )
    model.train()
    return TrainingLoop(objective, descent, total, accelerator, checkpoint).run()
