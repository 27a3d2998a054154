"""What a model takes of each GPU: counted on the meta device against the plan's formula."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import yaml
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel

from mamushi.config.complete import complete
from mamushi.lm import sharding
from mamushi.lm.parameters import freeze
from mamushi_runs.forecast import sizes
from tests.support.workflow import ROOT


def config(name: str, **changes: Any) -> dict[str, Any]:
    """The paper's configuration with this model."""
    given = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    given["models"].setdefault(name, {"source": f"somewhere/{name}"})
    for section, keys in changes.items():
        given[section] = {**given[section], **keys}
    return complete(given)


def llama() -> PreTrainedModel:
    """Llama 3.1 70B, as its configuration on the hub has it, on the meta device."""
    shape = LlamaConfig(
        vocab_size=128256,
        hidden_size=8192,
        intermediate_size=28672,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        tie_word_embeddings=False,
    )
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(shape, dtype=torch.bfloat16)


def test_the_share_of_a_gpu_is_what_is_counted_on_the_meta_device() -> None:
    given = config("llama-3.1-70b")
    training = given["models"]["llama-3.1-70b"]["training"]
    model, size = llama(), sizes.of(given, "llama-3.1-70b")
    assert size.parameters == sum(p.numel() for p in model.parameters())
    freeze(model, training)
    assert size.trained(training) == pytest.approx(
        sum(p.numel() for p in model.parameters() if p.requires_grad), rel=1e-3
    )
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    torch.distributed.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    try:
        sharding.shard(model, torch.device("cpu"))
        # Weights, and of those that are trained a gradient and two moments.
        shares = [
            local.numel() * local.element_size() * (4 if p.requires_grad else 1)
            for p in model.parameters()
            for local in [sharding.local(p)]
        ]
    finally:
        torch.distributed.destroy_process_group()
    assert sum(shares) == pytest.approx(sizes.resident(size, training, 8), rel=1e-3)
    assert sum(shares) == pytest.approx(25.8e9, rel=0.01)
    outside = nn.ModuleList([model.get_input_embeddings(), model.get_output_embeddings()])
    whole = 8 * sum(p.numel() for p in outside.parameters())
    step = sizes.needed(size, training, 8) - sizes.resident(size, training, 8)
    assert whole < step < 2.5 * whole


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("llama-3.1-8b", {}, 1),
        ("llama-3.1-8b", {"execution": {"gpu_memory": 40}}, 4),
        ("llama-3.1-8b", {"training": {"method": "full"}}, 8),
        ("llama-3.1-70b", {}, 8),
        ("llama-3.1-70b", {"training": {"method": "lora"}}, 4),
        ("llama-3.1-8b", {"execution": {"gpus_per_job": 2}}, 2),
    ],
)
def test_as_few_gpus_as_hold_a_model(name: str, changes: dict[str, Any], expected: int) -> None:
    given = config(name, **changes)
    assert sizes.gpus(given, name) == expected


def test_models_of_several_gpus_are_named() -> None:
    given = config("llama-3.1-70b")
    assert sizes.several(given) == {"llama-3.1-70b": 8}
    given["execution"]["gpus_per_job"] = 1
    assert sizes.several(given) == {}
