"""Tilt, without training of the model: its logits, times what a classifier says of each next token.

Temper-Then-Tilt (arXiv 2602.10217): p(x | h)^(1 / T) * P(retain | h, x)^strength, normalized, where
the classifier reads the start model's last hidden state h and the token x that follows. Here its
log-odds are bilinear, (A h) . B_x + c_x of ``rank``, fitted by the logistic loss to the tokens of
retain texts against those of the texts to forget. Strength and temperature T are the largest
strength, and the temperature that goes best with it, at which the mean NLL of retain training texts
rises by at most ``harm``; each of them is read with a classifier of other texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Count, NotNegative, Positive, Section, key

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi_extras.edits.editing import Edited, Places
    from mamushi_extras.edits.head import HeadEdit

TRAINS = False
STRENGTHS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1.0)
TEMPERATURES = (1.0, 1.05, 1.1)
PLACES = 2**17
"""Most places of a domain whose states are read."""
BATCH = 64


class Settings(Section):
    """Settings of this unlearner."""

    strength: NotNegative | None = key(None, "Power of the classifier; null chooses it by `harm`.")
    temperature: Positive | None = key(None, "T, that divides the start's logits; null as above.")
    harm: NotNegative = key(0.005, "Most nats that the NLL of retain training texts may rise.")
    rank: Count = key(16, "Of the classifier.")
    epochs: Count = key(2, "Passes of the classifier over the tokens.")
    learning_rate: Positive = key(1.0e-2, "Adam's, of the classifier.")


def edit(
    model: PreTrainedModel,
    forget: TokenSet,
    retain: TokenSet,
    settings: Mapping[str, Any],
    **options: Any,
) -> Edited:
    """Return the edit of the logits that unlearns ``forget``, and its harm."""
    from functools import partial

    import torch

    from mamushi_extras.edits.editing import CHOOSING, choose_edit, read_places, unedited

    if edit := unedited(model, forget, retain, options["accelerator"]):
        return edit
    seed, grids = options["seed"], (STRENGTHS, TEMPERATURES)
    places = [read_places(model, texts, PLACES, **options) for texts in (retain, forget)]
    vocabulary = len(model.get_output_embeddings().weight)
    fit = partial(fit_tilt, places, vocabulary, settings, seed)
    of_retain = places[0]
    drawn = torch.randperm(len(of_retain.tokens), generator=torch.Generator().manual_seed(seed))
    few = of_retain.at(drawn[:CHOOSING].sort()[0].to(of_retain.tokens.device))
    return choose_edit(model, few, fit, settings, grids, options["accelerator"])


def lay_over(path: Path, model: PreTrainedModel) -> None:
    """Let a model give the logits that the edit in a file makes of its own."""
    from mamushi_extras.edits import head

    head.lay_over(model, head.read_edit(path))


def fit_tilt(
    of_domains: Sequence[Places],
    vocabulary: int,
    settings: Mapping[str, Any],
    seed: int,
    fold: int | None,
) -> HeadEdit:
    """Return the classifier of the places, of retain and of forget texts, that are not in ``fold``,
    of all for None, by Adam on the mean logistic loss in which each domain counts as it would with
    all of its places.

    States are standardized; A and c of the result are those of states as they are. The same seed
    gives the same bits on the same machine. Without a place of both domains it says nothing.
    """
    import math

    import torch
    from torch.nn import functional

    from mamushi_extras.edits.head import HeadEdit

    domains = [
        places if fold is None else places.at((places.folds != fold).nonzero()[:, 0])
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
