"""Architectures that people have, through the stages: tokens, a training in fp32, vectors and
perplexity in bf16, an edit of the logits. Beside them what transformers alone makes of the same
weights, a text at a time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.tables import read_table, write_table
from mamushi.lm import tiny
from mamushi.registry import plugin
from tests.support.families import FAMILIES, of_kind
from tests.support.models import PARTS, TRAINING
from tests.support.stage_files import (
    WORDS,
    command,
    examples,
    finetuning,
    texts_of,
    trained_files,
    unlearning,
)

ARCHITECTURES = (
    *("gpt2", "gpt_neo", "gpt_neox", "opt", "bloom", "falcon", "phi", "phi3", "llama", "mistral"),
    *("mixtral", "olmo2", "qwen3", "qwen3_moe", "gemma3_text", "granite", "smollm3", "gpt_oss"),
    *("mamba", "cohere2"),
)
ONE = PARTS | {"trained_blocks": 1}
FP32, BF16 = 1e-3, 0.02
"""Of a vector's or a loss's size: float16, in which vectors are kept, and the forward pass."""


def write_model(family: str, root: Path, **changes: int) -> None:
    """A random model with a tokenizer, its card, examples and their tokens."""
    tokenizer = tiny.train_tokenizer(tiny.FAMILIES["llama"], [" ".join(WORDS)], 280)
    kind, options = family.partition(" ")[0], FAMILIES[family]
    of_kind(kind, {**options, "vocab_size": len(tokenizer), **changes}).save_pretrained(
        root / "base"
    )
    tokenizer.save_pretrained(root / "base")
    write_table(root / "examples.parquet", schemas.EXAMPLES, examples())
    source = {"name": "m", "source": str(root / "base"), "revision": None, "inputs": {}}
    card, tokens = root / "card.json", root / "tokens.parquet"
    assert main(command("model-card", source | {"contaminated": False}, out=card)) == 0
    read = {"examples": root / "examples.parquet", "model_card": card}
    assert main(command("tokens", {"max_length": 16}, **read, out=tokens)) == 0


def embedded(root: Path, precision: str, **files: Path) -> np.ndarray:
    """Vectors of the inference section by the stage `embed`, float64 (texts, width)."""
    pooled = {"pooling": "mean", "max_length": 16, "skip_bos": True, "layer": -1}
    settings = {"embedding": pooled | {"precision": precision}}
    out = root / "embeddings.parquet"
    assert main(command("embed", settings, **texts_of(root), **files, out=out)) == 0
    rows = read_table(out, schemas.EMBEDDINGS)["embedding"].to_pylist()
    return np.array(rows, dtype=np.float64)


def losses(root: Path, precision: str, **files: Path) -> np.ndarray:
    """NLL of each held-out text by the stage `evaluate`, in nats, (texts,)."""
    how: dict[str, Any] = {"precision": precision}
    how |= {"evaluation": {"max_length": 16}}
    written = {"out": root / "perplexity.parquet", "nll": root / "nll.parquet"}
    assert main(command("evaluate", how, **texts_of(root), **files, **written)) == 0
    return np.array(read_table(written["nll"], schemas.NLL)["nll"].to_pylist())


@torch.no_grad()
def by_transformers(root: Path, trained: Path, edit: Path) -> dict[str, np.ndarray]:
    """Vectors of the inference section, and NLLs of the evaluation section without and with an
    edit: a pass of the library for each text, with the trained tensors in the folder's model."""
    model = AutoModelForCausalLM.from_pretrained(root / "base", dtype=torch.float32).eval()
    left = model.load_state_dict(load_file(trained), strict=False)
    assert not left.unexpected_keys
    edited = load_file(edit)
    bias = edited["edit.strength"] * edited["edit.bias"]
    texts = read_table(root / "tokens.parquet", schemas.TOKENS)["tokens"]
    sections = read_table(root / "examples.parquet", schemas.EXAMPLES)["section"]
    found: dict[str, list[np.ndarray]] = {"vectors": [], "nll": [], "edited": []}
    for tokens, section in zip(texts, sections, strict=True):
        ids = torch.tensor(tokens.as_py())[None]
        output = model(ids, output_hidden_states=True)
        if section.as_py() == "inference":
            found["vectors"].append(output.hidden_states[-1][0, 1:].mean(0).double().numpy())
            continue
        for name, logits in (("nll", output.logits), ("edited", output.logits + bias)):
            odds = logits[0, :-1].double().log_softmax(-1)
            found[name].append(-odds.gather(1, ids[0, 1:, None]).sum().numpy())
    return {name: np.array(values) for name, values in found.items()}


def apart(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The largest difference of each text (texts,), as a share of the largest value of all."""
    difference = np.abs(values - expected).reshape(len(values), -1)
    return difference.max(1) / np.abs(expected).max()


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_trained_in_fp32_and_embedded_in_bf16(family: str, tmp_path: Path) -> None:
    write_model(family, tmp_path)
    how = TRAINING | ONE | {"epochs": 0.5, "learning_rate": 1e-3}
    files = trained_files(tmp_path / "beta0")
    words = command("finetune", finetuning(training=how), **texts_of(tmp_path), **files)
    assert main(words) == 0
    trained = {"trained": files["tensors"]}
    edit = trained_files(tmp_path / "edit")
    settings = unlearning("logit_bias", trained_blocks=1, precision="bf16")
    settings["settings"] = plugin("unlearner", "logit_bias").defaults | {"strength": 0.7}
    assert main(command("unlearn", settings, **texts_of(tmp_path), **trained, **edit)) == 0
    expected = by_transformers(tmp_path, files["tensors"], edit["tensors"])
    edited = {**trained, "unlearned": edit["tensors"]}
    found = {
        "vectors": embedded(tmp_path, "fp32", **trained),
        "nll": losses(tmp_path, "fp32", **trained),
        "edited": losses(tmp_path, "fp32", **edited),
    }
    for name, values in found.items():
        assert apart(values, expected[name]).max() < FP32, name
    found = {"vectors": embedded(tmp_path, "bf16", **trained)}
    found["nll"] = losses(tmp_path, "bf16", **trained)
    for name, values in found.items():
        # Of single texts a router chooses another expert, by a rounding.
        assert np.median(apart(values, expected[name])) < BF16, name
    # An edit that is not seen in the losses would pass for one that is read right.
    assert apart(expected["edited"], expected["nll"]).max() > 10 * FP32
