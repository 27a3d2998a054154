"""Folders of models as people have them: each works, or one line says why not before any job."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from mamushi.cli import main
from mamushi.io.files import write_json
from mamushi.lm import folders, loading, tiny
from mamushi.lm.tokens import encode
from tests.support.models import SIZES

TEXTS = [f"words of {i} and more" for i in range(40)]
SHARDS = "model-00001-of-00002.safetensors"
SECONDS = 3.0
"""Of a processor, within which a line comes; libraries that are to be read take most of them."""
Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder, beside a table of texts."""
    root = tmp_path_factory.mktemp("kinds")
    rows = ["id,text,kind", *(f"c{i},{text},{i % 2}" for i, text in enumerate(TEXTS))]
    (root / "d.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    model, tokenizer = tiny.build({"family": "llama", **SIZES}, TEXTS, 0)
    model.save_pretrained(root / "plain")
    tokenizer.save_pretrained(root / "plain")
    return root / "plain"


def configured(**changes: object) -> Change:
    """Change what ``config.json`` says."""

    def change(folder: Path) -> None:
        path = folder / "config.json"
        write_json(path, {**json.loads(path.read_text("utf-8")), **changes})

    return change


def quantized(method: str) -> Change:
    return configured(quantization_config={"quant_method": method, "bits": 4})


def adapters(folder: Path) -> None:
    """What peft saves: no model."""
    (folder / "config.json").unlink()
    beside_adapters(folder)


def beside_adapters(folder: Path) -> None:
    write_json(folder / "adapter_config.json", {"base_model_name_or_path": "org/base"})


def sharded(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    model = AutoModelForCausalLM.from_pretrained(folder.with_name("plain"))
    model.save_pretrained(folder, max_shard_size="20KB")
    assert (folder / "model.safetensors.index.json").is_file()


def without_a_shard(folder: Path) -> None:
    sharded(folder)
    sorted(folder.glob("model-00002-of-*.safetensors"))[0].unlink()


def stored_in(dtype: torch.dtype) -> Change:
    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        stored = {name: tensor.to(dtype) for name, tensor in tensors.items()}
        save_file(stored, folder / "model.safetensors", {"format": "pt"})

    return change


def diverged(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.1.mlp.up_proj.weight"].fill_(float("nan"))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def pickled(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def slow(folder: Path) -> None:
    """The tokenizer by its words and merges, as GPT-2's."""
    tokenizer = folders.read_tokenizer(folder)
    (folder / "tokenizer.json").unlink()
    tokenizer.backend_tokenizer.model.save(str(folder))
    special = {"bos_token": tokenizer.bos_token, "eos_token": tokenizer.eos_token}
    special |= {"tokenizer_class": "GPT2Tokenizer", "unk_token": tokenizer.eos_token}
    write_json(folder / "tokenizer_config.json", {**special, "add_bos_token": True})


def sentence_piece(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(b"\x0a\x0b")


def none(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


REFUSED: dict[str, tuple[Change, str]] = {
    "LoRA": (adapters, "holds adapters (LoRA) of org/base, and not that model; merge them"),
    "LoRA beside a model": (beside_adapters, "holds adapters (LoRA) of org/base, and not that"),
    "encoder": (
        configured(model_type="bert", architectures=["BertForMaskedLM"]),
        "not a causal language model that transformers knows (BertForMaskedLM, model type bert",
    ),
    "sequence to sequence": (
        configured(model_type="t5", is_encoder_decoder=True),
        "makes one text of another (sequence to sequence, t5); choose a decoder-only model",
    ),
    **{
        method: (quantized(method), f"its weights are quantised ({method}), which cannot be")
        for method in ("awq", "gptq", "bitsandbytes")
    },
    "a shard is missing": (without_a_shard, "model-00002-of-"),
    "NaN": (diverged, "the weights model.layers.1.mlp.up_proj.weight are not all finite numbers"),
    "pickle": (pickled, "its weights are pickle files (pytorch_model.bin), which can run code"),
    "no tokenizer": (none, "no tokenizer (none of tokenizer.json, tokenizer.model"),
    "SentencePiece": (sentence_piece, "is tokenizer.model alone, for which packages are missing"),
}
WORKING: dict[str, Change] = {
    "sharded": sharded,
    "fp16": stored_in(torch.float16),
    "bf16": stored_in(torch.bfloat16),
    "slow tokenizer": slow,
}


def init(root: Path, name: str) -> int:
    table, out = str(root / "d.csv"), str(root / f"{name}.yaml")
    words = ["init", table, "--text", "text", "--id", "id", "--forget", "kind == 1"]
    return main([*words, "--model", str(root / name), "--out", out])


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_before_any_job(
    case: str, plain: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change, line = REFUSED[case]
    folder = Path(shutil.copytree(plain, plain.with_name(case.replace(" ", "-"))))
    change(folder)
    monkeypatch.setattr(folders, "_is_there", lambda package: False)
    capsys.readouterr()
    start = time.process_time()
    assert init(plain.parent, folder.name) == 2
    assert time.process_time() - start < SECONDS
    said = capsys.readouterr().err
    assert line in said and folder.name in said and said.count("\n") == 1, said
    assert not (plain.parent / f"{folder.name}.yaml").exists()


@pytest.mark.parametrize("case", WORKING)
def test_it_is_the_same_model(case: str, plain: Path) -> None:
    folder = Path(shutil.copytree(plain, plain.with_name(case.replace(" ", "-"))))
    WORKING[case](folder)
    assert init(plain.parent, folder.name) == 0
    card = folder.with_suffix(".json")
    write_json(card, loading.inspect("m", str(folder), revision=None, contaminated=True))
    reader = loading.open_tokenizer(card)
    tokens = [*encode(reader, TEXTS)]
    assert tokens == [*encode(folders.read_tokenizer(plain), TEXTS)]
    ids = torch.tensor(tokens[0])[None]
    with torch.no_grad():
        found = loading.open_model(card).float()(ids).logits
        expected = AutoModelForCausalLM.from_pretrained(plain)(ids).logits
    np.testing.assert_allclose(found, expected, atol=0.01 * float(expected.abs().max()))
