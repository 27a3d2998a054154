"""The paper's MLP in torch: binary cross-entropy on standardised embeddings, its logit the score.

It follows scikit-learn's ``MLPClassifier`` (initialisation, Adam, what an L2 of alpha means, when
to stop) except where the paper needs what that cannot do: balanced class weights, and early
stopping on the held-out loss instead of the accuracy.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from mamushi.errors import UserError
from mamushi.selection.crossfit import Task
from mamushi.selection.folds import balanced_weights, held_out

Rows = Callable[[NDArray[np.int64]], Tensor]
"""Gives standardised embeddings (len(rows), d) in float32 on the device."""


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


def estimate_mlp(task: Task, recipe: Recipe) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Held-out logits of one fold by one network; on the GPU where there is one."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = standardised_rows(task, device)
    network, details = train(rows, task.train, task.forget, recipe, task.seed, device)
    logits = predict(network, rows, task.held, recipe.batch_size)
    return logits, {**details, "device": device.type}


def train(
    rows: Rows,
    train: NDArray[np.int64],
    forget: NDArray[np.bool_],
    recipe: Recipe,
    seed: int,
    device: torch.device,
) -> tuple[nn.Sequential, dict[str, Any]]:
    """Fit one network on the rows ``train``; the same seed gives the same network.

    A stratified share of ``train`` is held out. An epoch is bad when its held-out loss is not below
    the best so far by more than the tolerance; after more than ``patience`` bad epochs in a row
    training stops, and the best weights are restored: scikit-learn's rule, on the weighted loss.
    """
    rng = np.random.default_rng(seed)
    fitted, held = held_out(forget[train], recipe.validation, rng)
    labels = torch.tensor(forget[train], dtype=torch.float32, device=device)
    weights = torch.tensor(balanced_weights(forget[train]), dtype=torch.float32, device=device)
    bf16 = use_bf16(recipe.precision, device)
    network = glorot_network([rows(train[:1]).shape[1], *recipe.hidden, 1], rng).to(device)
    adam = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate, fused=True)
    size = min(recipe.batch_size, len(fitted))
    best, best_loss, best_epoch, bad, epoch = None, math.inf, 0, 0, 0
    for epoch in range(1, recipe.epochs + 1):
        order = rng.permutation(fitted)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            x, y, w = rows(train[batch]), labels[batch], weights[batch]
            step(network, adam, x, y, w, recipe.alpha, bf16)
        loss = held_out_loss(network, rows, train, held, labels, weights, size, bf16)
        bad = 0 if loss < best_loss - recipe.tolerance else bad + 1
        if loss < best_loss:
            best, best_loss, best_epoch = copy.deepcopy(network.state_dict()), loss, epoch
        if bad > recipe.patience:
            break
    if best is None:
        raise UserError(
            f"the MLP's held-out loss was never finite in {epoch} epochs",
            do="lower the selector's learning_rate",
        )
    network.load_state_dict(best)
    return network, {
        "epochs": epoch,
        "best_epoch": best_epoch,
        "held_out_loss": best_loss,
        "precision": "bf16" if bf16 else "fp32",
    }


def step(
    network: nn.Sequential,
    adam: torch.optim.Optimizer,
    x: Tensor,
    y: Tensor,
    w: Tensor,
    alpha: float,
    bf16: bool = False,
) -> None:
    """One Adam step on sum(w * BCE) / sum(w) + alpha / (2 sum(w)) * |W|^2 over the batch."""
    adam.zero_grad()
    gradients(network, x, y, w, alpha, bf16)
    adam.step()


def gradients(
    network: nn.Sequential, x: Tensor, y: Tensor, w: Tensor, alpha: float, bf16: bool = False
) -> None:
    """Add the gradient of the batch's loss to ``.grad``: scikit-learn's, term by term.

    The L2 term is alpha * W / sum(w): divided by the weight of the batch, and on weights alone,
    never on biases.
    """
    torch.autograd.backward(weighted_bce(forward(network, x, bf16), y, w))
    share = alpha / float(w.sum())
    for layer in network:
        if isinstance(layer, nn.Linear) and layer.weight.grad is not None:
            layer.weight.grad.add_(layer.weight.detach(), alpha=share)


def forward(network: nn.Sequential, x: Tensor, bf16: bool = False) -> Tensor:
    """Logits (n,). With ``bf16`` the hidden layers multiply in bfloat16, from float32 weights.

    The last layer stays in float32: a bfloat16 logit has 8 significant bits, so scores would tie.
    """
    with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=bf16):
        x = network[:-1](x)
    logits: Tensor = network[-1](x.float())
    return logits.squeeze(1)


def weighted_bce(logits: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """sum(w * BCE) / sum(w)."""
    return binary_cross_entropy_with_logits(logits, y, w, reduction="sum") / w.sum()


@torch.no_grad()
def held_out_loss(
    network: nn.Sequential,
    rows: Rows,
    train: NDArray[np.int64],
    held: NDArray[np.int64],
    labels: Tensor,
    weights: Tensor,
    size: int,
    bf16: bool,
) -> float:
    """Weighted BCE of the rows ``train[held]``, without the L2 term."""
    total = 0.0
    for start in range(0, len(held), size):
        part = held[start : start + size]
        w = weights[part]
        loss = weighted_bce(forward(network, rows(train[part]), bf16), labels[part], w)
        total += float(loss * w.sum())
    return total / float(weights[held].sum())


@torch.no_grad()
def predict(
    network: nn.Sequential, rows: Rows, positions: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """Raw logits of ``positions``, in float32 whatever the precision of the training."""
    parts = [
        forward(network, rows(positions[start : start + size])).double().cpu().numpy()
        for start in range(0, len(positions), size)
    ]
    return np.concatenate(parts)


def glorot_network(widths: Sequence[int], rng: np.random.Generator) -> nn.Sequential:
    """Linear layers of these widths with ReLU between them.

    Weights and biases are uniform within sqrt(6 / (inputs + outputs)), as scikit-learn draws them.
    """
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        bound = math.sqrt(6.0 / (inputs + outputs))
        layer = nn.Linear(inputs, outputs)
        for parameter in (layer.weight, layer.bias):
            drawn = rng.uniform(-bound, bound, parameter.shape).astype(np.float32)
            parameter.data = torch.from_numpy(drawn)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def standardised_rows(task: Task, device: torch.device) -> Rows:
    """Rows of a fold on demand, so that no second copy of the embeddings is ever in memory."""
    with warnings.catch_warnings():
        # The array is read-only, and nothing here writes to it.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        embeddings = torch.from_numpy(task.embeddings).to(device)
    mean = torch.tensor(task.mean, dtype=torch.float32, device=device)
    scale = torch.tensor(task.scale, dtype=torch.float32, device=device)

    def rows(positions: NDArray[np.int64]) -> Tensor:
        index = torch.from_numpy(positions).to(device)
        return embeddings[index].float().sub_(mean).div_(scale)

    return rows


def use_bf16(precision: str, device: torch.device) -> bool:
    """Whether to multiply in bfloat16: ``auto`` does where the hardware has it and gains by it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    cpu = torch.cpu.get_capabilities()
    return bool(cpu.get("avx512_bf16") or cpu.get("amx_bf16"))
