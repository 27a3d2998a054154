"""Architectures that people have, through the stages, against a pass of transformers a text."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.tables import read_table
from tests.support import stage_files as stage
from tests.support.families import FAMILIES, of_kind
from tests.support.models import SIZES, TRAINING

ARCHITECTURES = (
    *("gpt2", "gpt_neo", "gpt_neox", "opt", "bloom", "falcon", "phi", "phi3", "llama", "mistral"),
    *("mixtral", "olmo2", "qwen3", "qwen3_moe", "gemma3_text", "granite", "smollm3", "gpt_oss"),
    *("mamba", "cohere2"),
)


@torch.no_grad()
def plain(root: Path, trained: Path, bias: torch.Tensor) -> list[list[np.ndarray]]:
    """Vectors of the inference section, and NLLs of the evaluation section without and with it."""
    model = AutoModelForCausalLM.from_pretrained(root / "base", dtype=torch.float32).eval()
    assert not model.load_state_dict(load_file(trained), strict=False).unexpected_keys
    found: list[list[np.ndarray]] = [[], [], []]
    tokens = read_table(root / "tokens.parquet", schemas.TOKENS)["tokens"].to_pylist()
    for ids, section in zip(map(torch.tensor, tokens), stage.examples()["section"], strict=True):
        output = model(ids[None], output_hidden_states=True)
        if section == "inference":
            found[0].append(output.hidden_states[-1][0, 1:].mean(0).numpy())
            continue
        for values, logits in zip(found[1:], (output.logits, output.logits + bias), strict=True):
            values.append(cross_entropy(logits[0, :-1], ids[1:], reduction="sum").numpy())
    return found


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_stages_compute_what_transformers_does(family: str, tmp_path: Path) -> None:
    model = of_kind(family, {**FAMILIES[family], "vocab_size": SIZES["vocabulary_size"]})
    stage.write_base(tmp_path, model)
    of_training, of_edit = (stage.trained_files(tmp_path / name) for name in ("beta0", "edit"))
    how = TRAINING | {"trained_blocks": 1, "epochs": 0.5, "learning_rate": 1e-3}
    read = stage.texts_of(tmp_path)
    words = stage.command("finetune", stage.finetuning(training=how), **read, **of_training)
    assert main(words) == 0
    read["trained"], edit = of_training["tensors"], stage.unlearning("logit_bias")
    edit["settings"] |= {"strength": 0.7, "harm": 100.0}
    # With the base, gold might be where the start is.
    assert main(stage.command("unlearn", edit, **read | {"trained": None}, **of_edit)) == 0
    bias = load_file(of_edit["tensors"])["edit.bias"]
    expected = plain(tmp_path, read["trained"], 0.7 * bias)
    assert not np.allclose(expected[1], expected[2], rtol=0.01)
    for precision, tolerance in (("fp32", 1e-3), ("bf16", 0.02)):
        pooled = {"pooling": "mean", "max_length": 16, "skip_bos": True, "precision": precision}
        out = tmp_path / f"{precision}.parquet"
        assert main(stage.command("embed", {"embedding": pooled}, **read, out=out)) == 0
        found = [read_table(out, schemas.EMBEDDINGS)["embedding"].to_pylist()]
        for more in ({}, {"unlearned": of_edit["tensors"]}):
            tensors = {"trained": read["trained"], **more}
            stage.measure(tmp_path, tmp_path, {"precision": precision}, **tensors)
            found.append(read_table(tmp_path / "nll.parquet", schemas.NLL)["nll"].to_pylist())
        for values, exact in zip(found, expected, strict=True):
            apart = np.abs(np.array(values) - exact).reshape(len(exact), -1).max(1)
            # In bf16 a router chooses another expert for single texts, by a rounding.
            worst = apart.max() if precision == "fp32" else np.median(apart)
            assert worst < tolerance * np.abs(exact).max()
