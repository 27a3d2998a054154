"""Folders of models as people have them: each works, or one line says why not before any job."""

from __future__ import annotations

import shutil
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


def sharded(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    model = AutoModelForCausalLM.from_pretrained(folder.with_name("plain"))
    model.save_pretrained(folder, max_shard_size="20KB")
    assert (folder / "model.safetensors.index.json").is_file()


def stored_in(dtype: torch.dtype) -> Change:
    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        stored = {name: tensor.to(dtype) for name, tensor in tensors.items()}
        save_file(stored, folder / "model.safetensors", {"format": "pt"})

    return change


def slow(folder: Path) -> None:
    """The tokenizer by its words and merges, as GPT-2's."""
    tokenizer = folders.read_tokenizer(folder)
    (folder / "tokenizer.json").unlink()
    tokenizer.backend_tokenizer.model.save(str(folder))
    special = {"bos_token": tokenizer.bos_token, "eos_token": tokenizer.eos_token}
    special |= {"tokenizer_class": "GPT2Tokenizer", "unk_token": tokenizer.eos_token}
    write_json(folder / "tokenizer_config.json", {**special, "add_bos_token": True})


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
