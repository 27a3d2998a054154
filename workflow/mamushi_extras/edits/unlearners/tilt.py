"""Tilt, without training of the model: its logits, times what a classifier says of each next token.

Temper-Then-Tilt (arXiv 2602.10217): p(x | h)^(1 / T) * P(S | h, x)^strength, normalized, where
the classifier reads the start model's last hidden state h and the token x that follows. Here its
log-odds are bilinear, (A h) . B_x + c_x of ``rank``, fitted by the logistic loss to the tokens of
S, the texts that remain, against those of the texts to forget. Slope and offset of the log-odds are
fitted again (Platt) to texts that a classifier has not seen, so that they are chances, and strength
1 is Bayes' rule. How far it may go, see ``editing.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Count, NotNegative, Positive, Section, key
from mamushi_extras.edits import lay_over

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi_extras.edits.editing import Edited, Places
    from mamushi_extras.edits.head import HeadEdit

__all__ = ["Settings", "edit", "lay_over"]
TRAINS = False
PLACES = 2**17
"""Most places of a domain whose states are read."""
BATCH = 64


class Settings(Section):
    """Settings of this unlearner."""

    strength: NotNegative = key(1.0, "Power of the chance: 1 is Bayes' rule; bounds may lower it.")
    temperature: Positive = key(1.0, "T, that divides the start's logits.")
    harm: NotNegative = key(0.005, "Most nats that the NLL of remaining training texts may rise.")
    rank: Count = key(16, "Of the classifier.")
    epochs: Count = key(1, "Passes of the classifier over the tokens.")
    learning_rate: Positive = key(3.0e-3, "Adam's, of the classifier.")


def edit(
    model: PreTrainedModel,
    selected: TokenSet,
    retain: TokenSet,
    settings: Mapping[str, Any],
    **options: Any,
) -> Edited:
    """Return the edit of the logits that unlearns ``selected`` texts, and what it does."""
    from mamushi_extras.edits.editing import FOLDS, make_edit

    how = len(model.get_output_embeddings().weight), settings, options["seed"]

    def fit(_: Sequence[TokenSet], places: Sequence[Places]) -> list[HeadEdit]:
        fitted = [fit_tilt(places, *how, fold) for fold in (*range(FOLDS), None)]
        return calibrate(fitted, places)

    return make_edit(model, selected, retain, settings, fit, PLACES, **options)


def calibrate(fitted: Sequence[HeadEdit], of_domains: Sequence[Places]) -> list[HeadEdit]:
    """Return classifiers, one without each fold and one of all, with the slope, at least 0, and the
    offset of their log-odds at which the logistic loss of places without whose fold each was fitted
    is least."""
    import torch
    from sklearn.linear_model import LogisticRegression

    from mamushi_extras.edits.head import HeadEdit

    tensors = [dict(edit.named_buffers()) for edit in fitted]
    log_odds, labels, weights = [], [], []
    for label, places in enumerate(reversed(of_domains)):
        odds = torch.zeros(len(places.tokens), device=places.tokens.device)
        for fold, of in enumerate(tensors[:-1]):
            if "A" in of:
                unseen = places.take(rows := (places.folds == fold).nonzero()[:, 0])
                inner = unseen.hidden.float() @ of["A"].t()
                odds[rows] = (inner * of["B"][unseen.tokens]).sum(1) + of["c"][unseen.tokens]
        log_odds.append(odds.double().cpu())
        labels += [label] * len(odds)
        weights += [1 / places.share] * len(odds)
    line = LogisticRegression(C=1e6).fit(torch.cat(log_odds).numpy()[:, None], labels, weights)
    slope, offset = max(0.0, float(line.coef_[0, 0])), float(line.intercept_[0])
    for of in tensors:
        of |= {"B": slope * of["B"], "c": slope * of["c"] + offset} if "A" in of else {}
    return [HeadEdit(of) for of in tensors]


def fit_tilt(
    of_domains: Sequence[Places],
    vocabulary: int,
    settings: Mapping[str, Any],
    seed: int,
    fold: int | None,
) -> HeadEdit:
    """Return the classifier of the places, of remaining texts and of those to forget, that are not
    in ``fold``, of all for None, by Adam on the mean logistic loss in which each domain counts as
    it would with all of its places.

    States are standardized; A and c of the result are those of states as they are. The same seed
    gives the same bits on the same machine. Without a place of both domains it says nothing.
    """
    import math

    import torch
    from torch.nn import functional

    from mamushi_extras.edits.head import HeadEdit

    domains = [
        places if fold is None else places.take((places.folds != fold).nonzero()[:, 0])
        for places in of_domains
    ]
    sizes = [len(places.tokens) for places in domains]
    if not all(sizes):
        return HeadEdit({})
    states = torch.cat([places.hidden for places in domains])
    tokens = torch.cat([places.tokens for places in domains])
    device, width, rank = states.device, states.shape[1], int(settings["rank"])
    in_all = [size / places.share for size, places in zip(sizes, domains, strict=True)]
    labels = torch.tensor([1.0, 0.0]).repeat_interleave(torch.tensor(sizes)).to(device)
    counted = [n / sum(in_all) * sum(sizes) / size for n, size in zip(in_all, sizes, strict=True)]
    weights = torch.tensor(counted).repeat_interleave(torch.tensor(sizes)).to(device)
    mean, scale = _moments(states)
    drawn = torch.Generator().manual_seed(seed)
    down = (torch.randn(rank, width, generator=drawn) / width**0.5).to(device).requires_grad_()
    up = torch.zeros(vocabulary, rank, device=device, requires_grad=True)
    # At first it knows the sizes of the domains alone.
    first = math.log(in_all[0] / in_all[1])
    offset = torch.full((vocabulary,), first, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([down, up, offset], lr=float(settings["learning_rate"]))
    for _ in range(int(settings["epochs"])):
        for rows in torch.randperm(len(tokens), generator=drawn).to(device).split(BATCH):
            inner = ((states[rows].float() - mean) / scale) @ down.t()
            odds = (inner * up[tokens[rows]]).sum(1) + offset[tokens[rows]]
            loss = functional.binary_cross_entropy_with_logits(odds, labels[rows], weights[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    down, up, offset = (parameter.detach() for parameter in (down / scale, up, offset))
    return HeadEdit({"A": down, "B": up, "c": offset - up @ (down @ mean)})


def _moments(states: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation (width,) of states (n, width), of a few at a time in
    fp64."""
    import torch

    total = torch.zeros(2, states.shape[1], dtype=torch.float64, device=states.device)
    for values in map(torch.Tensor.double, states.split(BATCH)):
        total += torch.stack([values.sum(0), values.square().sum(0)])
    mean, square = total / len(states)
    deviation = (square - mean.square()).clamp(min=0).sqrt()
    return mean.float(), deviation.clamp(min=1e-6).float()
