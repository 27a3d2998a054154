"""NLL with word frequencies taken out, ``deep``: every model's mean prediction is made the same.

Each model is raked (iterative proportional fitting, Deming and Stephan 1940) before it is read, for
each domain by itself: a constant b_v on the logit of each token v is found such that

    mean over positions t of  softmax(z_t + b)_v  =  q_v

for one common distribution q. Predictions are among the tokens that occur in the texts, so that a
constant on a model's logits, such as word counts make, counts nothing, exactly. Cross-fitted over
halves of the texts: q of a half comes from the words of the other one and of the inference section.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from mamushi.io.tables import DOMAINS
from mamushi.lm.batches import Batch
from mamushi.lm.loss import batch_nll_and_logits
from mamushi.lm.tokens import TokenSet, subset

ROUNDS, CLOSE = 500, 1e-5
"""Most rounds of raking, and the largest change of a constant at which it ends."""
PRIOR_WORDS, PSEUDO = 1000.0, 0.5
"""Words that the inference section counts for, beside those of the other half, and the count of a
token in it before any is seen."""
FEWEST = 20
"""Texts of a domain below which it is not raked: a half has no frequencies to speak of."""


@dataclass(frozen=True)
class Raking:
    """What is the same for all models of a cell: the ``rows`` (m,), ascending, of sampled texts of
    a domain in the evaluation section and the half, 0 or 1, that each is in; the tokens that occur
    in them as ``columns`` (T,), ascending, and their ``frequencies`` q of each half (2, T)."""

    rows: NDArray[np.int64]
    halves: NDArray[np.int64]
    columns: NDArray[np.int64]
    frequencies: NDArray[np.float64]


def plan_rakings(held_out: TokenSet, inference: TokenSet, most_tokens: int) -> list[Raking]:
    """Choose texts of either domain of the evaluation section with at most ``most_tokens``
    predicted tokens, by their ids alone, and count the frequencies to which all models are raked,
    also in the domain's texts of the ``inference`` section. A domain of which fewer than ``FEWEST``
    texts can be read has none."""
    plans = [_plan_raking(held_out, inference, domain, most_tokens) for domain in DOMAINS]
    return [plan for plan in plans if plan]


def _plan_raking(
    held_out: TokenSet, inference: TokenSet, domain: str, most_tokens: int
) -> Raking | None:
    possible = np.flatnonzero((held_out.domains == domain) & (held_out.counted > 0))
    heads = [hashlib.sha256(name.encode()).digest()[:8] for name in held_out.ids[possible]]
    digests = np.frombuffer(b"".join(heads), dtype=">u8").astype(np.uint64)
    order = np.argsort(digests, kind="stable")
    size = np.cumsum(held_out.counted[possible][order])
    chosen = np.sort(order[size <= most_tokens])
    if len(chosen) < FEWEST:
        return None
    rows, halves = possible[chosen], (digests[chosen] % np.uint64(2)).astype(np.int64)
    sampled = subset(held_out, rows)
    columns = np.unique(sampled.tokens[sampled.predicted]).astype(np.int64)

    def count(texts: TokenSet) -> NDArray[np.float64]:
        tokens = texts.tokens[texts.predicted]
        places = np.searchsorted(columns, tokens[np.isin(tokens, columns)])
        return np.bincount(places, minlength=len(columns)).astype(float)

    before = count(subset(inference, np.flatnonzero(inference.domains == domain))) + PSEUDO
    others = np.array([count(subset(held_out, rows[halves != half])) for half in (0, 1)])
    counts = others + PRIOR_WORDS * before / before.sum()
    return Raking(rows, halves, columns, counts / counts.sum(axis=1, keepdims=True))


class LogitTables:
    """The logits (n, T) of what occurs, at the n positions of the sampled texts of each domain that
    this process reads. Held on the model's device, in fp32."""

    def __init__(self, rakings: Sequence[Raking], texts: int, accelerator: Accelerator) -> None:
        self._rakings, self._texts, self._accelerator = rakings, texts, accelerator
        self._columns = [torch.from_numpy(of.columns).to(accelerator.device) for of in rakings]
        self._places = np.full((len(rakings), texts), -1)
        for place, raking in zip(self._places, rakings, strict=True):
            place[raking.rows] = np.arange(len(raking.rows))
        # Of each batch logits, targets and texts; a process may have nothing to read.
        self._read = [
            [(torch.empty(0, len(columns), device=columns.device), columns[:0], columns[:0])]
            for columns in self._columns
        ]

    def batch_nll(
        self, model: PreTrainedModel, rows: NDArray[np.int64], batch: Batch, counts: bool
    ) -> Tensor:
        """Return the NLL (predicted,) of a batch of the texts ``rows``; keep the logits of those
        that are sampled, if the pass ``counts``."""
        device = batch.texts.device
        places = [torch.from_numpy(place[rows]).to(device)[batch.texts] for place in self._places]
        chosen = [(place >= 0).nonzero()[:, 0] for place in places]
        nll, tables = batch_nll_and_logits(model, batch, *zip(chosen, self._columns, strict=True))
        sampled = zip(self._read, tables, places, chosen, self._columns, strict=True)
        for read, logits, place, at, columns in sampled if counts else ():
            targets = torch.searchsorted(columns, batch.targets[at])
            read.append((logits.float(), targets, place[at]))
        return nll

    def nll(self) -> NDArray[np.float64]:
        """Return the summed NLL of each text (texts,) under the raked model, in nats; NaN for texts
        that are not sampled. All processes take part."""
        raked = np.full(self._texts, np.nan)
        for raking, read in zip(self._rakings, self._read, strict=True):
            logits, targets, of = (torch.cat(values) for values in zip(*read, strict=True))
            read.clear()
            halves = torch.from_numpy(raking.halves).to(logits.device)
            sums = torch.zeros(len(halves), dtype=torch.float64, device=logits.device)
            for half, frequencies in enumerate(raking.frequencies):
                inside = (halves[of] == half).nonzero()[:, 0]
                nll = raked_nll(logits[inside], targets[inside], frequencies, self._accelerator)
                sums.index_add_(0, of[inside], nll.double())
            raked[raking.rows] = self._accelerator.reduce(sums, "sum").cpu().numpy()
        return raked


def raked_nll(
    logits: Tensor, targets: Tensor, frequencies: NDArray[np.float64], accelerator: Accelerator
) -> Tensor:
    """Return the NLL (n,), in nats, of the tokens ``targets`` (n,), columns of ``logits`` (n, T),
    once the mean prediction over all processes' positions is ``frequencies`` (T,)."""
    log_table = logits.log_softmax(1)
    table = log_table.exp()
    positions = float(accelerator.reduce(table.new_tensor(len(table)).double(), "sum"))
    bias = np.zeros_like(frequencies)
    for _ in range(ROUNDS):
        weights = torch.from_numpy(np.exp(bias)).to(table)
        scales = 1.0 / (table @ weights)
        shares = (weights * (table.t() @ scales)).double()
        mean = accelerator.reduce(shares, "sum").cpu().numpy() / positions
        change = np.log(frequencies) - np.log(np.maximum(mean, 1e-30))
        bias += change
        bias -= bias @ frequencies
        if np.abs(change).max() < CLOSE:
            break
    raised = torch.from_numpy(bias).to(table)
    true = log_table.gather(1, targets[:, None])[:, 0] + raised[targets]
    return (table @ raised.exp()).log() - true
