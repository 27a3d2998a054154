"""The fine-tuning engine: exact steps, frozen parts, resumption."""

from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from transformers import PreTrainedModel

from mamushi.lm import device, loading
from mamushi.lm.training import steps
from tests.support.models import ADAPTERS, FAMILIES, model, token_set
from tests.support.steps import Killed, kill_at
from tests.support.training import train


@pytest.mark.parametrize(
    ("examples", "batch", "epochs", "expected"),
    [(79785, 32, 5, 12466), (100, 32, 3, 9), (5, 32, 1, 1), (64, 32, 0.5, 1)],
)
def test_steps_is_the_papers_floor(examples: int, batch: int, epochs: float, expected: int) -> None:
    assert steps(examples, batch, epochs) == expected


def states(language_model: PreTrainedModel) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in language_model.named_parameters()}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_is_frozen_stays_bit_equal_and_what_is_trained_moves(
    family: str, precision: str
) -> None:
    fresh = model(family).requires_grad_(False)
    loading.place_model(fresh, precision, torch.device("cpu"))
    before = states(fresh)
    trained, _ = train(model(family), token_set(), precision=precision)
    changed = {
        name
        for name, value in states(trained).items()
        if not torch.equal(value.to(before[name].dtype), before[name])
    }
    assert changed == {name for name, p in trained.named_parameters() if p.requires_grad}
    heads = {"model.embed_tokens.weight"} | ({"lm_head.weight"} if family == "llama" else set())
    blocks = {name for name in before if name.startswith(("model.layers.1.", "model.layers.2."))}
    assert changed == blocks | heads


COSINE = [0.5, 1, 0.5 + 0.125**0.5, 0.5, 0.5 - 0.125**0.5]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 0.75, 0.5, 0.25]),
        ("cosine", COSINE),
    ],
)
def test_schedules(schedule: str, expected: list[float]) -> None:
    changes = {"learning_rate": 1e-3, "warmup_steps": 1, "schedule": schedule}
    _, log = train(model("llama"), token_set(), total=5, **changes)
    assert log["learning_rate"] == pytest.approx([1e-3 * rate for rate in expected])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"method": "lora", "lora": ADAPTERS}, {"method": "full"}],
    ids=["partial", "lora", "full"],
)
def test_a_resumed_run_is_bit_equal(
    changes: dict[str, object], precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, family = changes | {"precision": precision}, "llama" if changes else "gemma2"
    undisturbed, log = train(model(family), token_set(), **changes)
    state, texts = tmp_path / "state", token_set()
    computed = kill_at(monkeypatch, 6)
    with pytest.raises(Killed):
        train(model(family), texts, state, "a", **changes)
    resumed, again = train(model(family), texts, state, "a", **changes)
    assert len(computed) == 6 + 11 - 5
    assert (again["loss"], again["step"]) == (log["loss"], log["step"])
    for name, value in states(undisturbed).items():
        assert torch.equal(states(resumed)[name], value), name


def test_a_damaged_state_is_passed_over(tmp_path: Path) -> None:
    state = tmp_path / "state"
    train(model("llama"), token_set(), state, "one", total=3)
    state.write_bytes(state.read_bytes()[:-100])
    _, log = train(model("llama"), token_set(), state, "one", total=3)
    assert log["step"] == [1, 2, 3]


class _Unordered(torch.autograd.Function):
    """The identity, whose backward pass has no deterministic kernel."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        places = torch.arange(gradient.numel())
        return torch.empty_like(gradient).put_(places, gradient)


@pytest.mark.filterwarnings("ignore:.*put_")
def test_a_step_without_deterministic_kernels_is_taken_again_from_where_it_began(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where a warning would not do does flash attention have a deterministic backward pass."""
    seen: list[bool] = []
    backward = Accelerator.backward

    def spy(*given: Any) -> None:
        seen.append(torch.is_deterministic_algorithms_warn_only_enabled())
        backward(*given)

    device.seed_torch(0)
    alone, _ = train(model("llama"), token_set(), total=2)
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    other = model("llama")
    other.model.norm.register_forward_hook(lambda module, given, out: _Unordered.apply(out))
    monkeypatch.setattr(Accelerator, "backward", spy)
    trained, log = train(other, token_set(), total=2)
    assert seen == [False, True, True] and log["step"] == [1, 2]
    # It is named once.
    assert capsys.readouterr().err.count("equal runs may differ in their last bits: put_") == 1
    for name, value in states(alone).items():
        assert torch.equal(states(trained)[name], value)
