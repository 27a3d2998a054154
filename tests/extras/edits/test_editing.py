"""Unlearners without training: edits of the logits, by hand and in worlds whose truth is known."""

from collections import Counter
from collections.abc import Mapping
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
from mamushi.lm.tokens import TokenSet
from mamushi.registry import plugin
from mamushi_extras.edits.editing import Edited, folds_of
from mamushi_extras.edits.head import HeadEdit
from tests.support.models import FAMILIES, VOCABULARY, model
from tests.support.unlearning import start, texts_of

CPU = device.accelerator("fp32")
FORGET, RETAIN = texts_of("forget", 11, 1), texts_of("retain", 17, 2)
EDITS = ("bias", "tilt")


def edited_by(
    kind: str,
    language_model: PreTrainedModel,
    forget: TokenSet = FORGET,
    retain: TokenSet = RETAIN,
    *,
    seed: int = 3,
    batch_tokens: int = 64,
    **changes: Any,
) -> Edited:
    """What an unlearner with its defaults, but for ``changes``, does to the logits."""
    unlearner = plugin("unlearner", kind)
    read = language_model, forget, retain, unlearner.defaults | changes
    options = {"seed": seed, "accelerator": CPU, "batch_tokens": batch_tokens}
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
        odds = torch.zeros_like(logits)
        for place, state in enumerate(hidden):
            inner = tensors["A"].double() @ state
            for token in range(logits.shape[1]):
                odds[place, token] = tensors["B"][token].double() @ inner + tensors["c"][token]
        term = -torch.log1p(torch.exp(-odds))
    return logits / temperature + strength * term


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_losses_are_those_of_the_models_own_logits_and_the_stored_edit(
    family: str, edit: str, tmp_path: Path
) -> None:
    plain, laid_over, tensors = model(family), model(family), drawn(edit)
    edited = Edited(HeadEdit(tensors, 0.6, 1.3), 0.0)
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


def shares(texts: list[NDArray[np.int32]]) -> NDArray[np.float64]:
    counts = Counter(int(token) for text in texts for token in text[1:])
    raised = np.array([counts[token] + 0.2 for token in range(VOCABULARY)])
    return raised / raised.sum()


def ratio_by_hand(lost: list[int], kept: list[int]) -> NDArray[np.float64]:
    forget, retain = [FORGET[row] for row in lost], [RETAIN[row] for row in kept]
    return np.log(shares(retain) / shares(forget + retain))


def test_the_bias_is_the_log_ratio_of_word_counts() -> None:
    edited = edited_by("logit_bias", model("llama"), strength=0.3)
    assert edited.edit.bias is not None
    expected = ratio_by_hand([*range(len(FORGET))], [*range(len(RETAIN))])
    np.testing.assert_allclose(edited.edit.bias.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert (edited.counts["strength"], edited.counts["temperature"]) == (0.3, 1.0)


@torch.no_grad()
def harm_by_hand(language_model: PreTrainedModel, strength: float) -> float:
    """Each retain text with the counts of the texts of other folds."""
    rise, tokens = 0.0, 0
    folds = [folds_of(texts, 3) for texts in (FORGET, RETAIN)]
    for row in range(len(RETAIN)):
        others = [np.flatnonzero(of != folds[1][row]).tolist() for of in folds]
        text = torch.from_numpy(RETAIN[row].astype(np.int64))
        start_logits = language_model(text[None]).logits[0, :-1].double()
        raised = start_logits + strength * torch.from_numpy(ratio_by_hand(*others))
        for logits, sign in ((raised, -1), (start_logits, 1)):
            rise += sign * float(logits.log_softmax(1).gather(1, text[1:, None]).sum())
        tokens += len(text) - 1
    return rise / tokens


def test_the_strength_is_the_largest_that_harms_retain_texts_by_so_little() -> None:
    language_model = model("gemma2")
    by_hand = {step: harm_by_hand(language_model, step / 20) for step in range(1, 21)}
    assert by_hand[20] > max(0.0, by_hand[3])
    for most in (by_hand[9] * 1.001, by_hand[15] * 1.001):
        edited = edited_by("logit_bias", language_model, harm=most)
        step = max(step for step, harm in by_hand.items() if harm <= most)
        assert edited.counts["strength"] == pytest.approx(step / 20)
        assert edited.harm == pytest.approx(by_hand[step], rel=1e-4)
    # With no strength that is harmless enough it leaves the model as it is.
    edited = edited_by("logit_bias", language_model, harm=0.0)
    expected = [step for step, harm in by_hand.items() if harm <= 0]
    assert edited.counts["strength"] == max(expected, default=0) / 20


@pytest.mark.parametrize("kind", ["logit_bias", "tilt"])
def test_the_same_bits_again_and_the_same_choice_by_other_batches(kind: str) -> None:
    language_model = start("gemma2")
    options: dict[str, Any] = {"harm": 10.0, "strength": None}
    one, two = (edited_by(kind, language_model, **options) for _ in range(2))
    tensors = one.edit.state_dict()
    assert tensors.keys() >= {"strength", "temperature"}
    assert all(torch.equal(value, two.edit.state_dict()[name]) for name, value in tensors.items())
    assert one.harm == two.harm
    other = edited_by(kind, language_model, batch_tokens=20, **options)
    assert other.counts["strength"] == one.counts["strength"]
    for name, value in other.edit.state_dict().items():
        torch.testing.assert_close(value, tensors[name], rtol=1e-3, atol=1e-3)
