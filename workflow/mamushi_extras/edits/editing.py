"""What unlearners without training have in common: the start's states, and how strong an edit is.

An edit of the logits (see ``head.py``) is fitted to counts or states of the start model, and its
strength and temperature are chosen on *training* texts: the mean NLL of retain texts may rise by so
much and no more. It is cross-fitted: each text is read with the edit that was fitted without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.batches import model_batches
from mamushi.lm.head import logits_of, soft_cap
from mamushi.lm.loss import EDITED_ROWS, nll_in_place, predicting_states
from mamushi.lm.parameters import body
from mamushi.lm.tokens import TokenSet, subset
from mamushi.unlearning.objective import require_predicted
from mamushi_extras.edits.head import PREFIX, HeadEdit, logit_scale

FOLDS = 4
CHOOSING = 2**15
"""Most predicted tokens of retain texts on which strength and temperature are chosen."""


@dataclass(frozen=True)
class Edited:
    """An edit, and what it costs."""

    edit: HeadEdit
    harm: float
    """Rise of the mean NLL of retain training texts above the start's, in nats, cross-fitted."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Return what a file of the edit holds, and nothing of the model."""
        return self.edit.cpu().state_dict(prefix=PREFIX)

    @property
    def counts(self) -> dict[str, float]:
        """Return what the model's card says of it."""
        pair = {name: getattr(self.edit, name) for name in ("strength", "temperature")}
        return {**{name: round(float(x), 6) for name, x in pair.items()}, "harm": self.harm}


class Places(NamedTuple):
    """Places of one domain's texts from which a token is predicted."""

    hidden: Tensor
    """The start model's last states there (n, width), on its device."""
    tokens: Tensor
    """The tokens that follow, int64 (n,)."""
    folds: Tensor
    """The fold that each one's text is in, int64 (n,)."""
    share: float
    """Which part of the domain's places these are."""

    def at(self, rows: Tensor) -> Places:
        """Return some of the places, as the same share of the domain."""
        return Places(self.hidden[rows], self.tokens[rows], self.folds[rows], self.share)


def unedited(
    model: PreTrainedModel, forget: TokenSet, retain: TokenSet, accelerator: Accelerator
) -> Edited | None:
    """Return the edit that leaves a model as it is where there is no text to unlearn. Raises
    ``UserError`` for a model whose logits cannot be edited, and without a token to predict."""
    with accelerator.autocast():
        require_editable(model)
    if not len(forget):
        return Edited(HeadEdit({}), 0.0)
    require_predicted(forget, retain)
    return None


def folds_of(texts: TokenSet, seed: int) -> NDArray[np.int64]:
    """Return the fold (texts,) of each text, ``FOLDS`` of about one size, by the seed alone."""
    return np.random.default_rng([seed, 3]).permutation(len(texts)) % FOLDS


def fold_counts(texts: TokenSet, seed: int, vocabulary: int) -> NDArray[np.float64]:
    """Return how often each token is predicted in the texts of each fold (FOLDS, vocabulary)."""
    predicted = texts.predicted
    cell = np.repeat(folds_of(texts, seed), texts.lengths)[predicted] * vocabulary
    counts = np.bincount(cell + texts.tokens[predicted], minlength=FOLDS * vocabulary)
    return counts.reshape(FOLDS, vocabulary).astype(np.float64)


@torch.no_grad()
def require_editable(model: PreTrainedModel) -> None:
    """Raise ``UserError`` for a model that is cut over GPUs, and for one whose logits are not those
    of a linear head, a factor and a soft-cap alone."""
    if isinstance(next(model.parameters()), DTensor):
        raise UserError("an edit of the logits needs execution.gpus_per_job: 1")
    head = model.get_output_embeddings()
    is_linear = type(head) is nn.Linear
    if is_linear:
        ids = torch.zeros(1, 2, dtype=torch.int64, device=head.weight.device)
        logits, states = model(ids).logits, body(model)(ids).last_hidden_state
        expected = logits_of(head, soft_cap(model), states, scale=logit_scale(model))
        is_linear = torch.allclose(logits.float(), expected.float(), rtol=1e-2, atol=1e-2)
    if not is_linear:
        problem = "makes its logits of more than a linear head, a factor and a soft-cap"
        raise UserError(problem, where=type(model).__name__)


@torch.no_grad()
def read_places(
    model: PreTrainedModel,
    texts: TokenSet,
    most: int,
    *,
    seed: int,
    accelerator: Accelerator,
    batch_tokens: int,
) -> Places:
    """Read the states of texts with together at most ``most`` predicted tokens, drawn by the seed;
    of one text at least. The order is that of the texts, whatever batches they are read in."""
    order = np.random.default_rng([seed, 4]).permutation(np.flatnonzero(texts.counted > 0))
    size = np.cumsum(texts.counted[order])
    rows = np.sort(order[: max(1, int((size <= most).sum()))])
    chosen = subset(texts, rows)
    lengths = chosen.counted
    of_rows: list[tuple[Tensor, ...]] = [()] * len(rows)
    for batch_rows, batch, _ in model_batches(model, chosen, batch_tokens, accelerator, "states"):
        with accelerator.autocast():
            hidden = predicting_states(model, batch)
        both = (values.split(lengths[batch_rows].tolist()) for values in (hidden, batch.targets))
        for row, of_row in zip(batch_rows, zip(*both, strict=True), strict=True):
            of_rows[row] = of_row
    hidden, tokens = (torch.cat(values) for values in zip(*of_rows, strict=True))
    folds = torch.from_numpy(np.repeat(folds_of(texts, seed)[rows], lengths)).to(hidden.device)
    return Places(hidden, tokens, folds, len(tokens) / float(size[-1]))


@torch.no_grad()
def edit_harms(
    model: PreTrainedModel,
    retain: Places,
    edits: Sequence[HeadEdit],
    grid: Sequence[tuple[float, float]],
    accelerator: Accelerator,
) -> NDArray[np.float64]:
    """Return for each pair of strength and temperature how far the mean NLL of the places rises
    above the start's, in nats, when each is read with the edit that was fitted without its fold,
    ``edits`` (FOLDS,)."""
    head, cap, scale = model.get_output_embeddings(), soft_cap(model), logit_scale(model)
    total = np.zeros(len(grid))
    for fold, edit in enumerate(edits):
        for rows in (retain.folds == fold).nonzero()[:, 0].split(EDITED_ROWS):
            hidden, tokens = retain.hidden[rows], retain.tokens[rows]
            with accelerator.autocast():
                logits = logits_of(head, cap, hidden, scale=scale).float()
                term = edit.logit_term(hidden, slice(None))
            start = functional.cross_entropy(logits, tokens, reduction="sum")
            edited, rises = torch.empty_like(logits), []
            for strength, temperature in grid:
                torch.div(logits, temperature, out=edited).add_(term, alpha=strength)
                nll = nll_in_place(edited, tokens[:, None], None, edited.dtype, False)
                rises.append(nll.sum() - start)
            total += torch.stack(rises).double().cpu().numpy()
    return total / len(retain.tokens)


def chosen_pair(
    grid: Sequence[tuple[float, float]], rises: NDArray[np.float64], settings: Mapping[str, Any]
) -> tuple[float, float, float]:
    """Return strength, temperature and harm: of the pairs that harm by at most ``harm``, one of the
    largest strength, and among these the one that harms least. A ``strength`` that was set harms as
    it may. Without any pair the model stays as it is: 0, 1, 0."""
    most = np.inf if settings["strength"] is not None else float(settings["harm"])
    allowed = [(s, -rise, t) for (s, t), rise in zip(grid, rises, strict=True) if rise <= most]
    strength, gain, temperature = max(allowed, default=(0.0, 0.0, 1.0))
    return strength, temperature, -float(gain)


def choose_edit(
    model: PreTrainedModel,
    retain: Places,
    fit: Callable[[int | None], HeadEdit],
    settings: Mapping[str, Any],
    grids: Sequence[Sequence[float]],
    accelerator: Accelerator,
) -> Edited:
    """Return the edit that ``fit`` makes of all texts, in the strength and temperature of ``grids``
    that those allow which it makes without a fold."""
    fitted = [fit(fold) for fold in (*range(FOLDS), None)]
    values = settings["strength"], settings.get("temperature", 1.0)
    strengths, temperatures = (
        grid if value is None else [float(value)] for value, grid in zip(values, grids, strict=True)
    )
    grid = [*product(strengths, temperatures)]
    rises = edit_harms(model, retain, fitted[:-1], grid, accelerator)
    strength, temperature, harm = chosen_pair(grid, rises, settings)
    tensors = {name: value for name, value in fitted[-1].named_buffers() if value.dim()}
    return Edited(HeadEdit(tensors, strength, temperature), harm)
