"""The paper's MLP in torch: binary cross-entropy on standardised embeddings, its logit the score.

It follows scikit-learn's ``MLPClassifier`` (initialisation, Adam, what an L2 of alpha means, when
to stop) but for balanced class weights and early stopping on the held-out loss.

Networks train in *stacks*: the weights of F networks are one tensor (F, out, in), and a step of all
of them is one batched product per layer. On a GPU the folds are one stack; a CPU trains one network
on each core. Within an epoch the host never waits for the device.

All networks share one copy of the embeddings, standardised by common statistics (mu, sigma). A fold
standardises by statistics (m, s) of its own. That difference is affine, (x - m) / s = a * x' + c
with a = sigma / s and c = (mu - m) / s, so it goes into the first layer: (W a) x' + (b + W c). The
weights that are trained and penalised are W and b, as without it.

Gradients are written out: autograd rounds those of biases to bfloat16 and adds up in another order.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from mamushi.errors import UserError
from mamushi.running.machine import sees_gpu
from mamushi.running.threads import side_by_side
from mamushi.selection.crossfit import Fit, Task
from mamushi.selection.folds import balanced_weights, held_out

_Places = NDArray[np.int64]

STACK = {"cuda": 16, "cpu": 1}  # Most networks that a device trains together.
PREDICT = 4096  # Rows of a forward pass at a time when scoring.


def estimate_mlp(tasks: Sequence[Task], settings: Mapping[str, Any]) -> Iterator[Fit]:
    """Yield the held-out logits of each task by a network of its own; on the GPU if there is one.

    The tasks are folds of one pool, or several seeds of them; ``settings`` are those of the
    selector ``mamushi``. What is trained together changes nothing but rounding. The estimator
    ``sklearn`` is ``mlp_sklearn`` instead.
    """
    if settings["estimator"] == "sklearn":
        from mamushi.selection.mlp_sklearn import fit_classifiers

        yield from fit_classifiers(tasks, settings)
        return
    device = torch.device("cuda" if sees_gpu() else "cpu")
    # On a GPU, sums of bfloat16 products are float32 throughout, as they are on a CPU.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    features = PoolFeatures(tasks, device, use_bf16(settings["precision"], device))

    def fit(group: Sequence[Task]) -> list[Fit]:
        stack, details = train_networks(features, group, settings)
        return [
            (network_logits(stack, i, features, task.held), detail)
            for i, (task, detail) in enumerate(zip(group, details, strict=True))
        ]

    size = STACK[device.type]
    groups = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    for fits in map(fit, groups) if device.type == "cuda" else side_by_side(fit, groups):
        yield from fits


class PoolFeatures:
    """The embeddings (n, d) that ``tasks`` share, on the device, standardised by common statistics.

    Training reads them in bfloat16 with ``bf16``, else in float32; scoring always in float32.
    Rounding comes after standardising: a column far from zero would lose all its digits before.
    """

    def __init__(self, tasks: Sequence[Task], device: torch.device, bf16: bool) -> None:
        self.mean = np.mean([task.mean for task in tasks], axis=0)
        self.scale = np.mean([task.scale for task in tasks], axis=0)
        self.bf16, self.device = bf16, device
        with warnings.catch_warnings():
            # The array is read-only, and nothing here writes to it.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            self._half = torch.from_numpy(tasks[0].embeddings).to(device)
        self._mean, self._scale = self._moved(self.mean), self._moved(self.scale)

    def train(self, rows: Tensor) -> Tensor:
        """Return rows (F, B) as (F, B, d), in bfloat16 or float32."""
        return self.exact(rows).to(torch.bfloat16 if self.bf16 else torch.float32)

    def exact(self, rows: Tensor) -> Tensor:
        """Return rows (F, B) as (F, B, d), in float32."""
        half = self._half.index_select(0, rows.flatten())
        return half.float().sub_(self._mean).div_(self._scale).view(*rows.shape, -1)

    def affine(self, tasks: Sequence[Task]) -> tuple[Tensor, Tensor]:
        """Return each task's a and c (F, d): its features are a * x + c of the common ones x."""
        a = np.stack([self.scale / task.scale for task in tasks])
        c = np.stack([(self.mean - task.mean) / task.scale for task in tasks])
        return self._moved(a), self._moved(c)

    def _moved(self, values: NDArray[np.float64]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device)


@dataclass
class Stack:
    """F networks of linear layers with ReLU between them, and one output each.

    ``weights`` (F, out, in) and ``biases`` (F, out) per layer; ``slope`` and ``shift`` (F, d) are a
    and c of the module's docstring.
    """

    weights: list[Tensor]
    biases: list[Tensor]
    slope: Tensor
    shift: Tensor

    @classmethod
    def glorot(
        cls,
        hidden: Sequence[int],
        generators: Sequence[np.random.Generator],
        slope: Tensor,
        shift: Tensor,
    ) -> Self:
        """Draw a network by each generator, uniform within sqrt(6 / (inputs + outputs))."""
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        for inputs, outputs in pairwise([slope.shape[1], *hidden, 1]):
            bound = math.sqrt(6.0 / (inputs + outputs))
            drawn = [
                [rng.uniform(-bound, bound, shape) for shape in ((outputs, inputs), (outputs,))]
                for rng in generators
            ]
            for parameters, values in zip((weights, biases), zip(*drawn, strict=True), strict=True):
                stacked = np.ascontiguousarray(np.stack(values), dtype=np.float32)
                parameters.append(torch.from_numpy(stacked).to(slope.device))
        return cls(weights, biases, slope, shift)

    def some(self, which: list[int]) -> Self:
        """Copy the networks at these places; return all of them without a copy."""
        if len(which) == len(self.slope):
            return self
        at = torch.tensor(which, device=self.slope.device)
        weights, biases = ([p[at] for p in of] for of in (self.weights, self.biases))
        return type(self)(weights, biases, self.slope[at], self.shift[at])

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the logits (F, B) of ``x`` (F, B, d), and the input of every layer.

        The last layer's product is in float32: scores of bfloat16 would tie.
        """
        shifted = self.biases[0] + (self.weights[0] @ self.shift[:, :, None])[:, :, 0]
        weights = [self.weights[0] * self.slope[:, None], *self.weights[1:]]
        biases = [shifted, *self.biases[1:]]
        inputs = [x]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            out = product(inputs[-1], weight.to(x.dtype).mT)
            inputs.append(out.add_(bias.to(x.dtype)[:, None]).relu_())
        return (inputs[-1].float() @ weights[-1].mT)[:, :, 0] + biases[-1], inputs

    def gradients(self, x: Tensor, y: Tensor, w: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Return the gradients of sum(w * BCE) / sum(w) by the weights and by the biases; ``x``
        (F, B, d), labels ``y`` and weights ``w`` (F, B)."""
        logits, inputs = self.forward(x)
        delta = (torch.sigmoid(logits) - y).mul_(w).div_(w.sum(dim=1, keepdim=True))[:, :, None]
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        for i in reversed(range(len(self.weights))):
            # The last layer's are float32, like its product.
            weights.insert(0, product(delta.mT, inputs[i].to(delta.dtype)).float())
            biases.insert(0, delta.sum(dim=1, dtype=torch.float32))
            if i > 0:
                back = product(delta, self.weights[i].to(delta.dtype))
                delta = torch.ops.aten.threshold_backward(back.to(x.dtype), inputs[i], 0)
        weights[0].mul_(self.slope[:, None]).add_(biases[0][:, :, None] * self.shift[:, None])
        return weights, biases


class Split:
    """A task's training rows: a part held out for early stopping, and batches of the rest."""

    def __init__(self, task: Task, settings: Mapping[str, Any]) -> None:
        forget = task.forget[task.train]
        self.rng = np.random.default_rng(task.seed)
        self.rows, self.forget = task.train, forget.astype(np.float32)
        self.weights = balanced_weights(forget).astype(np.float32)
        self.fitted, self.held = held_out(
            forget, settings["validation"], self.rng, task.train_groups
        )
        self.size = min(settings["batch_size"], len(self.fitted))

    def epoch(self) -> list[_Places]:
        """Return places among the training rows, in batches, in a new order."""
        order = self.rng.permutation(self.fitted)
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]


class StackBatch:
    """Some rows each of ``which`` networks of a stack, on the device.

    ``rows`` (F, B) of the pool, their ``labels``, ``weights`` (0 fills up) and their ``totals``.
    """

    def __init__(
        self, splits: Sequence[Split], batches: Mapping[int, _Places], device: torch.device
    ) -> None:
        self.which = list(batches)
        shape = (len(batches), max(map(len, batches.values())))
        filled: list[NDArray[Any]] = [
            np.zeros(shape, dtype) for dtype in (np.int64, np.float32, np.float32)
        ]
        for row, (i, places) in enumerate(batches.items()):
            columns: list[NDArray[Any]] = [splits[i].rows, splits[i].forget, splits[i].weights]
            for values, column in zip(filled, columns, strict=True):
                values[row, : len(places)] = column[places]
        # From pageable memory the copy is staged, so the arrays may go when this returns.
        moved = [torch.from_numpy(values).to(device, non_blocking=True) for values in filled]
        self.rows, self.labels, self.weights = moved
        self.totals = [
            float(splits[i].weights[places].sum(dtype=np.float64)) for i, places in batches.items()
        ]


@dataclass
class Stopping:
    """scikit-learn's rule of stopping: an epoch is bad when its held-out loss is not below the best
    so far by more than the tolerance, and more than ``patience`` bad ones in a row are the end."""

    epochs: int = 0
    best_epoch: int = 0
    best_loss: float = math.inf
    bad: int = 0
    best: list[Tensor] = field(default_factory=list)

    def improves(self, loss: float, tolerance: float) -> bool:
        """Count an epoch with this loss; return whether it is the best so far."""
        self.epochs += 1
        self.bad = 0 if loss < self.best_loss - tolerance else self.bad + 1
        if better := loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epochs
        return better


@torch.no_grad()
def train_networks(
    features: PoolFeatures, tasks: Sequence[Task], settings: Mapping[str, Any]
) -> tuple[Stack, list[dict[str, Any]]]:
    """Train a network per task, all together; return them with the weights of their best epochs.

    Beside them come the ``details`` of each. A stratified share of the training rows is held out
    for early stopping. Raises ``UserError`` when a held-out loss was never finite.
    """
    splits = [Split(task, settings) for task in tasks]
    generators = [split.rng for split in splits]
    stack = Stack.glorot(settings["hidden"], generators, *features.affine(tasks))
    adam, stops = adam_of(stack, settings["learning_rate"]), [Stopping() for _ in tasks]
    for _ in range(settings["epochs"]):
        running = [i for i, stop in enumerate(stops) if stop.bad <= settings["patience"]]
        if not running:
            break
        for batch in epoch(splits, running, features.device):
            step(stack, adam, features, batch, settings["alpha"])
        held = StackBatch(splits, {i: splits[i].held for i in running}, features.device)
        losses = held_out_loss(stack, features, held, settings["batch_size"])
        for i, loss in zip(running, losses, strict=True):
            if stops[i].improves(loss, settings["tolerance"]):
                stops[i].best = [p[i].clone() for p in (*stack.weights, *stack.biases)]
    for i, stop in enumerate(stops):
        if not stop.best:
            problem = f"the MLP's held-out loss was never finite in {stop.epochs} epochs"
            raise UserError(problem, do="lower the selector's learning_rate")
        for parameter, best in zip((*stack.weights, *stack.biases), stop.best, strict=True):
            parameter[i] = best
    precision = "bf16" if features.bf16 else "fp32"
    return stack, [
        {"epochs": stop.epochs, "best_epoch": stop.best_epoch, "precision": precision}
        for stop in stops
    ]


def epoch(
    splits: Sequence[Split], running: Sequence[int], device: torch.device
) -> list[StackBatch]:
    """Return the batches of one epoch of the networks ``running``, on the device; the last ones are
    of the networks alone that have as many."""
    drawn = {i: splits[i].epoch() for i in running}
    return [
        StackBatch(splits, {i: parts[n] for i, parts in drawn.items() if n < len(parts)}, device)
        for n in range(max(map(len, drawn.values())))
    ]


def adam_of(stack: Stack, learning_rate: float) -> torch.optim.Adam:
    """Return fused Adam with a group for each network's weights, then one for each one's biases."""
    networks = range(len(stack.slope))
    groups = [
        {"params": [p[i] for p in of]} for of in (stack.weights, stack.biases) for i in networks
    ]
    return torch.optim.Adam(groups, lr=learning_rate, fused=True)


def step(
    stack: Stack, adam: torch.optim.Adam, features: PoolFeatures, batch: StackBatch, alpha: float
) -> None:
    """Take an Adam step of each network on sum(w * BCE) / sum(w) + alpha / (2 sum(w)) * |W|^2.

    That is scikit-learn's L2, which is divided by the weight of the batch and spares biases.
    Networks that have no batch keep their weights, moments and counts of steps.
    """
    x = features.train(batch.rows)
    gradients = stack.some(batch.which).gradients(x, batch.labels, batch.weights)
    adam.zero_grad(set_to_none=True)
    for row, i in enumerate(batch.which):
        network_groups = adam.param_groups[i :: len(stack.slope)]
        network_groups[0]["weight_decay"] = alpha / batch.totals[row]
        for group, values in zip(network_groups, gradients, strict=True):
            for parameter, gradient in zip(group["params"], values, strict=True):
                parameter.grad = gradient[row]
    adam.step()


@torch.no_grad()
def held_out_loss(stack: Stack, features: PoolFeatures, held: StackBatch, size: int) -> list[float]:
    """Return the weighted BCE, without the L2 term, of held-out rows by each of their networks,
    ``size`` rows at a time. Here the host waits for the device: once an epoch."""
    networks = stack.some(held.which)
    total = torch.zeros(len(held.which), dtype=torch.float64, device=features.device)
    for start in range(0, held.rows.shape[1], size):
        rows, labels, weights = (
            values[:, start : start + size] for values in (held.rows, held.labels, held.weights)
        )
        logits, _ = networks.forward(features.train(rows))
        loss = binary_cross_entropy_with_logits(logits, labels, weights, reduction="none")
        total += loss.double().sum(dim=1)
    return [loss / weight for loss, weight in zip(total.tolist(), held.totals, strict=True)]


@torch.no_grad()
def network_logits(
    stack: Stack, i: int, features: PoolFeatures, rows: _Places
) -> NDArray[np.float64]:
    """Return raw logits of ``rows`` by network ``i``, in float32 whatever it was trained in."""
    network = stack.some([i])
    index = torch.from_numpy(rows).to(features.device)[None]
    parts = [
        network.forward(features.exact(index[:, start : start + PREDICT]))[0][0]
        for start in range(0, len(rows), PREDICT)
    ]
    logits: NDArray[np.float64] = torch.cat(parts).double().cpu().numpy()
    return logits


def use_bf16(precision: str, device: torch.device) -> bool:
    """Say whether to multiply in bfloat16: ``auto`` does where the hardware gains by it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    cpu = torch.cpu.get_capabilities()
    return bool(cpu.get("avx512_bf16") or cpu.get("amx_bf16"))


def product(a: Tensor, b: Tensor) -> Tensor:
    """Multiply ``a`` (F, n, k) and ``b`` (F, k, m) to (F, n, m), by the fastest exact kernel.

    For float32 on a CPU torch takes MKL's, which on AMD is slower by up to half than oneDNN's.
    """
    onednn = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if a.device.type != "cpu" or a.dtype != torch.float32 or onednn is None:
        return torch.bmm(a, b)
    return torch.stack([onednn(x, y.T, None, "none", [], "") for x, y in zip(a, b, strict=True)])
