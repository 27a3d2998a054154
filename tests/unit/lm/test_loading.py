"""Model cards, opening models, trained tensors, and every way in which a model can be broken."""

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
    dynamic_module_utils,
)

from mamushi.artifacts.files import read_json, sha256, write_json
from mamushi.artifacts.tensors import trained_metadata
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.lm import loading, parameters, tiny
from tests.support.models import PARTS, SIZES

CARD = shutil.ignore_patterns("card.json")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def model(family: str = "llama", seed: int = 0, **changes: int):
    settings = {"family": family, **SIZES, **changes}
    return tiny.build(settings, ["the cat sat on the mat"], seed)


def save(folder: Path, family: str = "llama", **options) -> Path:
    built, tokenizer = model(family)
    built.save_pretrained(folder, **options)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    made = {family: save(root / family, family) for family in tiny.FAMILIES}
    made["sharded"] = save(root / "sharded", max_shard_size="20KB")
    return made


@pytest.fixture
def folder(folders, tmp_path) -> Path:
    """A Llama's folder of the test's own, to break."""
    return Path(shutil.copytree(folders["llama"], tmp_path / "llama", ignore=CARD))


def look(source: Path | str, **changes) -> dict:
    options = {
        "revision": None,
        "trust_remote_code": False,
        "contaminated": False,
        **changes,
    }
    return loading.inspect("mine", str(source), **options)


def card_of(folder: Path, **changes) -> Path:
    path = folder / "card.json"
    path.unlink(missing_ok=True)
    write_json(path, {**look(folder), "source": ".", **changes})
    return path


# --- cards ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_card_of_each_family(folders, family):
    card = look(folders[family], contaminated=True)
    block = 16 * 16 * 2 + 16 * 8 * 2 + 3 * 16 * 32
    block += {"llama": 32, "qwen2": 32 + 16 + 2 * 8, "gemma2": 64}[family]
    embeddings = 280 * 16 * (2 if family == "llama" else 1)
    special = {
        "llama": {"bos_token_id": 1, "eos_token_id": 0, "pad_token_id": 0},
        "qwen2": {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0},
        "gemma2": {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0},
    }[family]
    digests = card.pop("digests")
    assert card == {
        "name": "mine",
        "source": str(folders[family]),
        "revision": None,
        "trust_remote_code": False,
        "contaminated": True,
        "model_type": family,
        "hidden_size": 16,
        "layers": 4,
        "vocabulary_size": 280,
        "max_positions": 32,
        "tied": family != "llama",
        "parameters": 4 * block + embeddings + 16,
        **special,
    }
    names = {"config.json", "generation_config.json", "model.safetensors"}
    assert digests.keys() == {*names, "tokenizer.json", "tokenizer_config.json"}
    assert all(digests[name] == sha256(folders[family] / name) for name in digests)


def test_a_model_in_shards(folders):
    shards = sorted(path.name for path in folders["sharded"].glob("model-*.safetensors"))
    assert len(shards) > 1
    card = look(folders["sharded"])
    assert {*shards, "model.safetensors.index.json"} < card["digests"].keys()
    assert card["parameters"] == look(folders["llama"])["parameters"]


def test_the_stage(folders, tmp_path, capsys):
    settings = {
        "name": "mine",
        "source": str(folders["qwen2"]),
        "revision": None,
        "trust_remote_code": False,
        "contaminated": False,
    }
    out = tmp_path / "base" / "card.json"

    def stage(**changes) -> int:
        given = json.dumps({**settings, **changes})
        return main(["model-card", "--out", str(out), "--settings", given])

    assert stage() == 0
    card = read_json(out)
    assert card.pop("provenance")["settings"] == settings
    assert card == look(folders["qwen2"])
    assert loading.open_model(out).config.model_type == "qwen2"
    out.unlink()
    capsys.readouterr()
    assert stage(source=str(tmp_path / "nowhere")) == 2
    message = capsys.readouterr().err
    assert "models.mine.source: no such folder" in message
    assert len(message.splitlines()) == 1
    assert not out.exists()


# --- opening ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_an_open_model_is_the_one_that_was_saved(folders, family):
    opened = loading.open_model(card_of(folders[family]))
    built, _ = model(family)
    own = dict(opened.named_parameters())
    assert all(torch.equal(own[name], p) for name, p in built.named_parameters())
    assert not opened.training
    assert not opened.config.use_cache
    assert parameters.count(opened).trained == 0
    attention = {"gemma2": "eager"}.get(family, "sdpa")
    assert opened.config._attn_implementation == attention
    ids = torch.arange(12)[None]
    with torch.no_grad():
        torch.testing.assert_close(opened(ids).logits, built.eval()(ids).logits)


def test_the_dtype(folders):
    opened = loading.open_model(card_of(folders["llama"]), torch.bfloat16)
    assert {p.dtype for p in opened.parameters()} == {torch.bfloat16}


def test_a_moved_folder_still_opens(folder, tmp_path):
    card_of(folder)
    moved = folder.rename(tmp_path / "elsewhere")
    assert loading.open_model(moved / "card.json").config.hidden_size == 16
    assert loading.open_tokenizer(moved / "card.json").bos_token == "<|begin_of_text|>"


def test_a_folder_that_went_away(folder):
    path = folder.parent / "card.json"
    write_json(path, look(folder))
    shutil.rmtree(folder)
    with pytest.raises(UserError, match=r"card.json: no such folder: .*llama"):
        loading.open_model(path)


@pytest.fixture
def project(folder, tmp_path, monkeypatch) -> Path:
    """A project with a model of its own under a relative path, and the model's card."""
    root = tmp_path / "project"
    shutil.copytree(folder, root / "models" / "mine")
    monkeypatch.chdir(root)
    settings = {"name": "mine", "source": "models/mine", "revision": None}
    settings |= {"trust_remote_code": False, "contaminated": False}
    out = "results/base/mine/card.json"
    assert main(["model-card", "--out", out, "--settings", json.dumps(settings)]) == 0
    return root


def test_a_copied_project_opens_its_own_model_and_a_moved_one_too(project, monkeypatch):
    card = Path("results/base/mine/card.json")
    copy = Path(shutil.copytree(project, project.parent / "copy"))
    moved = project.rename(project.parent / "moved")
    for root in (copy, moved):
        monkeypatch.chdir(root)
        assert loading._folder(card, loading.read_card(card)) == root / "models" / "mine"
    assert str(project.parent) not in card.read_text(encoding="utf-8")
    # Also where results are a link to another disk.
    (moved / "results").rename(project.parent / "disk")
    (moved / "results").symlink_to(project.parent / "disk")
    assert loading._folder(card, loading.read_card(card)) == moved / "models" / "mine"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_that_changed_after_the_card_is_not_opened(project, name):
    """In place, and with its size and its date as they were."""
    card, path = Path("results/base/mine/card.json"), project / "models" / "mine" / name
    stat = path.stat()
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for opened in (loading.open_model, loading.open_tokenizer):
        with pytest.raises(UserError) as caught:
            opened(card)
        assert str(caught.value) == (
            f"{path}: is not the file that {card} was made from; put that back, or delete the card "
            "and run again"
        )


def test_what_is_no_card(tmp_path):
    write_json(tmp_path / "card.json", {"name": "x"})
    with pytest.raises(UserError, match="not a model card"):
        loading.open_tokenizer(tmp_path / "card.json")


# --- broken models ----------------------------------------------------------------------------


def drop_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.2.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def misshape_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.2.mlp.up_proj.weight"] = torch.zeros(3, 3)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def spoil(value: float, dtype: torch.dtype) -> Callable[[Path], None]:
    """One number of one tensor, in weights of this dtype."""

    def damage(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
        tensors["model.layers.2.mlp.up_proj.weight"][3, 1] = value
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return damage


def only_pickle(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def change_config(**changes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = read_json(folder / "config.json")
        write_json(folder / "config.json", {**config, **changes})

    return change


def remove(*names: str) -> Callable[[Path], None]:
    def unlink(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return unlink


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content)


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


BROKEN = {
    "no config": (remove("config.json"), "no config.json, so this is not a model's folder; give"),
    "config is no JSON": (write("config.json", b"{x"), "config.json: not valid JSON"),
    "config names no type": (write("config.json", b"{}"), "config.json: names no model_type"),
    "unknown type": (
        change_config(model_type="nope", architectures=["NopeForCausalLM"]),
        r"not a causal language model that transformers knows \(NopeForCausalLM, model type nope",
    ),
    "other sizes": (change_config(hidden_size=32), "do not have the shapes that config.json says"),
    "no tokenizer": (
        remove("tokenizer.json", "tokenizer_config.json"),
        r"no tokenizer \(none of tokenizer.json, .*; save the model's tokenizer in the same",
    ),
    "damaged tokenizer": (write("tokenizer.json", b"{x"), "the tokenizer cannot be read"),
    "pickle alone": (only_pickle, "only pickle weights, which can run code"),
    "no weights": (remove("model.safetensors"), "no weights"),
    "truncated weights": (truncate, r"model.safetensors: damaged safetensors file \(\d+ bytes ins"),
    "empty weights": (write("model.safetensors", b""), "damaged safetensors file"),
    "text as weights": (write("model.safetensors", b"<html>" * 9), "it ends within its header"),
    "header is no JSON": (
        write("model.safetensors", struct.pack("<Q", 4) + b"{xyz"),
        "damaged safetensors file",
    ),
    "header is no table": (
        write("model.safetensors", struct.pack("<Q", 2) + b"[]"),
        "damaged safetensors file",
    ),
    "a tensor too few": (drop_tensor, "lack 1 tensors, the first is model.layers.2.mlp.up_proj.w"),
    "a weight is no number": (
        spoil(float("nan"), torch.float32),
        r"model.safetensors: the weights model.layers.2.mlp.up_proj.weight are not all finite",
    ),
    "a weight is infinite": (spoil(float("-inf"), torch.bfloat16), "up_proj.weight are not all"),
    "a tensor misshapen": (misshape_tensor, "do not have the shapes that config.json says"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_folder(folder, case):
    damage, message = BROKEN[case]
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        look(folder)
    assert str(folder) in str(caught.value)
    assert len(str(caught.value)) < 500


def test_weights_that_are_no_plain_numbers_are_left_alone(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["mask"] = torch.ones(2, dtype=torch.bool)
    tensors["none"] = torch.ones(0)
    tensors["scaled"] = torch.ones(3).to(torch.float8_e4m3fn)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert look(folder)["parameters"]


def test_a_shard_is_missing_truncated_or_not_the_one_of_the_index(folders, tmp_path):
    folder = Path(shutil.copytree(folders["sharded"], tmp_path / "m"))
    first, second = sorted(folder.glob("model-*.safetensors"))[:2]
    content = first.read_bytes()
    first.write_bytes(content[:-1])
    with pytest.raises(UserError, match=f"{first.name}: damaged safetensors file"):
        look(folder)
    shutil.copy(second, first)
    with pytest.raises(UserError, match=f"{first.name}: lacks the tensor "):
        look(folder)
    first.unlink()
    with pytest.raises(
        UserError, match=r"1 of the \d+ files that it lists are missing: \['model-0"
    ):
        look(folder)


@pytest.mark.parametrize("kind", ["bert", "t5"])
def test_models_that_are_not_causal(folder, kind):
    sizes = {"num_hidden_layers": 1, "num_layers": 1}
    if kind == "bert":
        BertForMaskedLM(BertConfig(vocab_size=280, hidden_size=12, **sizes)).save_pretrained(folder)
    else:
        T5ForConditionalGeneration(
            T5Config(vocab_size=280, d_model=8, d_ff=8, **sizes)
        ).save_pretrained(folder)
    with pytest.raises(UserError, match=f"not a causal language model .*model type {kind}"):
        look(folder)


OWN = """
from transformers import LlamaConfig, LlamaForCausalLM

class OwnConfig(LlamaConfig):
    model_type = "own"

class Own(LlamaForCausalLM):
    config_class = OwnConfig
"""


def test_code_that_comes_with_a_model_runs_only_when_trusted(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    names = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.Own"}
    change_config(model_type="own", architectures=["Own"], auto_map=names)(folder)
    ran = f"open({str(folder / 'ran')!r}, 'w').close()\n"
    (folder / "own.py").write_text(ran + OWN, encoding="utf-8")
    with pytest.raises(
        UserError, match=r"not run unless you trust it; .*trust_remote_code to true"
    ):
        look(folder)
    assert not (folder / "ran").exists()
    card = look(folder, trust_remote_code=True)
    assert (folder / "ran").exists()
    assert card["model_type"] == "own"
    assert card["digests"]["own.py"] == sha256(folder / "own.py")
    write_json(folder / "card.json", card)
    assert type(loading.open_model(folder / "card.json")).__name__ == "Own"
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    with pytest.raises(UserError, match=r"own\.py: is not the file that .*card.json was made from"):
        loading.open_model(folder / "card.json")


def test_more_positions_than_the_model_has(folders):
    positions = look(folders["llama"])["max_positions"]
    loading.check_length(32, positions, "here")
    with pytest.raises(UserError, match="33 tokens are asked for, but the model has 32 positions"):
        loading.check_length(33, positions, "here")


# --- the hub ----------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Path:
    """An empty hub cache on a machine without a network."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def test_a_model_in_the_hubs_cache(hub, folders, tmp_path):
    snapshot = hub / "models--some--model" / "snapshots" / COMMIT
    shutil.copytree(folders["llama"], snapshot, ignore=CARD)
    card = look("some/model", revision=COMMIT)
    assert (card["source"], card["revision"]) == ("some/model", COMMIT)
    assert card["digests"] == look(snapshot)["digests"]
    write_json(tmp_path / "card.json", card)
    assert loading.open_model(tmp_path / "card.json").config.model_type == "llama"
    assert loading.open_tokenizer(tmp_path / "card.json").eos_token == "<|end_of_text|>"


def test_the_hub_cannot_be_reached(hub):
    with pytest.raises(UserError) as caught:
        look("some/model", revision=COMMIT)
    assert str(caught.value) == (
        "models.mine.source: some/model: no such folder, not in the hub's cache, and the hub "
        "cannot be reached; put a local folder into models.NAME.source, or a cache with some/model "
        "into HF_HOME"
    )


@pytest.mark.parametrize("source", ["/no/such/folder", "./model", "~/nothing/here", "a/b/c"])
def test_a_path_is_not_looked_up_on_the_hub(hub, source):
    with pytest.raises(UserError, match=f"models.mine.source: no such folder: {source}; check"):
        look(source)


# --- trained tensors --------------------------------------------------------------------------


def trained(family: str, seed: int = 1, **changes):
    built, _ = model(family, seed, **changes)
    parameters.freeze(built, {**PARTS, "trained_blocks": 2})
    return built


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_trained_tensors_alone_come_back(family, tmp_path):
    source, target = trained(family, 1), trained(family, 2)
    before = {name: p.clone() for name, p in target.named_parameters()}
    loading.save_trained(tmp_path / "t.safetensors", source, {"b": [1], "a": "é"})
    loading.load_trained(tmp_path / "t.safetensors", target)
    own = dict(source.named_parameters())
    for name, parameter in target.named_parameters():
        expected = own[name] if parameter.requires_grad else before[name]
        assert torch.equal(parameter, expected), name
    assert trained_metadata(tmp_path / "t.safetensors") == {"a": "é", "b": [1]}
    stored = load_file(tmp_path / "t.safetensors")
    assert stored.keys() == {name for name, p in own.items() if p.requires_grad}
    assert target.lm_head.weight.equal(source.lm_head.weight)
    loading.save_trained(tmp_path / "again", source, {"a": "é", "b": [1]})
    assert (tmp_path / "again").read_bytes() == (tmp_path / "t.safetensors").read_bytes()


def test_tensors_are_stored_in_fp32_and_loaded_in_the_models_own_dtype(tmp_path):
    source, target = trained("llama", 1), trained("llama", 2).to(torch.bfloat16)
    loading.save_trained(tmp_path / "t", source.to(torch.bfloat16), {})
    assert {t.dtype for t in load_file(tmp_path / "t").values()} == {torch.float32}
    loading.load_trained(tmp_path / "t", target)
    assert target.lm_head.weight.dtype == torch.bfloat16
    assert torch.equal(target.lm_head.weight, source.lm_head.weight)


def test_open_trained_lays_tensors_over_the_base(folder, tmp_path):
    settings = {**PARTS, "trained_blocks": 2}
    source = trained("llama", 1)
    loading.save_trained(tmp_path / "t", source, {})
    card = card_of(folder)
    base = loading.open_trained(card, None, settings)
    laid = loading.open_trained(card, tmp_path / "t", settings)
    changed = {
        name
        for (name, p), (_, q) in zip(base.named_parameters(), laid.named_parameters(), strict=True)
        if not torch.equal(p, q)
    }
    # Norms are ones in every random model.
    assert changed == {n for n in parameters.trained_names(base, settings) if "norm" not in n}
    assert parameters.count(laid) == parameters.count(source) == parameters.count(base)
    assert not laid.training


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (
            lambda: trained("qwen2"),
            "lacks tensors that the model trains: 6, the first is model.layers.2.self_attn.k_proj",
        ),
        (
            lambda: model("llama")[0].requires_grad_(False),
            r"has tensors that the model does not train: \d+, the first is lm_head.weight",
        ),
        (
            lambda: trained("llama", intermediate_size=48),
            r"down_proj.weight is \(16, 32\), but the model has \(16, 48\)",
        ),
    ],
    ids=["other family", "other settings", "other sizes"],
)
def test_tensors_of_another_model(tmp_path, prepare, message):
    loading.save_trained(tmp_path / "t", trained("llama", 1), {})
    target = prepare()
    before = {name: p.clone() for name, p in target.named_parameters()}
    with pytest.raises(UserError, match=message):
        loading.load_trained(tmp_path / "t", target)
    assert all(torch.equal(before[name], p) for name, p in target.named_parameters())


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_damaged_trained_tensors(tmp_path, kept):
    path = tmp_path / "t.safetensors"
    loading.save_trained(path, trained("llama"), {})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"t\.safetensors: damaged"):
        loading.load_trained(path, trained("llama"))


def test_missing_trained_tensors(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        loading.load_trained(tmp_path / "t", trained("llama"))


def test_a_full_disk_keeps_the_old_tensors(tmp_path, monkeypatch):
    path = tmp_path / "t.safetensors"
    loading.save_trained(path, trained("llama"), {})
    old = path.read_bytes()

    def full(tensors, part, metadata):
        Path(part).write_bytes(b"half")
        message = "Error while serializing: I/O error: No space left on device (os error 28)"
        raise SafetensorError(message)

    monkeypatch.setattr(loading, "save_file", full)
    with pytest.raises(UserError, match="no space left while writing it; nothing was changed"):
        loading.save_trained(path, trained("llama", 2), {})
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
