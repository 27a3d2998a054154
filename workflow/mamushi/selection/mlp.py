"""The paper's MLP in torch: binary cross-entropy on standardised embeddings, its logit the score.

It follows scikit-learn's ``MLPClassifier`` (initialisation, Adam, what an L2 of alpha means, when
to stop) except where the paper needs what that cannot do: balanced class weights, and early
stopping on the held-out loss instead of the accuracy.

Networks train in *stacks*: the weights of F networks are one tensor (F, out, in), and a step of all
of them is one batched product per layer. On a GPU the folds are one stack, because a product of one
fold is too small to fill it; a CPU is bound by arithmetic and trains them by the same code one at a
time, or one on each of its cores. Within an epoch the host never waits for the device.

The networks of all folds share one copy of the embeddings, standardised by common statistics
(mu, sigma). A fold standardises by statistics (m, s) of its own training examples, and that
difference is affine,

    (x - m) / s = a * (x - mu) / sigma + c,    a = sigma / s,  c = (mu - m) / s,

so it goes into the first layer: W (a * x + c) + b = (W a) x + (b + W c). The weights that are
trained and penalised are W and b, as without it.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from mamushi.errors import UserError
from mamushi.running.threads import side_by_side
from mamushi.selection.crossfit import Fit, Task
from mamushi.selection.folds import balanced_weights, held_out
from mamushi.selection.pool import BLOCK_BYTES

Places = NDArray[np.int64]

STACK = 16
"""Most networks that a GPU trains together."""

ROUNDED = 2**32
"""Bytes of embeddings up to which their rounded copy is kept; larger ones are rounded in each batch
again, to the same numbers."""
PREDICT = 4096
"""Rows of a forward pass at a time when scoring."""


@dataclass(frozen=True)
class Recipe:
    """How to train; the values are the settings of the selector ``mamushi``."""

    hidden: Sequence[int]
    learning_rate: float
    batch_size: int
    epochs: int
    patience: int
    tolerance: float
    validation: float
    alpha: float
    precision: str


def estimate_mlp(tasks: Sequence[Task], recipe: Recipe) -> Iterator[Fit]:
    """Held-out logits of each task by a network of its own; on the GPU where there is one.

    The tasks are folds of one pool, or several seeds of them. The same seeds give the same networks
    whichever are trained together, up to the rounding of the batched products.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    features = Features.of(tasks, device, use_bf16(recipe.precision, device))
    together = stack_size(device)

    def fit(group: Sequence[Task]) -> list[Fit]:
        stack, details = train(features, group, recipe)
        return [
            (predict(stack, i, features, task.held), {**more, "device": device.type})
            for i, (task, more) in enumerate(zip(group, details, strict=True))
        ]

    groups = [tasks[start : start + together] for start in range(0, len(tasks), together)]
    for fits in map(fit, groups) if device.type == "cuda" else side_by_side(fit, groups):
        yield from fits


def stack_size(device: torch.device) -> int:
    """How many networks ``device`` trains together."""
    return STACK if device.type == "cuda" else 1


class Features:
    """Embeddings (n, d) on the device, standardised by statistics common to all folds.

    With ``bf16`` the training reads a copy in bfloat16, which is as large as the embeddings; else
    rows are widened to float32 batch by batch. Scoring always reads float32. The rounding to
    bfloat16 comes after standardising: a column far from zero would lose all its digits before.
    """

    def __init__(
        self,
        embeddings: NDArray[np.float16],
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
        device: torch.device,
        bf16: bool,
    ) -> None:
        self.mean, self.scale, self.bf16 = mean, scale, bf16
        with warnings.catch_warnings():
            # The array is read-only, and nothing here writes to it.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            self._half = torch.from_numpy(embeddings).to(device)
        self._mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self._scale = torch.tensor(scale, dtype=torch.float32, device=device)
        self._buffers = threading.local()
        self._rounded = None
        if bf16 and embeddings.nbytes <= ROUNDED:
            self._rounded = torch.empty(self._half.shape, dtype=torch.bfloat16, device=device)
            rows = max(1, BLOCK_BYTES // (4 * embeddings.shape[1]))
            for start in range(0, len(embeddings), rows):
                block = slice(start, start + rows)
                half = self._half[block]
                wide = self._buffer(torch.float32, half.shape)
                self._rounded[block] = self._standardise(half, wide)

    @classmethod
    def of(cls, tasks: Sequence[Task], device: torch.device, bf16: bool) -> Features:
        """Features of the pool that ``tasks`` share, by the means of their statistics."""
        mean = np.mean([task.mean for task in tasks], axis=0)
        scale = np.mean([task.scale for task in tasks], axis=0)
        return cls(tasks[0].embeddings, mean, scale, device, bf16)

    @property
    def device(self) -> torch.device:
        """Where the embeddings are."""
        return self._half.device

    @property
    def width(self) -> int:
        """Dimensions d of an embedding."""
        return int(self._half.shape[1])

    def train(self, rows: Tensor) -> Tensor:
        """Rows (F, B) as (F, B, d), in bfloat16 or float32; good until the next call."""
        if self._rounded is not None:
            return self._gather(self._rounded, rows)
        x = self.exact(rows)
        return self._buffer(torch.bfloat16, x.shape).copy_(x) if self.bf16 else x

    def exact(self, rows: Tensor) -> Tensor:
        """Rows (F, B) as (F, B, d), in float32; good until the next call."""
        half = self._gather(self._half, rows)
        return self._standardise(half, self._buffer(torch.float32, half.shape))

    def affine(self, tasks: Sequence[Task]) -> tuple[Tensor, Tensor]:
        """The tasks' a and c (F, d): a task's own features are a * x + c of these."""
        a = np.stack([self.scale / task.scale for task in tasks])
        c = np.stack([(self.mean - task.mean) / task.scale for task in tasks])
        slope, shift = (torch.tensor(t, dtype=torch.float32, device=self.device) for t in (a, c))
        return slope, shift

    def _gather(self, source: Tensor, rows: Tensor) -> Tensor:
        out = self._buffer(source.dtype, (*rows.shape, self.width))
        torch.index_select(source, 0, rows.flatten(), out=out.view(-1, self.width))
        return out

    def _standardise(self, half: Tensor, out: Tensor) -> Tensor:
        return out.copy_(half).sub_(self._mean).div_(self._scale)

    def _buffer(self, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
        """Memory that a thread uses again: fresh pages cost a CPU as much as filling them."""
        size = math.prod(shape)
        name = str(dtype)
        held: Tensor | None = getattr(self._buffers, name, None)
        if held is None or len(held) < size:
            held = torch.empty(size, dtype=dtype, device=self.device)
            setattr(self._buffers, name, held)
        return held[:size].view(shape)


class Stack:
    """F networks of linear layers with ReLU between them, and one output each.

    ``weights`` (F, out, in) and ``biases`` (F, out) per layer, in float32. ``slope`` and ``shift``
    (F, d) are a and c of the module's docstring.
    """

    def __init__(
        self, weights: list[Tensor], biases: list[Tensor], slope: Tensor, shift: Tensor
    ) -> None:
        self.weights, self.biases, self.slope, self.shift = weights, biases, slope, shift

    def __len__(self) -> int:
        return len(self.slope)

    @classmethod
    def glorot(
        cls,
        widths: Sequence[int],
        generators: Sequence[np.random.Generator],
        slope: Tensor,
        shift: Tensor,
    ) -> Stack:
        """A network per generator, with layers of these ``widths``.

        Weights and biases are uniform within sqrt(6 / (inputs + outputs)), as scikit-learn draws
        them.
        """
        weights, biases = [], []
        for inputs, outputs in pairwise(widths):
            bound = math.sqrt(6.0 / (inputs + outputs))
            weight = torch.empty((len(generators), outputs, inputs), device=slope.device)
            bias = torch.empty((len(generators), outputs), device=slope.device)
            for i, rng in enumerate(generators):
                for parameter in (weight[i], bias[i]):
                    drawn = rng.uniform(-bound, bound, parameter.shape).astype(np.float32)
                    parameter.copy_(torch.from_numpy(drawn))
            weights.append(weight)
            biases.append(bias)
        return cls(weights, biases, slope, shift)

    def some(self, which: Tensor | None) -> Stack:
        """The networks at these places, as copies; all of them, and no copy, for None."""
        if which is None:
            return self
        return Stack(
            [weight[which] for weight in self.weights],
            [bias[which] for bias in self.biases],
            self.slope[which],
            self.shift[which],
        )

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits (F, B) of ``x`` (F, B, d), and the input of every layer.

        Products are in the precision of ``x``, but for the last layer's: a bfloat16 logit has 8
        significant bits, so scores would tie.
        """
        inputs = [x]
        for i, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases, strict=False)):
            if i == 0:
                bias = bias + (weight @ self.shift[:, :, None])[:, :, 0]
                weight = weight * self.slope[:, None]
            out = product(inputs[-1], weight.to(x.dtype).mT)
            inputs.append(out.add_(bias.to(x.dtype)[:, None]).relu_())
        weight, bias, last = self.weights[-1], self.biases[-1], inputs[-1].float()
        if len(self.weights) == 1:
            bias = bias + (weight @ self.shift[:, :, None])[:, :, 0]
            weight = weight * self.slope[:, None]
        return (last @ weight.mT)[:, :, 0] + bias, inputs

    def gradients(self, x: Tensor, y: Tensor, w: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Gradients of sum(w * BCE) / sum(w) by the weights and by the biases, as these are shaped.

        ``x`` (F, B, d), ``y`` (F, B) labels, ``w`` (F, B) weights. A row of weight 0 has no part.
        """
        logits, inputs = self.forward(x)
        delta = (torch.sigmoid(logits) - y).mul_(w).div_(w.sum(dim=1, keepdim=True))[:, :, None]
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        for i in reversed(range(len(self.weights))):
            # The last layer's are float32, like its product.
            given = inputs[i].to(delta.dtype)
            weight = product(delta.mT, given).float()
            bias = delta.sum(dim=1, dtype=torch.float32)
            if i == 0:
                weight.mul_(self.slope[:, None]).add_(bias[:, :, None] * self.shift[:, None])
            else:
                back = product(delta, self.weights[i].to(delta.dtype))
                delta = torch.ops.aten.threshold_backward(back.to(x.dtype), inputs[i], 0)
            weights.append(weight)
            biases.append(bias)
        return weights[::-1], biases[::-1]


@dataclass
class Stopping:
    """When one network stops, by its held-out loss: scikit-learn's rule.

    An epoch is bad when its loss is not below the best so far by more than the tolerance; training
    is over after more than ``patience`` bad epochs in a row.
    """

    patience: int
    tolerance: float
    epochs: int = 0
    best_epoch: int = 0
    best_loss: float = math.inf
    bad: int = 0
    best: list[Tensor] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether the network has stopped."""
        return self.bad > self.patience

    def saw(self, loss: float) -> bool:
        """Count an epoch with this loss; whether it is the best so far."""
        self.epochs += 1
        self.bad = 0 if loss < self.best_loss - self.tolerance else self.bad + 1
        better = loss < self.best_loss
        if better:
            self.best_loss, self.best_epoch = loss, self.epochs
        return better


@torch.no_grad()
def train(
    features: Features, tasks: Sequence[Task], recipe: Recipe
) -> tuple[Stack, list[dict[str, Any]]]:
    """Fit a network per task, together; the weights are those of its best epoch.

    Of a task's training rows a stratified share is held out for early stopping (``Stopping``). Each
    task draws from its own seed, so what is trained beside it changes nothing but rounding. Raises
    ``UserError`` when a held-out loss was never finite.
    """
    batches = [Batches(task, recipe) for task in tasks]
    widths = [features.width, *recipe.hidden, 1]
    stack = Stack.glorot(widths, [one.rng for one in batches], *features.affine(tasks))
    adam = Adam(stack, recipe)
    watch = Held(batches, features.device)
    stops = [Stopping(recipe.patience, recipe.tolerance) for _ in tasks]
    with full_sums():
        for _ in range(recipe.epochs):
            running = [i for i, stop in enumerate(stops) if not stop.over]
            for batch in epoch(batches, running, features.device):
                step(stack, adam, features, batch, recipe.alpha)
            losses = held_out_loss(stack, features, watch, running, recipe.batch_size)
            for i, loss in zip(running, losses, strict=True):
                if stops[i].saw(loss):
                    stops[i].best = [w[i].clone() for w in (*stack.weights, *stack.biases)]
            if all(stop.over for stop in stops):
                break
    for i, stop in enumerate(stops):
        if not stop.best:
            raise UserError(
                f"the MLP's held-out loss was never finite in {stop.epochs} epochs",
                do="lower the selector's learning_rate",
            )
        for parameter, kept in zip((*stack.weights, *stack.biases), stop.best, strict=True):
            parameter[i] = kept
    precision = "bf16" if features.bf16 else "fp32"
    return stack, [
        {
            "epochs": stop.epochs,
            "best_epoch": stop.best_epoch,
            "held_out_loss": stop.best_loss,
            "precision": precision,
        }
        for stop in stops
    ]


class Batches:
    """A task's training rows, the part of them held out, and the order of its batches."""

    def __init__(self, task: Task, recipe: Recipe) -> None:
        forget = task.forget[task.train]
        self.rng = np.random.default_rng(task.seed)
        self.rows, self.forget = task.train, forget.astype(np.float32)
        self.weights = balanced_weights(forget).astype(np.float32)
        self.fitted, self.held = held_out(forget, recipe.validation, self.rng)
        self.size = min(recipe.batch_size, len(self.fitted))

    def epoch(self) -> list[Places]:
        """Places among the training rows, in batches, in a new order."""
        order = self.rng.permutation(self.fitted)
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]


@dataclass(frozen=True)
class Batch:
    """A batch each of ``which`` networks of a stack: ``rows`` (F, B) of the pool, ``labels`` and
    ``weights`` (F, B), and the sum of the weights. A shorter batch is filled up with rows of weight
    0. ``places`` is ``which`` on the device, None for all."""

    which: list[int]
    places: Tensor | None
    rows: Tensor
    labels: Tensor
    weights: Tensor
    total: list[float]


def epoch(batches: Sequence[Batches], running: list[int], device: torch.device) -> list[Batch]:
    """The batches of one epoch of the networks ``running``, copied to the device before its steps.

    A network whose examples are fewer has fewer batches, and is not among the last ones' ``which``.
    """
    drawn = {i: batches[i].epoch() for i in running}
    found, places = [], {}
    for number in range(max(len(parts) for parts in drawn.values())):
        which = [i for i in running if number < len(drawn[i])]
        if len(which) < len(batches) and tuple(which) not in places:
            places[tuple(which)] = torch.tensor(which, device=device)
        parts = [(batches[i], drawn[i][number]) for i in which]
        found.append(
            Batch(
                which,
                places.get(tuple(which)),
                *padded(parts, device),
                [float(one.weights[part].sum(dtype=np.float64)) for one, part in parts],
            )
        )
    return found


def padded(
    parts: Sequence[tuple[Batches, Places]], device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the pool, labels and weights (F, B) of a batch each; filled up with weights of 0."""
    longest = max(len(part) for _, part in parts)
    rows = np.zeros((len(parts), longest), dtype=np.int64)
    labels = np.zeros((len(parts), longest), dtype=np.float32)
    weights = np.zeros((len(parts), longest), dtype=np.float32)
    for i, (one, part) in enumerate(parts):
        rows[i, : len(part)] = one.rows[part]
        labels[i, : len(part)] = one.forget[part]
        weights[i, : len(part)] = one.weights[part]
    # From pageable memory the copy is staged, so the arrays may go when this returns.
    moved = (torch.from_numpy(a).to(device, non_blocking=True) for a in (rows, labels, weights))
    return next(moved), next(moved), next(moved)


class Held:
    """The held-out rows of every network of a stack, on the device, with their weight."""

    def __init__(self, batches: Sequence[Batches], device: torch.device) -> None:
        self.rows, self.labels, self.weights = padded([(b, b.held) for b in batches], device)
        self.total = [float(b.weights[b.held].sum(dtype=np.float64)) for b in batches]


class Adam:
    """Adam on a stack, one network at a time where some have no batch: each counts its own steps.

    torch's fused kernel, whose weight decay adds alpha / sum(w) * W to the gradient of a weight:
    scikit-learn's L2, which is divided by the weight of the batch and spares biases.
    """

    def __init__(self, stack: Stack, recipe: Recipe) -> None:
        self._weights = [[w[i] for w in stack.weights] for i in range(len(stack))]
        self._biases = [[b[i] for b in stack.biases] for i in range(len(stack))]
        groups = [{"params": own} for own in (*self._weights, *self._biases)]
        self._adam = torch.optim.Adam(groups, lr=recipe.learning_rate, fused=True)

    def step(
        self, which: list[int], weights: list[Tensor], biases: list[Tensor], decay: list[float]
    ) -> None:
        """Step the networks ``which`` along gradients (len(which), ...), with a weight decay each.

        The others keep their weights and their moments.
        """
        for i in range(len(self._weights)):
            for parameter in (*self._weights[i], *self._biases[i]):
                parameter.grad = None
        for row, i in enumerate(which):
            self._adam.param_groups[i]["weight_decay"] = decay[row]
            for own, given in ((self._weights[i], weights), (self._biases[i], biases)):
                for parameter, gradient in zip(own, given, strict=True):
                    parameter.grad = gradient[row]
        self._adam.step()


def step(stack: Stack, adam: Adam, features: Features, batch: Batch, alpha: float) -> None:
    """One Adam step of each network on sum(w * BCE) / sum(w) + alpha / (2 sum(w)) * |W|^2."""
    x = features.train(batch.rows)
    weights, biases = stack.some(batch.places).gradients(x, batch.labels, batch.weights)
    adam.step(batch.which, weights, biases, [alpha / total for total in batch.total])


@torch.no_grad()
def held_out_loss(
    stack: Stack, features: Features, held: Held, running: list[int], size: int
) -> list[float]:
    """Weighted BCE, without the L2 term, of the held-out rows of the networks ``running``.

    Here the host waits for the device: once an epoch.
    """
    places = None
    if len(running) < len(stack):
        places = torch.tensor(running, device=features.device)
    networks = stack.some(places)
    kept = slice(None) if places is None else places
    rows, labels, weights = (t[kept] for t in (held.rows, held.labels, held.weights))
    total = torch.zeros(len(running), dtype=torch.float64, device=features.device)
    for start in range(0, rows.shape[1], size):
        part = slice(start, start + size)
        logits, _ = networks.forward(features.train(rows[:, part]))
        loss = binary_cross_entropy_with_logits(
            logits, labels[:, part], weights[:, part], reduction="none"
        )
        total += loss.double().sum(dim=1)
    return [loss / held.total[i] for i, loss in zip(running, total.tolist(), strict=True)]


@torch.no_grad()
def predict(stack: Stack, i: int, features: Features, rows: Places) -> NDArray[np.float64]:
    """Raw logits of ``rows`` by network ``i``, in float32 whatever precision it was trained in."""
    network = stack.some(torch.tensor([i], device=features.device))
    index = torch.from_numpy(rows).to(features.device)[None]
    parts = [
        network.forward(features.exact(index[:, start : start + PREDICT]))[0][0]
        for start in range(0, len(rows), PREDICT)
    ]
    logits: NDArray[np.float64] = torch.cat(parts).double().cpu().numpy()
    return logits


def use_bf16(precision: str, device: torch.device) -> bool:
    """Whether to multiply in bfloat16: ``auto`` does where the hardware has it and gains by it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    cpu = torch.cpu.get_capabilities()
    return bool(cpu.get("avx512_bf16") or cpu.get("amx_bf16"))


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b (F, n, m) of ``a`` (F, n, k) and ``b`` (F, k, m), by the fastest exact kernel.

    For float32 on a CPU that is oneDNN's: torch takes MKL's instead, which on AMD is slower by up
    to half. bfloat16 goes to oneDNN by itself.
    """
    linear = _onednn_linear() if a.device.type == "cpu" and a.dtype == torch.float32 else None
    if linear is None:
        return torch.bmm(a, b)
    if len(a) == 1:
        return linear(a[0], b[0].T)[None]
    return torch.stack([linear(x, y.T) for x, y in zip(a, b, strict=True)])


def _onednn_linear() -> Callable[[Tensor, Tensor], Tensor] | None:
    """x @ w.T by oneDNN, through the operator that torch's own compiler calls; None without it."""
    if not torch.backends.mkldnn.is_available():
        return None
    operator = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if operator is None:
        return None
    return lambda x, w: operator(x, w, None, "none", [], "")


@contextmanager
def full_sums() -> Iterator[None]:
    """Within it, bfloat16 products on a GPU add up in float32 throughout, as those on a CPU do."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_bf16_reduced_precision_reduction
    matmul.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        matmul.allow_bf16_reduced_precision_reduction = before
