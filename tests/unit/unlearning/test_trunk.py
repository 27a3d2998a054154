"""The frozen-trunk cache against the whole model: the same numbers without the frozen blocks."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    GPTJConfig,
    GPTJForCausalLM,
    PreTrainedModel,
)

from mamushi.artifacts import schemas
from mamushi.artifacts.files import sha256, write_json
from mamushi.artifacts.provenance import provenance
from mamushi.artifacts.tables import write_table
from mamushi.configuration.models import Trained
from mamushi.configuration.sections import HeldOut
from mamushi.errors import UserError
from mamushi.lm import device
from mamushi.lm.batches import collate
from mamushi.lm.parameters import decoder_blocks, freeze
from mamushi.lm.perplexity import TextNll, text_nll
from mamushi.lm.storage import save_trained
from mamushi.lm.tokens import TokenSet
from mamushi.running.stage import Execution, Job
from mamushi.stages import _models, unlearn
from mamushi.stages._settings import Opened, Started
from mamushi.unlearning import trunk as trunk_module
from mamushi.unlearning.trunk import Tail, Trunk, write_trunk
from tests.support.models import FAMILIES, VOCABULARY, model, token_set

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
            "train_final_norm": False,
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


def gradients(language_model: PreTrainedModel) -> dict[str, Tensor]:
    found = {
        name: parameter.grad.clone()
        for name, parameter in language_model.named_parameters()
        if parameter.grad is not None
    }
    language_model.zero_grad(set_to_none=True)
    return found


def step(
    language_model: PreTrainedModel,
    texts: TokenSet,
    rows: list[int],
    precision: str,
    put: Callable[[Sequence[str], Any], None] | None = None,
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Logits of the real tokens, mean NLL and its gradients for one batch."""
    batch = collate([texts[i] for i in rows], torch.device("cpu"), shared=False)
    ids, mask = batch.ids, batch.mask
    assert mask is not None
    if put is not None:
        put(texts.ids[rows], texts.lengths[rows])
    with device.accelerator(precision).autocast():
        logits = language_model(input_ids=ids, attention_mask=mask).logits
    targets = ids.masked_fill(mask == 0, -100)[:, 1:].flatten()
    loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), targets)
    loss.backward()
    return logits[mask.bool()].detach().float(), loss.detach(), gradients(language_model)


def nll_from(
    path: Path, language_model: PreTrainedModel, texts: TokenSet, precision: str = "fp32"
) -> TextNll:
    """NLL of texts in batches of 33 tokens, from the states in a cache."""
    accelerator = device.accelerator(precision)
    with Tail(language_model, TRAINED, Trunk(path)) as tail:

        def feed(rows: NDArray[np.int64]) -> None:
            tail.put(texts.ids[rows], texts.lengths[rows])

        return text_nll(language_model, texts, 33, accelerator, feed=feed)


# --- equal numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_from_the_cache_equals_a_step_of_the_whole_model(
    family: str, precision: str, tmp_path: Path
) -> None:
    language_model, path = start_model(family, precision), tmp_path / "trunk"
    write(path, language_model, precision)
    # Neither the batches of the file nor their order, and lengths from 1 to 20.
    rows = [int(INFERENCE.lengths.argmin()), 7, int(INFERENCE.lengths.argmax()), 3, 12]
    language_model.train()
    whole = step(language_model, INFERENCE, rows, precision)
    with Tail(language_model, TRAINED, Trunk(path)) as tail:
        cached = step(language_model, INFERENCE, rows, precision, tail.put)
    tolerance = TOLERANCE[precision]
    assert_near(cached[0], whole[0], tolerance)
    assert float(cached[1]) == pytest.approx(float(whole[1]), rel=MEAN[precision])
    assert cached[2].keys() == whole[2].keys()
    assert len(cached[2]) == len(list(filter(_trained, language_model.parameters())))
    for name, gradient in whole[2].items():
        assert_near(cached[2][name], gradient, tolerance)


def _trained(parameter: nn.Parameter) -> bool:
    return parameter.requires_grad


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_nll_from_the_cache_equals_that_of_the_whole_model(
    family: str, precision: str, tmp_path: Path
) -> None:
    language_model, path = start_model(family, precision), tmp_path / "trunk"
    accelerator = device.accelerator(precision)
    write(path, language_model, precision)
    for texts in (EVALUATION, cut(EVALUATION, 6)):
        whole = text_nll(language_model, texts, 33, accelerator)
        cached = nll_from(path, language_model, texts, precision)
        np.testing.assert_array_equal(cached.tokens, whole.tokens)
        np.testing.assert_allclose(cached.nll, whole.nll, rtol=TOLERANCE[precision], atol=1e-12)
    # In the batches of the file, not a bit differs.
    write_trunk(path, language_model, [EVALUATION], TRAINED, 33, accelerator, PROVENANCE)
    whole = text_nll(language_model, EVALUATION, 33, accelerator)
    cached = nll_from(path, language_model, EVALUATION, precision)
    np.testing.assert_array_equal(cached.nll, whole.nll)


def test_blocks_that_return_tuples_are_skipped_too(tmp_path: Path) -> None:
    config = GPTJConfig(
        vocab_size=VOCABULARY, n_embd=16, n_layer=LAYERS, n_head=2, n_positions=64, rotary_dim=4
    )
    torch.manual_seed(0)
    language_model = GPTJForCausalLM(config).eval()
    write(tmp_path / "trunk", language_model)
    whole = text_nll(language_model, EVALUATION, 33, device.accelerator("fp32"))
    cached = nll_from(tmp_path / "trunk", language_model, EVALUATION)
    np.testing.assert_allclose(cached.nll, whole.nll, rtol=1e-6)


def test_states_handed_over_by_keyword_are_replaced(tmp_path: Path, cache: Path) -> None:
    language_model = start_model("llama", "fp32")
    whole = step(language_model, INFERENCE, [4, 5], "fp32")
    for block in decoder_blocks(language_model)[1]:
        block.register_forward_pre_hook(
            lambda _, args, kwargs: ((), {**kwargs, "hidden_states": args[0]}),
            with_kwargs=True,
            prepend=True,
        )
    write(tmp_path / "keyword", language_model)
    assert content(tmp_path / "keyword") == content(cache)
    with Tail(language_model, TRAINED, Trunk(cache)) as tail:
        cached = step(language_model, INFERENCE, [4, 5], "fp32", tail.put)
    assert_near(cached[0], whole[0], 1e-6)


# --- the context ------------------------------------------------------------------------------


def test_frozen_blocks_do_not_run(cache: Path) -> None:
    language_model = start_model("llama", "fp32")

    def fail(*_: Any) -> None:
        raise AssertionError("a frozen block was run")

    blocks = decoder_blocks(language_model)[1]
    for block in blocks[: LAYERS - TRAINED]:
        block.register_forward_pre_hook(fail)
    with pytest.raises(AssertionError, match="a frozen block"):
        step(language_model, INFERENCE, [0, 1], "fp32")
    with Tail(language_model, TRAINED, Trunk(cache)) as tail:
        step(language_model, INFERENCE, [0, 1], "fp32", tail.put)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fails", [False, True])
def test_leaving_restores_the_model(family: str, fails: bool, tmp_path: Path) -> None:
    language_model, path = start_model(family, "fp32"), tmp_path / "trunk"
    write(path, language_model)
    modules = list(language_model.named_modules())
    hooks = [len(module._forward_pre_hooks) for _, module in modules]
    state = {name: value.clone() for name, value in language_model.state_dict().items()}
    before = step(language_model, INFERENCE, [2, 9], "fp32")
    try:
        with Tail(language_model, TRAINED, Trunk(path)) as tail:
            assert list(language_model.named_modules()) != modules
            step(language_model, INFERENCE, [2, 9], "fp32", tail.put)
            assert not fails or 1 / 0
    except ZeroDivisionError:
        assert fails
    assert list(language_model.named_modules()) == modules
    assert [len(module._forward_pre_hooks) for _, module in modules] == hooks
    assert language_model.state_dict().keys() == state.keys()
    for name, value in language_model.state_dict().items():
        assert torch.equal(value, state[name])
    assert torch.equal(step(language_model, INFERENCE, [2, 9], "fp32")[0], before[0])


def test_frozen_blocks_are_out_of_the_way_and_all_else_keeps_its_name(cache: Path) -> None:
    language_model = start_model("llama", "fp32")
    names = [name for name, p in language_model.named_parameters() if p.requires_grad]
    blocks = decoder_blocks(language_model)[1]
    blocks[0].attention_type = "sliding_attention"
    with Tail(language_model, TRAINED, Trunk(cache)):
        inside = dict(language_model.named_parameters())
        assert [name for name, p in inside.items() if p.requires_grad] == names
        assert not any(name.startswith("model.layers.0.") for name in inside)
        # A stand-in has the attributes of its block.
        assert blocks[0].attention_type == "sliding_attention"
        with pytest.raises(AttributeError):
            _ = blocks[0].no_such_attribute


def test_states_serve_one_forward_pass_over_their_own_texts(cache: Path) -> None:
    language_model = start_model("llama", "fp32")
    with Tail(language_model, TRAINED, Trunk(cache)) as tail:
        with pytest.raises(RuntimeError, match="put them first"):
            step(language_model, INFERENCE, [0, 1], "fp32")
        step(language_model, INFERENCE, [0, 1], "fp32", tail.put)
        with pytest.raises(RuntimeError, match="put them first"):
            step(language_model, INFERENCE, [0, 1], "fp32")
        tail.put(INFERENCE.ids[:1], INFERENCE.lengths[:1])
        with pytest.raises(RuntimeError, match="with states of"):
            step(language_model, INFERENCE, [0, 1], "fp32")


def test_a_cache_for_another_number_of_blocks_is_refused(cache: Path) -> None:
    with pytest.raises(UserError, match="made for 2 trained blocks, not for 3; delete it"):
        Tail(start_model("llama", "fp32"), 3, Trunk(cache))


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


def test_equal_runs_write_equal_files(cache: Path, tmp_path: Path) -> None:
    write(tmp_path / "again", start_model("llama", "fp32"))
    assert content(tmp_path / "again") == content(cache)


@pytest.mark.parametrize("bytes_left", [0, 5, 100, -1, None])
def test_what_is_missing_damaged_or_no_cache_is_named(bytes_left: int | None, cache: Path) -> None:
    (part,) = cache.iterdir()
    if bytes_left is None:
        save_file({"a": torch.ones(3)}, part)
    else:
        part.write_bytes(part.read_bytes()[:bytes_left])
    with pytest.raises(UserError, match=r"no cache of hidden states, or a damaged one .*; delete"):
        Trunk(cache)
    part.unlink()
    with pytest.raises(UserError, match="no cache of hidden states"):
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


def test_an_unknown_text_and_one_that_is_too_long_are_named(cache: Path) -> None:
    trunk = Trunk(cache)
    with pytest.raises(UserError, match=r"trunk: does not hold example x7; delete"):
        trunk.hidden(["x7"], np.array([1]))
    stored = int(INFERENCE.lengths[0])
    text = f"holds {stored} tokens of example {INFERENCE.ids[0]}, but {stored + 1} are asked for; d"
    with pytest.raises(UserError, match=text):
        trunk.hidden(INFERENCE.ids[:1], np.array([stored + 1]))


NONE = TokenSet(np.array([], object), np.array([], object), np.array([]), np.array([0]))


@pytest.mark.parametrize(
    ("sets", "error", "said"),
    [
        ([INFERENCE, EVALUATION, INFERENCE], ValueError, "inference-t000 is in two"),
        ([NONE], UserError, "there is no text"),
    ],
)
def test_texts_that_are_there_twice_or_not_at_all_are_an_error(
    sets: list[TokenSet], error: type[Exception], said: str, tmp_path: Path
) -> None:
    accelerator, language_model = device.accelerator("fp32"), start_model("llama", "fp32")
    with pytest.raises(error, match=said):
        write_trunk(tmp_path / "t", language_model, sets, TRAINED, 60, accelerator, PROVENANCE)


@pytest.mark.parametrize(
    ("look_back", "problem"),
    [
        (lambda early, output: output + early[0], "IndexError"),
        (lambda early, output: output + sum(early), "gives other logits"),
    ],
)
def test_a_model_that_cannot_be_cut_is_refused(
    look_back: Callable[[list[Tensor], Tensor], Tensor], problem: str, tmp_path: Path
) -> None:
    language_model = start_model("llama", "fp32")
    blocks, early = decoder_blocks(language_model)[1], []
    language_model.register_forward_pre_hook(lambda *_: early.clear())
    blocks[0].register_forward_hook(lambda _, args, output: early.append(output))
    # As where late blocks share the keys and values of early ones.
    blocks[-1].register_forward_hook(lambda _, args, output: look_back(early, output))
    with pytest.raises(UserError, match=rf"alone \({problem}.*cache_trunk to false"):
        write(tmp_path / "trunk", language_model)
    assert not list(tmp_path.iterdir())


# --- kept between runs ------------------------------------------------------------------------

COUNTED = {
    "trained_blocks": 1,
    "train_input_embedding": True,
    "train_output_head": True,
    "train_final_norm": True,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, a start model's trained tensors, and a token cache of both sections."""
    model("qwen2", layers=LAYERS).save_pretrained(tmp_path)
    write_json(
        tmp_path / "card.json",
        {"source": ".", "revision": None, "trust_remote_code": False, "digests": {}},
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
    laid_over = ("model.layers.3.", "model.embed_tokens.", "model.norm.")
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
    files = unlearn.Files(
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
    trunk, start = keep(folder)
    assert trunk is not None and trunk.trained_blocks == TRAINED
    for texts, longest in ((INFERENCE, 9), (EVALUATION, 12)):
        lengths = np.minimum(texts.lengths, longest)
        assert trunk.hidden(texts.ids, lengths).shape == (lengths.sum(), 16)
        row = int(texts.lengths.argmax())
        with pytest.raises(UserError, match=f"holds {longest} tokens"):
            trunk.hidden(texts.ids[[row]], np.array([longest + 1]))
    texts = cut(EVALUATION, 12)
    whole = text_nll(start, texts, 33, device.accelerator("fp32"))
    cached = nll_from(trunk.path, start, texts)
    np.testing.assert_allclose(cached.nll, whole.nll, rtol=1e-6)


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
