"""Many families of decoders against the plainest computation: one text, one pass of transformers.

No batch, order or neighbour may change a result, of a measurement, an embedding or a training.
"""

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from mamushi.lm import device
from mamushi.lm.batches import examples_of_step
from mamushi.lm.embed import embed
from mamushi.lm.generate import generate
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, offsets_of, subset
from mamushi.lm.training import gradient, mean_nll_objective
from tests.support.families import FAMILIES, VOCABULARY, tiny
from tests.support.models import TRAINING, training_of

# On both sides of ``ORIGINAL``, beyond all windows, and in an order that is none of lengths.
LENGTHS = np.array([3, 20, 6, 1, 14, 8, 9, 2])
ORDER, OTHER = np.arange(8), np.array([6, 0, 5, 3, 1, 7, 2, 4])
BATCHES = ((OTHER, 1), (ORDER, 40), (OTHER, 400))
"""Order of the texts, and tokens of a batch: a text each, a few, and all."""
FP32 = 1e-5
HALF = 2.0**-11
"""Of a number, what float16 rounds away."""


def texts() -> TokenSet:
    flat = np.random.default_rng(0).integers(3, VOCABULARY, LENGTHS.sum()).astype(np.int32)
    names = np.array([f"t{i}" for i in range(len(LENGTHS))])
    domains = np.array(["forget", "retain"] * (len(LENGTHS) // 2))
    return TokenSet(names, domains, flat, offsets_of(LENGTHS))


TEXTS = texts()


def ids_of(row: int) -> Tensor:
    return torch.from_numpy(TEXTS[row].astype(np.int64))[None]


def plain(model: PreTrainedModel, row: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sum of the NLL of one text, and its mean state at the first and the final layer, by one pass
    of a model that has read nothing before."""
    ids = ids_of(row)
    output = copy.deepcopy(model)(input_ids=ids, output_hidden_states=True)
    odds = torch.log_softmax(output.logits[0].double(), -1)
    nll = -odds[:-1].gather(1, ids[0, 1:, None]).sum()
    first, final = (output.hidden_states[layer][0].mean(0) for layer in (1, -1))
    return nll, first, final


@torch.no_grad()
def plainly(model: PreTrainedModel) -> tuple[NDArray[np.float64], dict[int, NDArray[np.float32]]]:
    """The same of each text: (texts,), and by layer (texts, width)."""
    nll, first, final = zip(*(plain(model, row) for row in range(len(TEXTS))), strict=True)
    return torch.stack(nll).numpy(), {
        1: np.stack([state.numpy() for state in first]),
        -1: np.stack([state.numpy() for state in final]),
    }


def measured(
    model: PreTrainedModel, batch: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], dict[int, NDArray[np.float16]]]:
    """The same by the package, in this order."""
    accelerator, some = device.accelerator("fp32"), subset(TEXTS, rows)
    nll = text_nll(model, some, batch, accelerator).nll
    how = {"pooling": "mean", "skip_first": False, "batch_tokens": batch}
    vectors = {
        layer: embed(model, some, layer=layer, accelerator=accelerator, **how) for layer in (1, -1)
    }
    return nll, vectors


@pytest.mark.parametrize("family", FAMILIES)
def test_every_batch_gives_what_an_unbatched_pass_gives(family: str) -> None:
    model = tiny(family)
    nll, vectors = plainly(model)
    for rows, batch in BATCHES:
        found, states = measured(model, batch, rows)
        np.testing.assert_allclose(found, nll[rows], rtol=FP32, atol=FP32)
        for layer, expected in vectors.items():
            np.testing.assert_allclose(states[layer], expected[rows], rtol=HALF, atol=FP32)
    # Nor does anything stay behind in the model.
    with torch.no_grad():
        assert [float(plain(model, row)[0]) for row in (1, 2)] == [nll[1], nll[2]]


def unbatched_gradients(model: PreTrainedModel, rows: NDArray[np.int64]) -> dict[str, Tensor]:
    """Of the mean NLL over the predicted tokens of these texts, one text after another."""
    predicted = int((LENGTHS[rows] - 1).sum())
    total = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for row in rows:
        alone = copy.deepcopy(model)
        logits = alone(input_ids=ids_of(row)).logits[0, :-1]
        loss = torch.nn.functional.cross_entropy(logits, ids_of(row)[0, 1:], reduction="sum")
        if LENGTHS[row] > 1:
            (loss / predicted).backward()
        for name, parameter in alone.named_parameters():
            if parameter.grad is not None:
                total[name] += parameter.grad
    return total


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_has_the_gradient_of_its_texts_one_by_one(family: str) -> None:
    model, accelerator = tiny(family).train(), device.accelerator("fp32")
    settings = training_of(TRAINING | {"batch_size": 6})
    expected = unbatched_gradients(model, examples_of_step(0, len(TEXTS), 6, 0))
    objective = mean_nll_objective(model, TEXTS, settings, 4, 0, accelerator)
    trained = list(model.parameters())
    gradient(objective, objective.module, objective.step(0), accelerator, trained)
    largest = max(float(value.abs().max()) for value in expected.values())
    for name, parameter in model.named_parameters():
        found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        apart = float((found - expected[name]).abs().max())
        scale = float(expected[name].abs().max())
        assert apart <= 1e-4 * scale + 1e-6 * largest, name


# --- positions by length ----------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama dynamic", "llama longrope"])
def test_what_is_generated_does_not_depend_on_an_earlier_prompt(family: str) -> None:
    nothing: Any = SimpleNamespace(eos_token_id=None, pad_token_id=0)

    def said(model: PreTrainedModel, row: int) -> list[list[int]]:
        given = TEXTS[row][None]
        return generate(model, nothing, given, 12, device.accelerator("fp32"))

    model = tiny(family)
    assert len({len(said(model, row)[0]) for row in (1, 6, 2)}) == 1
    # Of 20 tokens, then of 9 and of 6.
    for row in (6, 2):
        said(model, 1)
        assert said(model, row) == said(tiny(family), row)
