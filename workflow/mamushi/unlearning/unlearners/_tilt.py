"""The classifier of ``tilt``: retain against forget for the next token, on frozen states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from mamushi.lm.head import HeadEdit
from mamushi.unlearning.editing import CHOOSING, Places

PLACES = 2**17
"""Most places of a domain whose states are read."""
BATCH = 64


def sampled(places: Places, seed: int) -> Places:
    """Return ``CHOOSING`` of the places, drawn by the seed, or all where there are fewer."""
    drawn = torch.randperm(len(places.tokens), generator=torch.Generator().manual_seed(seed))
    return places.at(drawn[:CHOOSING].sort()[0].to(places.tokens.device))


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
    """Return mean and standard deviation (width,) of states (n, width), part by part in fp32."""
    total = torch.zeros(2, states.shape[1], dtype=torch.float64, device=states.device)
    for values in map(Tensor.double, states.split(BATCH)):
        total += torch.stack([values.sum(0), values.square().sum(0)])
    mean, square = total / len(states)
    deviation = (square - mean.square()).clamp(min=0).sqrt()
    return mean.float(), deviation.clamp(min=1e-6).float()
