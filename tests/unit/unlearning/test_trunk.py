"""The frozen-trunk cache against the whole model: the same numbers without the frozen blocks."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from mamushi.config.models import Trained
from mamushi.config.sections import HeldOut
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.files import sha256, write_json
from mamushi.io.provenance import provenance
from mamushi.io.tables import write_table
from mamushi.lm import device
from mamushi.lm.batches import collate
from mamushi.lm.loss import TokenLoss
from mamushi.lm.parameters import decoder_blocks, freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.storage import save_trained
from mamushi.lm.tokens import TokenSet
from mamushi.running.stage import Execution, Job
from mamushi.stages import _models, unlearn
from mamushi.stages._settings import Opened
from mamushi.stages.unlearn import Started
from mamushi.unlearning import trunk as trunk_module
from mamushi.unlearning.trunk import Trunk, separable, starting_from, write_trunk
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


@pytest.mark.parametrize(("trained", "expected"), [(0, False), (2, True), (LAYERS, False)])
def test_a_model_is_cut_before_its_trained_blocks(trained: int, expected: bool) -> None:
    found = model("llama", layers=LAYERS)
    assert separable(found, trained) == expected
    # Of a type that is not known to need nothing else.
    found.config.model_type = "gptj"
    assert not separable(found, trained)


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


def content(path: Path) -> list[bytes]:
    """What the files of a cache hold."""
    return [part.read_bytes() for part in sorted(path.iterdir())]


@pytest.mark.parametrize("bytes_left", [0, 100, -1, None])
def test_what_is_missing_damaged_or_no_cache_is_named(bytes_left: int | None, cache: Path) -> None:
    (part,) = cache.iterdir()
    if bytes_left is None:
        save_file({"a": torch.ones(3)}, part)
    else:
        part.write_bytes(part.read_bytes()[:bytes_left])
    with pytest.raises(UserError, match=r"no cache of hidden states, or a damaged one .*; delete"):
        Trunk(cache)


def no_space(*_: Any) -> None:
    raise SafetensorError("No space left on device")


@pytest.mark.parametrize(
    ("where", "instead", "message"),
    [
        ("shutil.disk_usage", lambda _: SimpleNamespace(free=10), r"needs 0\.0 GB, .*cache_trunk"),
        ("mamushi.unlearning.trunk.save_file", no_space, "cannot be written .No space left"),
    ],
)
def test_a_disk_without_room_is_named_and_nothing_is_left(
    where: str, instead: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, instead)
    with pytest.raises(UserError, match=message):
        write(tmp_path / "trunk", start_model("llama", "fp32"))
    assert not list(tmp_path.iterdir())


def test_a_text_that_is_not_there_and_one_that_is_longer_are_named(cache: Path) -> None:
    with pytest.raises(UserError, match=r"trunk: holds 0 tokens of example x7, but 1 .*; delete"):
        Trunk(cache).hidden(["x7"], [1])
    with pytest.raises(UserError, match="but 99 are asked for"):
        Trunk(cache).hidden(INFERENCE.ids[:1], [99])


# --- kept between runs ------------------------------------------------------------------------

COUNTED = {
    "trained_blocks": 1,
    "train_input_embedding": True,
    "train_output_head": True,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, a start model's trained tensors, and a token cache of both sections."""
    model("qwen2", layers=LAYERS).save_pretrained(tmp_path)
    write_json(
        tmp_path / "card.json",
        {"source": ".", "revision": None, "digests": {}},
    )
    other = model("qwen2", seed=1, layers=LAYERS)
    freeze(other, COUNTED)
    save_trained(tmp_path / "trained.safetensors", other, {})
    sections = {"inference": INFERENCE, "evaluation": EVALUATION}
    ids = [i for texts in sections.values() for i in texts.ids]
    examples = {
        "id": ids,
        "text": ids,
        "domain": [d for texts in sections.values() for d in texts.domains],
        "section": [name for name, texts in sections.items() for _ in range(len(texts))],
        "log_density_ratio": pa.nulls(len(ids), pa.float64()),
        "group": pa.nulls(len(ids), pa.string()),
    }
    write_table(tmp_path / "examples.parquet", schemas.EXAMPLES, examples)
    rows = [texts[i].tolist() for texts in sections.values() for i in range(len(texts))]
    write_table(
        tmp_path / "tokens.parquet",
        schemas.TOKENS,
        {"id": ids, "tokens": pa.array(rows, pa.list_(pa.int32()))},
        metadata={"max_length": 20},
    )
    return tmp_path


def settings_of(precision: str, training: dict[str, Any] | None, **more: Any) -> Started:
    start = Opened(training=training and Trained(**training), precision=precision)
    evaluation = HeldOut(max_length=12)
    return Started(
        **{"start": start, "trained_blocks": TRAINED, "max_length": 9, **more},
        evaluation=evaluation,
    )


def opened_from(folder: Path, settings: Started, trained: str | None = None) -> PreTrainedModel:
    path = folder / trained if trained else None
    files = _models.ModelFiles(model_card=folder / "card.json", trained=path)
    return _models.opened(files, settings.start, settings, 0)[0]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("trained", ["trained.safetensors", None])
def test_a_start_model_trains_its_last_blocks_alone(
    precision: str, trained: str | None, folder: Path
) -> None:
    found = opened_from(folder, settings_of(precision, COUNTED if trained else None), trained)
    base = dict(model("qwen2", layers=LAYERS).named_parameters())
    other = dict(model("qwen2", seed=1, layers=LAYERS).named_parameters())
    forward = torch.bfloat16 if precision == "bf16" else torch.float32
    laid_over = ("model.layers.3.", "model.embed_tokens.")
    for name, parameter in found.named_parameters():
        last = name.startswith(("model.layers.2.", "model.layers.3."))
        assert parameter.requires_grad == last
        started = trained is not None and name.startswith(laid_over)
        assert parameter.dtype == (torch.float32 if last or started else forward)
        expected = other if started else base
        assert torch.equal(parameter, expected[name].to(parameter.dtype))


def test_more_blocks_than_there_are_is_told_by_the_setting_of_unlearning(folder: Path) -> None:
    with pytest.raises(UserError, match=r"unlearning\.trained_blocks: asks for 5 .* to 4 or fewer"):
        opened_from(folder, settings_of("fp32", None, trained_blocks=5))


def keep(
    folder: Path, name: str = "trained.safetensors", **execution: Any
) -> tuple[Trunk | None, PreTrainedModel]:
    """The trunk that a run from the start model ``name`` gets, and that model."""
    inputs = {name: folder / f"{name}.parquet" for name in ("examples", "tokens")}
    inputs |= {"model_card": folder / "card.json", "trained": folder / name}
    files = unlearn.UnlearnFiles(
        **inputs,
        trunk=folder / "cache" / "trunk",
        **{output: folder / output for output in ("log_table", "card", "perplexity")},
    )
    settings: Any = settings_of("fp32", COUNTED)
    origin = provenance(asdict(settings), **inputs)
    job = Job("unlearn", origin, Execution(batch_tokens=50, **execution))
    start, accelerator = _models.opened(files, settings.start, settings, 0)
    texts = [cut(INFERENCE, 9), cut(EVALUATION, 12)]
    return unlearn._trunk(files, settings, job, start, accelerator, texts), start


def test_the_first_run_keeps_both_sections_at_their_lengths(folder: Path) -> None:
    trunk = keep(folder)[0]
    assert trunk is not None and trunk.trained_blocks == TRAINED
    for texts, longest in ((INFERENCE, 9), (EVALUATION, 12)):
        lengths = np.minimum(texts.lengths, longest)
        assert trunk.hidden(texts.ids, lengths).shape == (lengths.sum(), 16)


def test_later_runs_read_it_and_another_start_makes_it_anew(folder: Path) -> None:
    keep(folder)
    path = folder / "cache" / "trunk"
    first = path.stat().st_ino, path.stat().st_mtime_ns
    keep(folder)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == first
    other = model("qwen2", seed=2, layers=LAYERS)
    freeze(other, COUNTED)
    save_trained(folder / "other.safetensors", other, {})
    trunk, _ = keep(folder, "other.safetensors")
    assert trunk is not None
    assert trunk.metadata["inputs"]["trained"] == sha256(folder / "other.safetensors")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) != first


def test_a_damaged_cache_is_made_anew(folder: Path) -> None:
    keep(folder)
    path = folder / "cache" / "trunk"
    (part,) = path.iterdir()
    whole = part.read_bytes()
    part.write_bytes(whole[:-100])
    trunk, _ = keep(folder)
    assert trunk is not None
    assert content(path) == [whole]


def test_the_cache_can_be_left_out(folder: Path) -> None:
    assert keep(folder, cache_trunk=False)[0] is None
    assert not (folder / "cache").exists()
