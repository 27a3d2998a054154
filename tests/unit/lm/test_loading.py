"""Model cards, opening models, trained tensors, and every way in which a model can be broken."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from mamushi.cli import main
from mamushi.errors import UserError, error_line
from mamushi.io.files import write_json
from mamushi.lm import loading, tiny
from tests.support.models import SIZES

CARD = shutil.ignore_patterns("card.json")


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
    options = {"revision": None, "contaminated": False, **changes}
    return loading.inspect("mine", str(source), **options)


def card_of(folder: Path, **changes) -> Path:
    path = folder / "card.json"
    path.unlink(missing_ok=True)
    write_json(path, {**look(folder), "source": ".", **changes})
    return path


# --- opening ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [*tiny.FAMILIES, "sharded"])
def test_an_open_model_is_the_one_that_was_saved(folders, family):
    opened = loading.open_model(card_of(folders[family]))
    built, _ = model("llama" if family == "sharded" else family)
    own = dict(opened.named_parameters())
    assert all(torch.equal(own[name], p) for name, p in built.named_parameters())
    assert not opened.training
    assert not opened.config.use_cache
    assert opened.num_parameters(only_trainable=True) == 0
    attention = {"gemma2": "eager"}.get(family, "sdpa")
    assert opened.config._attn_implementation == attention
    ids = torch.arange(12)[None]
    with torch.no_grad():
        torch.testing.assert_close(opened(ids).logits, built.eval()(ids).logits)


@pytest.fixture
def project(folder, tmp_path, monkeypatch) -> Path:
    """A project with a model of its own under a relative path, and the model's card."""
    root = tmp_path / "project"
    shutil.copytree(folder, root / "models" / "mine")
    monkeypatch.chdir(root)
    settings = {"name": "mine", "source": "models/mine", "revision": None}
    settings |= {"contaminated": False, "inputs": {}}
    assert main(["model-card", "--out", str(MINE), "--settings", json.dumps(settings)]) == 0
    return root


MINE = Path("results/base/mine/card.json")


def test_a_moved_project_opens_its_own_model(project, monkeypatch):
    moved = project.rename(project.parent / "moved")
    monkeypatch.chdir(moved)
    assert loading.folder_of(MINE) == moved / "models" / "mine"
    assert str(project.parent) not in MINE.read_text(encoding="utf-8")
    # Also where results are a link to another disk.
    (moved / "results").rename(project.parent / "disk")
    (moved / "results").symlink_to(project.parent / "disk")
    assert loading.folder_of(MINE) == moved / "models" / "mine"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_that_changed_after_the_card_is_not_opened(project, name):
    """In place, and with its size and its date as they were."""
    path = project / "models" / "mine" / name
    stat = path.stat()
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for opened in (loading.open_model, loading.open_tokenizer):
        with pytest.raises(UserError, match=f"{name}: is not the file that {MINE} was made from"):
            opened(MINE)


# --- broken models ----------------------------------------------------------------------------


NAME = "model.layers.2.mlp.up_proj.weight"


def drop_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors[NAME]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(**changes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


BROKEN = {
    "are quantised": change_config(quantization_config={"quant_method": "gptq"}),
    r"holds adapters \(LoRA\)": lambda folder: (folder / "adapter_config.json").write_text("{}"),
    f"lack 1 tensors, the first is {NAME}": drop_a_tensor,
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_folder(folder, message):
    BROKEN[message](folder)
    with pytest.raises(Exception, match=message) as caught:
        look(folder)
    assert str(folder) in error_line(caught.value)


def test_code_that_comes_with_a_model_is_never_run(folder):
    names = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.Own"}
    change_config(model_type="own", architectures=["Own"], auto_map=names)(folder)
    ran = f"open({str(folder / 'ran')!r}, 'w').close()\n"
    (folder / "own.py").write_text(ran, encoding="utf-8")
    with pytest.raises(UserError, match="not a causal language model that transformers knows"):
        look(folder)
    # Nor beside a type that transformers has itself.
    change_config(model_type="llama", architectures=["LlamaForCausalLM"])(folder)
    assert look(folder)["model_type"] == "llama"
    assert not (folder / "ran").exists()
