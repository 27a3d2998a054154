"""The frozen-trunk cache against the whole model: the same numbers without the frozen blocks."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm import device
from mamushi.lm.batches import collate
from mamushi.lm.loss import TokenLoss
from mamushi.lm.parameters import decoder_blocks, freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet
from mamushi.unlearning import trunk as trunk_module
from mamushi.unlearning.trunk import Trunk, starting_from, write_trunk
from tests.support.models import FAMILIES, model, token_set

TRAINED = 2
LAYERS = 4
PROVENANCE = {"inputs": {"examples": "abc"}, "mamushi": "1"}
PRECISIONS = ("fp32", "bf16")
# Relative to the largest value, where the batches that read a cache are not those that wrote it, so
# that sums are rounded in another order. bf16 has 8 bits: a unit in the last place is 0.4 to 0.8%.
TOLERANCE = {"fp32": 1e-6, "bf16": 3e-2}
# In a mean over tokens such errors cancel.
MEAN = {"fp32": 1e-6, "bf16": 1e-3}


def start_model(family: str, precision: str, layers: int = LAYERS) -> PreTrainedModel:
    """A start model as it lies in an unlearning run: the last two blocks in fp32, all else frozen
    in the forward precision."""
    found = model(family, layers=layers)
    freeze(
        found,
        {
            "trained_blocks": TRAINED,
            "train_input_embedding": False,
            "train_output_head": False,
        },
    )
    return device.place(found, precision, torch.device("cpu"))


def section(name: str, count: int, seed: int) -> TokenSet:
    """A token set whose ids begin with ``name``."""
    texts = token_set(count, seed, longest=20)
    ids = np.array([f"{name}{i}" for i in texts.ids], dtype=object)
    return TokenSet(ids, texts.domains, texts.tokens, texts.offsets)


def cut(texts: TokenSet, length: int) -> TokenSet:
    """The texts, each cut at ``length`` tokens."""
    rows = [texts[i][:length] for i in range(len(texts))]
    offsets = np.cumsum([0, *map(len, rows)])
    return TokenSet(texts.ids, texts.domains, np.concatenate(rows), offsets)


INFERENCE = section("inference-", 20, 1)
EVALUATION = section("évaluation-", 9, 2)


def write(path: Path, language_model: PreTrainedModel, precision: str = "fp32") -> None:
    sets = [INFERENCE, EVALUATION]
    accelerator = device.accelerator(precision)
    write_trunk(path, language_model, sets, TRAINED, 60, accelerator, PROVENANCE)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of the Llama model in fp32."""
    write(tmp_path / "trunk", start_model("llama", "fp32"))
    return tmp_path / "trunk"


def assert_near(found: Tensor, expected: Tensor, tolerance: float) -> None:
    scale = float(expected.abs().max())
    assert scale > 0
    assert float((found - expected).abs().max()) <= tolerance * scale


def step(
    language_model: PreTrainedModel, rows: list[int], precision: str, texts: TokenSet = INFERENCE
) -> tuple[float, dict[str, Tensor]]:
    """NLL of one batch, and its gradients."""
    given, ids = [texts[i] for i in rows], texts.ids[rows]
    batch = collate(given, torch.device("cpu"), shared=True, ids=ids)
    with device.accelerator(precision).autocast():
        loss = TokenLoss(language_model)(batch)
    loss.backward()
    named = language_model.named_parameters()
    found = {name: p.grad.clone() for name, p in named if p.grad is not None}
    language_model.zero_grad(set_to_none=True)
    return float(loss.detach()), found


# --- equal numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_steps_and_nll_from_the_cache_are_those_of_the_whole_model(
    family: str, precision: str, tmp_path: Path
) -> None:
    language_model, path = start_model(family, precision), tmp_path / "trunk"
    write(path, language_model, precision)
    # Neither the batches of the file nor their order, and lengths from 1 to 20.
    rows = [int(INFERENCE.lengths.argmin()), 7, int(INFERENCE.lengths.argmax()), 3, 12]
    shorter, accelerator = cut(EVALUATION, 7), device.accelerator(precision)

    def numbers() -> tuple[float, dict[str, Tensor], np.ndarray]:
        language_model.train()
        return *step(language_model, rows, precision), text_nll(
            language_model, shorter, 33, accelerator
        ).nll

    whole = numbers()
    with starting_from(Trunk(path), language_model):
        cached = numbers()
    assert cached[0] == pytest.approx(whole[0], rel=MEAN[precision])
    np.testing.assert_allclose(cached[2], whole[2], rtol=10 * TOLERANCE[precision], atol=1e-6)
    trained = [name for name, p in language_model.named_parameters() if p.requires_grad]
    assert list(cached[1]) == list(whole[1]) == trained
    for name, gradient in whole[1].items():
        assert_near(cached[1][name], gradient, TOLERANCE[precision])


def test_frozen_blocks_are_out_of_the_way_and_come_back(cache: Path) -> None:
    language_model = start_model("llama", "fp32")
    blocks, modules = decoder_blocks(language_model)[1], list(language_model.named_modules())
    frozen, before = blocks[0], step(language_model, [2, 9], "fp32")
    frozen.attention_type = "sliding_attention"
    names = [name for name, p in language_model.named_parameters() if p.requires_grad]
    with pytest.raises(ZeroDivisionError), starting_from(Trunk(cache), language_model):
        inside = dict(language_model.named_parameters())
        assert [name for name, p in inside.items() if p.requires_grad] == names
        assert not any(name.startswith("model.layers.0.") for name in inside)
        # A stand-in has the attributes of its block.
        assert blocks[0] is not frozen and blocks[0].attention_type == "sliding_attention"
        raise ZeroDivisionError
    assert list(language_model.named_modules()) == modules
    assert not language_model.model._forward_pre_hooks
    assert step(language_model, [2, 9], "fp32")[0] == before[0]


# --- the file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_folder_has_plain_safetensors_with_a_tensor_for_each_text(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trunk_module, "PART_BYTES", 4_000)
    language_model, path = start_model("qwen2", precision), tmp_path / "trunk"
    write(path, language_model, precision)
    assert len(list(path.iterdir())) > 1
    hidden: dict[str, Tensor] = {}
    for part in path.iterdir():
        hidden |= load_file(part)
        with safe_open(part, "pt") as file:
            about = json.loads(file.metadata()["mamushi"])
        assert about == {**PROVENANCE, "trained_blocks": TRAINED}
    texts = {part.ids[i]: part[i] for part in (INFERENCE, EVALUATION) for i in range(len(part))}
    assert sorted(hidden) == sorted(texts)
    for name, found in hidden.items():
        assert found.dtype == (torch.bfloat16 if precision == "bf16" else torch.float32)
        ids = torch.from_numpy(texts[name].astype(np.int64))[None]
        with torch.no_grad(), device.accelerator(precision).autocast():
            states = language_model(ids, output_hidden_states=True).hidden_states
        expected = states[LAYERS - TRAINED][0]
        assert_near(found.float(), expected.float(), TOLERANCE[precision])


@pytest.mark.parametrize("bytes_left", [0, 100, -1, None])
def test_what_is_missing_damaged_or_no_cache_is_named(bytes_left: int | None, cache: Path) -> None:
    (part,) = cache.iterdir()
    if bytes_left is None:
        save_file({"a": torch.ones(3)}, part)
    else:
        part.write_bytes(part.read_bytes()[:bytes_left])
    with pytest.raises(UserError, match=r"no cache of hidden states, or a damaged one .*; delete"):
        Trunk(cache)


# --- kept between runs ------------------------------------------------------------------------
