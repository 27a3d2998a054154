"""What unlearners without training have in common: the start's states, and how strong an edit is.

An edit adds ``strength`` times e(h)_x = log P(S | h, x) to the logits of the start model, where S
are the texts that remain: at strength 1 that is Bayes' rule, p(x | h, S) ~ p(x | h) P(S | h, x). It
is fitted to counts or states of *training* texts, F those to forget, and cross-fitted: each text is
read with the edit that was fitted without it.

Bayes' rule takes all that F says of x. Gold, trained on S alone, keeps what the base model knew
before, and what S teaches of F. So where the base model is at hand, the mean NLL of forget texts
may rise by at most ``gold_rise``, an estimate of how far gold's lies above the start's. To first
order a step of Adam along a gradient g moves parameters by -sign(g), and lowers the NLL of texts
with the gradient h by <h, sign(g)>. The start's steps had the gradient g = pi g_S + (1 - pi) g_F,
with pi the share of S in all tokens, and as many of gold's have g_S. So of the gain over the base
model gold lacks the share

    sum <h, sign(g) - sign(g_S)>  /  sum <h, sign(g)>,

the sums over both ends of the training, base and start, with gradients of a linear map of the last
states. h and the gain are of F, or of the forget texts of the other section where the start has
learned those less: what it gains on texts that it was trained on no other text loses. Neglected:
that gold is elsewhere than the start on its way, and all other parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from mamushi.lm.loss import EDITED_ROWS, predicting_states
from mamushi.lm.parameters import body
from mamushi.lm.tokens import TokenSet, concat, subset
from mamushi.unlearning.objective import require_predicted
from mamushi_extras.edits.head import PREFIX, HeadEdit, logit_scale

FOLDS = 4
CHOOSING = 2**15  # most predicted tokens of each domain on which the strength is chosen


@dataclass(frozen=True)
class Edited:
    """An edit, and what it does to the mean NLL of training texts, in nats, cross-fitted."""

    edit: HeadEdit
    forget_rise: float
    """How far that of forget texts rises above the start's."""
    harm: float
    """The same of the remaining texts."""
    gold_rise: float | None = None
    """How far gold's on these texts is estimated to lie above the start's; None where no base model
    is at hand."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Return what a file of the edit holds, and nothing of the model."""
        return self.edit.cpu().state_dict(prefix=PREFIX)

    @property
    def card_entries(self) -> dict[str, float | None]:
        """Return the edit's settings and measured effects, as the model's card has them."""
        pair = {name: getattr(self.edit, name) for name in ("strength", "temperature")}
        effect = {"forget_rise": self.forget_rise, "harm": self.harm, "gold_rise": self.gold_rise}
        return {**{name: round(float(x), 6) for name, x in pair.items()}, **effect}


class Places(NamedTuple):
    """Places of one domain's texts from which a token is predicted."""

    hidden: Tensor
    """The start model's last states there (n, width), on its device."""
    tokens: Tensor
    """The tokens that follow, int64 (n,)."""
    folds: Tensor
    """The fold of each one's text, int64 (n,); ``FOLDS`` of texts to which nothing is fitted."""
    share: float
    """Which part of the domain's places these are."""

    def take(self, rows: Tensor) -> Places:
        """Return some of the places, as the same share of the domain."""
        return Places(self.hidden[rows], self.tokens[rows], self.folds[rows], self.share)

    def sample(self, most: int) -> Places:
        """Return at most so many of the places, in their order, drawn by chance."""
        order = torch.randperm(len(self.tokens), generator=torch.Generator().manual_seed(0))
        return self.take(order[:most].sort()[0].to(self.tokens.device))


def make_edit(
    model: PreTrainedModel,
    selected: TokenSet,
    retain: TokenSet,
    settings: Mapping[str, Any],
    fit: Callable[[Sequence[TokenSet], Sequence[Places]], Sequence[HeadEdit]],
    most: int,
    *,
    forget: TokenSet,
    unseen: TokenSet,
    base: Callable[[], PreTrainedModel] | None = None,
    **options: Any,
) -> Edited:
    """Return the edit that unlearns the ``selected`` of the ``forget`` texts alone. ``fit`` makes
    (FOLDS + 1,) of the remaining texts and the selected, and of at most so many places of each.
    ``unseen`` are forget texts of the other section. Without a text to unlearn the model stays as
    it is. Raises ``UserError`` for a model whose logits cannot be edited, and without a token to
    predict."""
    with options["accelerator"].autocast():
        require_editable(model)
    if not len(selected):
        return Edited(HeadEdit({}), 0.0, 0.0)
    require_predicted(selected, retain)
    texts = [concat([retain, subtract_selected(forget, selected)]), selected]
    places = [read_places(model, of, most, **options) for of in texts]
    edits, sizes = fit(texts, places), [len(of.tokens) / of.share for of in places]
    if len(unseen):
        texts.append(unseen)
        others = read_places(model, unseen, CHOOSING, **options)
        places.append(others._replace(folds=torch.full_like(others.folds, FOLDS)))
    few, judged, gold_rise = [of.sample(CHOOSING) for of in places], 1, None
    if base is not None:
        opened, slopes = base(), list[list[tuple[float, Tensor]]]()
        # The same places as of the start: a gain is a difference at each.
        pairs = zip(texts, (most, most, CHOOSING), strict=False)
        of_base = [read_places(opened, *pair, **options).sample(CHOOSING) for pair in pairs]
        for end, of_texts in ((opened, of_base), (model, few)):
            slopes.append([read_slope(end, of, options["accelerator"]) for of in of_texts])
        judged, gold_rise = estimate_gold_rise(slopes[0], slopes[1], sizes[0] / sum(sizes))
    how = edits, settings, options["accelerator"]
    return choose_edit(model, few[0], few[judged], gold_rise, *how)


def read_slope(
    model: PreTrainedModel, places: Places, accelerator: Accelerator
) -> tuple[float, Tensor]:
    """Return the mean NLL of the tokens that follow the places, and its gradient (width, width) by
    a linear map of their states, where that changes nothing."""
    head, cap, scale = model.get_output_embeddings(), soft_cap(model), logit_scale(model)
    width, nll = places.hidden.shape[1], 0.0
    slope = torch.zeros(width, width, device=places.hidden.device)
    for rows in torch.arange(len(places.tokens)).split(EDITED_ROWS):
        hidden = places.hidden[rows].float().requires_grad_()
        with torch.enable_grad(), accelerator.autocast():
            logits = logits_of(head, cap, hidden, scale=scale).float()
            loss = functional.cross_entropy(logits, places.tokens[rows], reduction="sum")
        (of_states,) = torch.autograd.grad(loss, hidden)
        slope += of_states.t() @ hidden.detach()
        nll += float(loss.detach())
    return nll / len(places.tokens), slope / len(places.tokens)


def estimate_gold_rise(
    base: Sequence[tuple[float, Tensor]], start: Sequence[tuple[float, Tensor]], share: float
) -> tuple[int, float]:
    """Return which of several forget texts the start has learned least, and how far gold's NLL on
    them is above the start's, in nats. Of the base model and the start are given NLL and gradient
    of remaining texts, which are this ``share`` of all tokens, of those to forget, and of others.
    """
    gains = [of_base[0] - of_start[0] for of_base, of_start in zip(base, start, strict=True)]
    judged = min(range(1, len(gains)), key=gains.__getitem__)
    lost = total = 0.0
    for slopes in (base, start):
        remaining, selected, of_judged = (slopes[row][1] for row in (0, 1, judged))
        mixed = (share * remaining + (1 - share) * selected).sign()
        total += float((of_judged * mixed).sum())
        lost += float((of_judged * (mixed - remaining.sign())).sum())
    return judged, gains[judged] * max(lost, 0.0) / total if total > 0 else 0.0


def subtract_selected(forget: TokenSet, selected: TokenSet) -> TokenSet:
    """Return the ``forget`` texts of which a token is predicted that is not in the ``selected``:
    some of them, in their order, each with some of its tokens or all."""
    weights, is_selected = forget.weights.copy(), np.isin(forget.ids, selected.ids)
    weights[np.repeat(is_selected, forget.lengths)] -= selected.weights
    remaining = replace(forget, weights=weights)
    return subset(remaining, np.flatnonzero(remaining.counted))


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
def mean_rises(
    model: PreTrainedModel,
    places: Places,
    strengths: Sequence[float],
    edits: Sequence[HeadEdit],
    temperature: float,
    accelerator: Accelerator,
) -> list[float]:
    """Return for each of the strengths how far the mean NLL of the tokens that follow the places
    rises, in nats, each by the one of the ``edits`` (FOLDS + 1,) that is of its fold."""
    head, cap, scale = model.get_output_embeddings(), soft_cap(model), logit_scale(model)
    total = torch.zeros(len(strengths), dtype=torch.float64, device=places.tokens.device)
    for fold, edit in enumerate(edits):
        for rows in (places.folds == fold).nonzero()[:, 0].split(EDITED_ROWS):
            hidden, tokens = places.hidden[rows], places.tokens[rows]
            with accelerator.autocast():
                logits = logits_of(head, cap, hidden, scale=scale).float()
                term = edit.logit_term(hidden, slice(None))
            start = functional.cross_entropy(logits, tokens, reduction="none")
            logits /= temperature
            for at, strength in enumerate(strengths):
                nll = functional.cross_entropy(logits + strength * term, tokens, reduction="none")
                total[at] += (nll - start).double().sum()
    return (total / len(places.tokens)).tolist()


def choose_edit(
    model: PreTrainedModel,
    remaining: Places,
    forget: Places,
    gold_rise: float | None,
    edits: Sequence[HeadEdit],
    settings: Mapping[str, Any],
    accelerator: Accelerator,
) -> Edited:
    """Return the last of the ``edits`` (FOLDS + 1,), that of all texts, at the ``strength`` of the
    settings, or at the largest hundredth of it, at which they raise the NLL of ``remaining`` texts
    by at most ``harm``, and that of ``forget`` texts by at most ``gold_rise``.

    Both are convex in the strength, and 0 without an edit: what is allowed is an interval."""
    how = edits, float(settings.get("temperature", 1.0)), accelerator
    most, strength, allowed = float(settings["strength"]), 0.0, [0.0, 0.0]
    for steps, rungs in ((10, 10), (100, 9)):
        ladder = [strength + most * rung / steps for rung in range(1, rungs + 1)]
        read = [mean_rises(model, places, ladder, *how) for places in (remaining, forget)]
        for rung, rises in zip(ladder, zip(*read, strict=True), strict=True):
            if rises[0] <= settings["harm"] and (gold_rise is None or rises[1] <= gold_rise):
                strength, allowed = rung, list(rises)
        if strength == ladder[-1]:
            break
    edit = HeadEdit(dict(edits[-1].named_buffers()), strength, how[1] if strength else 1.0)
    return Edited(edit, harm=allowed[0], forget_rise=allowed[1], gold_rise=gold_rise)
