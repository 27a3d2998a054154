"""Unlearners without training: edits of the logits, by hand and in worlds whose truth is known."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.lm import device
from mamushi.lm.batches import batch_of
from mamushi.lm.loss import batch_nll, batch_nll_and_logits
from mamushi.lm.perplexity import text_nll
from mamushi.lm.storage import overlay, write
from mamushi.lm.tokens import TokenSet, keep_spans, mask_spans, subset
from mamushi.registry import plugin
from mamushi_extras.edits.editing import FOLDS, Edited, Places, folds_of, subtract_selected
from mamushi_extras.edits.head import HeadEdit
from mamushi_extras.edits.unlearners.tilt import calibrate
from tests.support.models import FAMILIES, VOCABULARY, model
from tests.support.unlearning import start, texts_of

CPU = device.accelerator("fp32")
FORGET, RETAIN = texts_of("forget", 11, 1), texts_of("retain", 17, 2)
NONE = subset(FORGET, np.arange(0))
EDITS = ("bias", "tilt")


def edited_by(
    kind: str,
    language_model: PreTrainedModel,
    forget: TokenSet = FORGET,
    retain: TokenSet = RETAIN,
    *,
    seed: int = 3,
    batch_tokens: int = 64,
    unseen: TokenSet = NONE,
    base: Callable[[], PreTrainedModel] | None = None,
    **changes: Any,
) -> Edited:
    """What an unlearner with its defaults, but for ``changes``, does to the logits."""
    unlearner = plugin("unlearner", kind)
    read = language_model, forget, retain, unlearner.defaults | changes
    options = {"seed": seed, "accelerator": CPU, "batch_tokens": batch_tokens}
    options |= {"forget": forget, "unseen": unseen, "base": base}
    edited: Edited = unlearner.code.edit(*read, **options)
    return edited


# --- an edit and what it does to a model ---------------------------------------------------------


def drawn(kind: str, rows: int = VOCABULARY, width: int = 16) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(5)
    shapes = (
        {"bias": (rows,)} if kind == "bias" else {"A": (4, width), "B": (rows, 4), "c": (rows,)}
    )
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}


@torch.no_grad()
def logits_by_hand(
    plain: PreTrainedModel,
    ids: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    strength: float,
    temperature: float,
) -> torch.Tensor:
    """transformers' own logits (length, V), and the formula on top."""
    output = plain(ids[None], output_hidden_states=True)
    logits, hidden = output.logits[0].double(), output.hidden_states[-1][0].double()
    term = tensors.get("bias", torch.zeros(())).double()
    if "A" in tensors:
        inner = hidden @ tensors["A"].double().t()
        odds = inner @ tensors["B"].double().t() + tensors["c"].double()
        term = -torch.log1p(torch.exp(-odds))
    return logits / temperature + strength * term


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_losses_are_those_of_the_models_own_logits_and_the_stored_edit(
    family: str, edit: str, tmp_path: Path
) -> None:
    plain, laid_over, tensors = model(family), model(family), drawn(edit)
    edited = Edited(HeadEdit(tensors, 0.6, 1.3), 0.0, 0.0)
    origin = {"settings": {"unlearner": "mine", "kind": "tilt"}}
    write(tmp_path / "trained.safetensors", edited.tensors, origin)
    lay_over = overlay(tmp_path / "trained.safetensors", laid_over)
    assert lay_over is not None
    lay_over(laid_over)
    ids = [torch.from_numpy(RETAIN[row].astype(np.int64)) for row in range(len(RETAIN))]
    by_hand = [logits_by_hand(plain, text, tensors, 0.6, 1.3) for text in ids]
    torch.testing.assert_close(
        laid_over(ids[1][None]).logits[0].double(), by_hand[1], rtol=1e-5, atol=1e-5
    )
    expected = [
        float(-z[:-1].log_softmax(1).gather(1, text[1:, None]).sum())
        for z, text in zip(by_hand, ids, strict=True)
    ]
    read = text_nll(laid_over, RETAIN, 64, CPU)
    np.testing.assert_allclose(read.nll, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(read.nll - text_nll(plain, RETAIN, 64, CPU).nll).max() > 1
    batch = batch_of(RETAIN, np.arange(3), CPU.device, shared=True)
    columns, chosen = torch.tensor([3, 7, 40]), torch.tensor([0, 4])
    nll, (table,) = batch_nll_and_logits(laid_over, batch, (chosen, columns))
    torch.testing.assert_close(nll, batch_nll(laid_over, batch))
    every = torch.cat([z[:-1] for z in by_hand[:3]])
    torch.testing.assert_close(table.double(), every[chosen][:, columns], rtol=1e-5, atol=1e-5)


# --- which edit, and how strong ------------------------------------------------------------------


def ratio_by_hand(forget_rows: list[int], retain_rows: list[int]) -> NDArray[np.float64]:
    """log((r_v + 0.2) / (r_v + f_v + 0.2)) of the counts of each token v."""
    forget, retain = (
        Counter(int(token) for row in rows for token in texts[row][1:])
        for texts, rows in ((FORGET, forget_rows), (RETAIN, retain_rows))
    )
    raised = np.array([retain[token] + 0.2 for token in range(VOCABULARY)])
    return np.log(raised / (raised + [forget[token] for token in range(VOCABULARY)]))


def test_the_bias_is_the_log_of_the_chance_that_a_token_is_of_a_remaining_text() -> None:
    edited = edited_by("logit_bias", model("llama"), strength=0.3, harm=100.0)
    assert edited.edit.bias is not None
    expected = ratio_by_hand([*range(len(FORGET))], [*range(len(RETAIN))])
    np.testing.assert_allclose(edited.edit.bias.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert (edited.card_entries["strength"], edited.card_entries["temperature"]) == (0.3, 1.0)


@torch.no_grad()
def effect_by_hand(
    start: PreTrainedModel, strength: float, forget: TokenSet = FORGET
) -> list[float]:
    """Rise of forget and retain texts, each with the counts of the texts of other folds, or of all
    texts where it is of neither."""
    sides, means = [FORGET, RETAIN], []
    folds = [folds_of(texts, 3) for texts in sides]
    for at, texts in enumerate([forget, RETAIN]):
        rises = []
        for row in range(len(texts)):
            fold = folds[at][row] if texts is sides[at] else FOLDS
            ratio = ratio_by_hand(*(np.flatnonzero(of != fold).tolist() for of in folds))
            text = torch.from_numpy(texts[row].astype(np.int64))
            after = start(text[None]).logits[0, :-1].double()
            edited, tokens = after + strength * torch.from_numpy(ratio), text[1:, None]
            nll = [-z.log_softmax(1).gather(1, tokens)[:, 0] for z in (after, edited)]
            rises.append(nll[1] - nll[0])
        means.append(float(torch.cat(rises).mean()))
    return means


def slope_by_hand(model: PreTrainedModel, texts: TokenSet) -> tuple[float, torch.Tensor]:
    """Mean NLL of texts, and its gradient by a linear map between a model and its head."""
    width = model.config.hidden_size
    linear = torch.eye(width, requires_grad=True)
    nll = []
    for row in range(len(texts)):
        text = torch.from_numpy(texts[row].astype(np.int64))
        states = model.model(text[None]).last_hidden_state[0, :-1]
        logits = model.get_output_embeddings()(states @ linear.t())
        nll.append(-logits.log_softmax(1).gather(1, text[1:, None])[:, 0])
    mean = torch.cat(nll).mean()
    return float(mean.detach()), torch.autograd.grad(mean, linear)[0]


def gold_by_hand(models: list[PreTrainedModel], judged: TokenSet) -> tuple[float, float]:
    """Gain of forget texts from the first model to the second, and how much of it gold lacks."""
    share = RETAIN.counted.sum() / (RETAIN.counted.sum() + FORGET.counted.sum())
    nll, lost, total = [], 0.0, 0.0
    for of_model in models:
        slopes = [slope_by_hand(of_model, texts) for texts in (RETAIN, FORGET, judged)]
        remaining, forget, others = (slope for _, slope in slopes)
        step = (share * remaining + (1 - share) * forget).sign()
        nll.append(slopes[2][0])
        total += float((others * step).sum())
        lost += float((others * (step - remaining.sign())).sum())
    gain = nll[0] - nll[1]
    return gain, gain * lost / total


def test_the_strength_is_the_largest_that_harms_little() -> None:
    start = model("llama")
    harm = effect_by_hand(start, 1.5)[1]
    edited = edited_by("logit_bias", start, strength=2.0, harm=harm)
    strength = float(edited.edit.strength)
    within, beyond = (effect_by_hand(start, x) for x in (strength, strength + 0.02))
    assert within[1] <= harm < beyond[1]
    assert edited.gold_rise is None
    assert [edited.forget_rise, edited.harm] == pytest.approx(within, rel=1e-4)
    assert edited_by("logit_bias", start, strength=0.1, harm=harm).edit.strength > 0.09
    # With no strength that is harmless enough it leaves the model as it is.
    assert edited_by("logit_bias", start, harm=-1.0).card_entries["strength"] == 0


@pytest.mark.parametrize("seed", [4, 10])
def test_forget_texts_rise_no_further_than_gold_would(seed: int) -> None:
    """Of those to forget and others, that of which the start has learned less."""
    start, base = model("llama"), model("llama", seed=2)
    unseen = texts_of("forget", 7, seed)
    bound = {"strength": 2.0, "harm": 100.0, "base": lambda: base}
    for others in (NONE, unseen):
        edited = edited_by("logit_bias", start, unseen=others, **bound)
        strength, sets = float(edited.edit.strength), [FORGET, others] if len(others) else [FORGET]
        judged = min(sets, key=lambda texts: gold_by_hand([base, start], texts)[0])
        _, gold = gold_by_hand([base, start], judged)
        within, beyond = (effect_by_hand(start, x, judged) for x in (strength, strength + 0.02))
        assert edited.gold_rise == pytest.approx(gold, rel=1e-3)
        assert 0 < within[0] <= gold < beyond[0]
        assert [edited.forget_rise, edited.harm] == pytest.approx(within, rel=1e-4)


def test_log_odds_are_calibrated_by_texts_that_were_not_fitted() -> None:
    """Of a classifier whose log-odds are three times the true ones, and one too many."""
    random = torch.Generator().manual_seed(1)
    true = HeadEdit(drawn("tilt"))
    assert true.A is not None and true.B is not None and true.c is not None
    hidden, tokens = torch.randn(40000, 16, generator=random) / 8, torch.arange(40000) % VOCABULARY
    odds = ((hidden @ true.A.t()) * true.B[tokens]).sum(1) + true.c[tokens]
    remains = torch.rand(len(odds), generator=random) < odds.sigmoid()
    places = [
        Places(hidden[rows], tokens[rows], torch.arange(int(rows.sum())) % FOLDS, 1.0)
        for rows in (remains, ~remains)
    ]
    loud = HeadEdit({"A": true.A, "B": 3 * true.B, "c": 3 * true.c + 1})
    for edit in calibrate([loud] * (FOLDS + 1), places):
        torch.testing.assert_close(edit.B, true.B, rtol=0.05, atol=0.05)
        torch.testing.assert_close(edit.c, true.c, rtol=0.05, atol=0.08)


def test_forget_texts_and_tokens_that_are_not_selected_remain() -> None:
    predicted = subset(FORGET, np.flatnonzero(FORGET.counted))
    spans = [{"id": predicted.ids[row], "start": 2, "stop": 4} for row in (1, 5)]
    remaining = subtract_selected(predicted, keep_spans(predicted, spans))
    np.testing.assert_array_equal(remaining.weights, mask_spans(predicted, spans).weights)
    remaining = subtract_selected(predicted, subset(predicted, np.array([1, 5])))
    assert remaining.ids.tolist() == np.delete(predicted.ids, [1, 5]).tolist()


@pytest.mark.parametrize("kind", ["logit_bias", "tilt"])
def test_the_same_bits_again_and_the_same_choice_by_other_batches(kind: str) -> None:
    language_model = start("gemma2")
    options: dict[str, Any] = {"harm": 10.0}
    one, two = (edited_by(kind, language_model, **options) for _ in range(2))
    tensors = one.edit.state_dict()
    assert tensors.keys() >= {"strength", "temperature"}
    assert all(torch.equal(value, two.edit.state_dict()[name]) for name, value in tensors.items())
    assert one.harm == two.harm
    other = edited_by(kind, language_model, batch_tokens=20, **options)
    assert other.card_entries["strength"] == one.card_entries["strength"]
    for name, value in other.edit.state_dict().items():
        torch.testing.assert_close(value, tensors[name], rtol=1e-3, atol=1e-3)
