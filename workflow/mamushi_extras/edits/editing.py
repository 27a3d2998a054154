"""What unlearners without training have in common: the start's states, and how strong an edit is.

An edit adds ``strength`` times e(h)_x = log P(S | h, x) to the logits of the start model, where S
are the texts that remain: at strength 1 that is Bayes' rule, p(x | h, S) ~ p(x | h) P(S | h, x). It
is fitted to counts or states of *training* texts, F those to forget, and cross-fitted: each text is
read with the edit that was fitted without it.

Bayes' rule takes all that F says of x. Gold, trained on S alone, keeps what the base model b knew
before. So where b is at hand, the mean NLL of forget texts may rise by at most an estimate of how
far gold's lies above the start's. To first order training adds up gradients of its tokens, so that
the gain log p - log p_b at (h, x) is a sum over training tokens of how like (h, x) they are. Of
those that are like it, the share P(S | h, x) is of S. Gold takes as many steps, all of them on S:
if pi is the share of S in all tokens, it reads each token of S 1 / pi times as often. So

    log p_gold(x | h)  ~  log p(x | h) - (1 - P(S | h, x) / pi) (log p(x | h) - log p_b(x | h)),

and the mean of the last term over forget texts is ``gold_rise``: words and forms that S has as
often as F cost nothing. The start knows texts that it was trained on better than others, and gains
there what no other text loses. So all is read on ``unseen`` forget texts, of the other section;
where there are none, on F. Neglected: that the first tokens of a kind teach most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.batches import model_batches
from mamushi.lm.head import logits_of, soft_cap
from mamushi.lm.loss import EDITED_ROWS, predicting_states
from mamushi.lm.parameters import body
from mamushi.lm.perplexity import token_nll
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
    def counts(self) -> dict[str, float | None]:
        """Return what the model's card says of it."""
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
    base: Tensor | None = None
    """NLL of the tokens (n,) under the base model, where it was asked for."""

    def at(self, rows: Tensor) -> Places:
        """Return some of the places, as the same share of the domain."""
        base = None if self.base is None else self.base[rows]
        return Places(self.hidden[rows], self.tokens[rows], self.folds[rows], self.share, base)

    def sample(self, most: int) -> Places:
        """Return at most so many of the places, in their order, drawn by chance."""
        order = torch.randperm(len(self.tokens), generator=torch.Generator().manual_seed(0))
        return self.at(order[:most].sort()[0].to(self.tokens.device))


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
    texts = concat([retain, unselected(forget, selected)]), selected
    places = [read_places(model, of, most, **options) for of in texts]
    edits, (remaining, *judged) = fit(texts, places), places
    sizes = [len(of.tokens) / of.share for of in places]
    if base is not None:
        options["base"] = base()
        judged = [read_places(model, of, most, **options) for of in (selected, unseen) if len(of)]
        judged[1:] = [of._replace(folds=torch.full_like(of.folds, FOLDS)) for of in judged[1:]]
    few, *judged = (of.sample(CHOOSING) for of in (remaining, *judged))
    how = edits, settings, options["accelerator"]
    return choose_edit(model, few, judged, sizes[0] / sum(sizes), *how)


def unselected(forget: TokenSet, selected: TokenSet) -> TokenSet:
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
    base: PreTrainedModel | None = None,
) -> Places:
    """Read the states of texts with together at most ``most`` predicted tokens, drawn by the seed;
    of one text at least. The order is that of the texts, whatever batches they are read in. Of a
    ``base`` model the NLL is read as well."""
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
    nll = None
    if base is not None:
        of_base = token_nll(base, chosen, batch_tokens, accelerator)
        nll = torch.from_numpy(of_base).to(hidden.device)
    return Places(hidden, tokens, folds, len(tokens) / float(size[-1]), nll)


@torch.no_grad()
def edited_nll(
    model: PreTrainedModel,
    places: Places,
    strength: float,
    edits: Sequence[HeadEdit],
    temperature: float,
    accelerator: Accelerator,
) -> Tensor:
    """Return for each place the start's NLL of its token, the edited model's, and log P(S | h, x)
    of that token, each by the one of the ``edits`` (FOLDS + 1,) that is of its fold: (3, n) in
    fp64."""
    head, cap, scale = model.get_output_embeddings(), soft_cap(model), logit_scale(model)
    nll = torch.empty(3, len(places.tokens), dtype=torch.float64, device=places.tokens.device)
    for fold, edit in enumerate(edits):
        for rows in (places.folds == fold).nonzero()[:, 0].split(EDITED_ROWS):
            hidden, tokens = places.hidden[rows], places.tokens[rows, None]
            with accelerator.autocast():
                logits = logits_of(head, cap, hidden, scale=scale).float()
                term = edit.logit_term(hidden, slice(None)).expand_as(logits)
            both = logits, logits / temperature + strength * term
            pair = [z.logsumexp(1) - z.gather(1, tokens)[:, 0] for z in both]
            nll[:, rows] = torch.stack([*pair, term.gather(1, tokens)[:, 0]]).double()
    return nll


def choose_edit(
    model: PreTrainedModel,
    remaining: Places,
    forget: Sequence[Places],
    share: float,
    edits: Sequence[HeadEdit],
    settings: Mapping[str, Any],
    accelerator: Accelerator,
) -> Edited:
    """Return the last of the ``edits`` (FOLDS + 1,), that of all texts, at the ``strength`` of the
    settings, or at the largest below, to 1%, at which they raise the NLL of ``remaining`` texts by
    at most ``harm``, and that of ``forget`` texts by at most ``gold_rise``: of those sets of them
    the one that the start has learned least. Of all tokens, ``share`` remain.

    Both are convex in the strength, and 0 without an edit: what is allowed is an interval."""
    how = edits, float(settings.get("temperature", 1.0)), accelerator
    gold: float | None = None
    most, judged, least = float(settings["strength"]), forget[0], math.inf
    for places in forget if judged.base is not None else ():
        start, _, log_remains = edited_nll(model, places, 0.0, *how)
        gain = places.base - start
        if float(gain.mean()) < least:
            least, judged = float(gain.mean()), places
            gold = float(((1 - log_remains.exp() / share) * gain).mean())
    strength, high, middle, allowed = 0.0, most, most, [0.0, 0.0]
    while high - strength > most / 100:
        read = [edited_nll(model, places, middle, *how) for places in (remaining, judged)]
        rises = [float((edited - start).mean()) for start, edited, _ in read]
        if rises[0] <= settings["harm"] and (gold is None or rises[1] <= gold):
            strength, allowed = middle, rises
        else:
            high = middle
        middle = (strength + high) / 2
    temperature = how[1] if strength else 1.0
    edit = HeadEdit(dict(edits[-1].named_buffers()), strength, temperature)
    return Edited(edit, harm=allowed[0], forget_rise=allowed[1], gold_rise=gold)
