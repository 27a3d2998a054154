"""The paper's MLP in torch: binary cross-entropy on standardised embeddings, its logit the score.

It follows scikit-learn's ``MLPClassifier`` (initialisation, Adam, what an L2 of alpha means, when
to stop) but for balanced class weights and early stopping on the held-out loss. A GPU trains one
network after the other, a CPU one on each core.

All networks share one copy of the embeddings, standardised by common statistics (mu, sigma). A fold
standardises by statistics (m, s) of its own. That difference is affine, (x - m) / s = a * x' + c
with a = sigma / s and c = (mu - m) / s, so it goes into the first layer: (W a) x' + (b + W c). The
weights that are trained and penalised are W and b, as without it.

Gradients are written out: autograd rounds those of biases to bfloat16 and adds up in another order.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from mamushi.errors import UserError
from mamushi.running.machine import sees_gpu, side_by_side
from mamushi.selection.arrays import Doubles, Rows
from mamushi.selection.crossfit import Fit, Task
from mamushi.selection.folds import balanced_weights, draw_held_out

PREDICT = 4096  # Rows of a forward pass at a time when scoring.


def estimate_mlp(tasks: Sequence[Task], settings: Mapping[str, Any]) -> Iterator[Fit]:
    """Yield the held-out logits of each task by a network of its own, on the GPU if there is one:
    tasks are folds of one pool, or several seeds of them, ``settings`` those of ``mamushi``."""
    device = torch.device("cuda" if sees_gpu() else "cpu")
    # On a GPU, sums of bfloat16 products are float32 throughout, as they are on a CPU.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    features = PoolFeatures(tasks, device, use_bf16(settings["precision"], device))
    fit = partial(train_network, features, settings=settings)
    yield from map(fit, tasks) if device.type == "cuda" else side_by_side(fit, tasks)


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

    def training_rows(self, rows: Tensor) -> Tensor:
        """Return the features (B, d) of rows (B,), in bfloat16 or float32."""
        return self.exact(rows).to(torch.bfloat16 if self.bf16 else torch.float32)

    def exact(self, rows: Tensor) -> Tensor:
        """Return the features (B, d) of rows (B,), in float32."""
        return self._half[rows].float().sub_(self._mean).div_(self._scale)

    def affine(self, task: Task) -> tuple[Tensor, Tensor]:
        """Return a task's a and c (d,): its features are a * x + c of the common ones x."""
        a, c = self.scale / task.scale, (self.mean - task.mean) / task.scale
        return self._moved(a), self._moved(c)

    def _moved(self, values: Doubles) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device)


@dataclass
class Network:
    """Linear layers with ReLU between them, and one output: ``weights`` (out, in) and ``biases``
    (out,) per layer; ``slope`` and ``shift`` (d,) are a and c of the module's docstring."""

    weights: list[Tensor]
    biases: list[Tensor]
    slope: Tensor
    shift: Tensor

    @classmethod
    def glorot(
        cls, hidden: Sequence[int], rng: np.random.Generator, slope: Tensor, shift: Tensor
    ) -> Self:
        """Draw a network, uniform within sqrt(6 / (inputs + outputs))."""
        drawn: tuple[list[Tensor], list[Tensor]] = ([], [])
        for inputs, outputs in pairwise([len(slope), *hidden, 1]):
            bound = math.sqrt(6.0 / (inputs + outputs))
            for parameters, shape in zip(drawn, ((outputs, inputs), (outputs,)), strict=True):
                values = np.ascontiguousarray(rng.uniform(-bound, bound, shape), dtype=np.float32)
                parameters.append(torch.from_numpy(values).to(slope.device))
        return cls(*drawn, slope, shift)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the logits (B,) of ``x`` (B, d), and the input of every layer.

        The last layer's product is in float32: scores of bfloat16 would tie.
        """
        shifted = self.biases[0] + multiply(self.weights[0], self.shift[:, None])[:, 0]
        weights = [self.weights[0] * self.slope, *self.weights[1:]]
        biases, inputs = [shifted, *self.biases[1:]], [x]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            out = product(inputs[-1], weight.to(x.dtype).mT)
            inputs.append(out.add_(bias.to(x.dtype)).relu_())
        return multiply(inputs[-1].float(), weights[-1].mT)[:, 0] + biases[-1], inputs

    def set_gradients(self, x: Tensor, y: Tensor, w: Tensor) -> None:
        """Give the parameters their gradients of sum(w * BCE) / sum(w); ``x`` (B, d), labels ``y``
        and weights ``w`` (B,)."""
        logits, inputs = self.forward(x)
        delta = (torch.sigmoid(logits) - y).mul_(w).div_(w.sum())[:, None]
        for i in reversed(range(len(self.weights))):
            # The last layer's are float32, like its product.
            weight = product(delta.mT, inputs[i].to(delta.dtype)).float()
            bias = delta.sum(dim=0, dtype=torch.float32)
            if i > 0:
                back = product(delta, self.weights[i].to(delta.dtype))
                delta = torch.ops.aten.threshold_backward(back.to(x.dtype), inputs[i], 0)
            else:
                weight.mul_(self.slope).add_(bias[:, None] * self.shift)
            self.weights[i].grad, self.biases[i].grad = weight, bias


Batch = tuple[Tensor, Tensor, Tensor, float]
"""Rows (B,) of the pool with their labels and weights, on the device, and the sum of these."""


class Split:
    """A task's training rows: a part held out for early stopping, and batches of the rest."""

    def __init__(self, task: Task, settings: Mapping[str, Any], device: torch.device) -> None:
        forget, share = task.forget[task.train], settings["validation"]
        self.rng = np.random.default_rng(task.seed)
        self.weights = balanced_weights(forget).astype(np.float32)
        columns = (task.train, forget.astype(np.float32), self.weights)
        self.columns = [torch.from_numpy(column).to(device) for column in columns]
        self.fitted, self.held_out = draw_held_out(forget, share, self.rng, task.groups_of_train)
        self.size = min(settings["batch_size"], len(self.fitted))

    def epoch(self) -> list[Rows]:
        """Return places among the training rows, in batches, in a new order."""
        order = self.rng.permutation(self.fitted)
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]

    def batch(self, places: Rows) -> Batch:
        """Return the training rows at some places."""
        at = torch.from_numpy(places).to(self.columns[0].device)
        rows, labels, weights = (column[at] for column in self.columns)
        return rows, labels, weights, float(self.weights[places].sum(dtype=np.float64))


@torch.no_grad()
def train_network(features: PoolFeatures, task: Task, settings: Mapping[str, Any]) -> Fit:
    """Train a network; return the logits of the rows ``held_out`` by the weights of its best epoch,
    in float32 whatever it was trained in.

    A stratified share of the training rows is held out for early stopping by scikit-learn's rule:
    an epoch is bad when its held-out loss is not below the best so far by more than the tolerance,
    and more than ``patience`` bad ones in a row are the end. Raises ``UserError`` when a held-out
    loss was never finite.
    """
    split = Split(task, settings, features.device)
    network = Network.glorot(settings["hidden"], split.rng, *features.affine(task))
    groups = [{"params": parameters} for parameters in (network.weights, network.biases)]
    adam = torch.optim.Adam(groups, lr=settings["learning_rate"], fused=True)
    stopping = split.batch(split.held_out)
    best, best_loss, best_epoch, epoch, bad = None, math.inf, 0, 0, 0
    while epoch < settings["epochs"] and bad <= settings["patience"]:
        epoch += 1
        for places in split.epoch():
            rows, labels, weights, total = split.batch(places)
            network.set_gradients(features.training_rows(rows), labels, weights)
            # On sum(w * BCE) / sum(w) + alpha / (2 sum(w)) * |W|^2, scikit-learn's penalty.
            adam.param_groups[0]["weight_decay"] = settings["alpha"] / total
            adam.step()
        loss = held_out_loss(network, features, stopping, settings["batch_size"])
        bad = 0 if loss < best_loss - settings["tolerance"] else bad + 1
        if loss < best_loss:
            best_loss, best_epoch = loss, epoch
            best = [[p.clone() for p in of] for of in (network.weights, network.biases)]
    if best is None:
        problem = f"the MLP's held-out loss was never finite in {epoch} epochs"
        raise UserError(problem, do="lower the selector's learning_rate")
    network.weights, network.biases = best
    blocks = torch.from_numpy(task.held_out).to(features.device).split(PREDICT)
    logits = torch.cat([network.forward(features.exact(block))[0] for block in blocks])
    precision = "bf16" if features.bf16 else "fp32"
    details = {"epochs": epoch, "best_epoch": best_epoch, "precision": precision}
    return np.asarray(logits.double().cpu().numpy()), details


def held_out_loss(network: Network, features: PoolFeatures, batch: Batch, size: int) -> float:
    """Return the weighted BCE, without the L2 term, of held-out rows, ``size`` at a time. Here the
    host waits for the device: once an epoch."""
    *columns, of_all = batch
    total = torch.zeros((), dtype=torch.float64, device=features.device)
    for rows, labels, weights in zip(*(column.split(size) for column in columns), strict=True):
        logits, _ = network.forward(features.training_rows(rows))
        loss = binary_cross_entropy_with_logits(logits, labels, weights, reduction="none")
        total += loss.double().sum()
    return float(total) / of_all


def use_bf16(precision: str, device: torch.device) -> bool:
    """Say whether to multiply in bfloat16: ``auto`` does where the hardware gains by it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    cpu = torch.cpu.get_capabilities()
    return bool(cpu.get("avx512_bf16") or cpu.get("amx_bf16"))


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a`` (n, k) @ ``b`` (k, m), by the same kernel as a batch of such products."""
    return torch.bmm(a[None], b[None])[0]


def product(a: Tensor, b: Tensor) -> Tensor:
    """Multiply ``a`` (n, k) and ``b`` (k, m), by the fastest exact kernel: of float32 on a CPU
    oneDNN's, since MKL's is slower on AMD by up to half."""
    onednn = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if a.device.type != "cpu" or a.dtype != torch.float32 or onednn is None:
        return multiply(a, b)
    return onednn(a, b.T, None, "none", [], "")
