"""The loop that all unlearners share: exact steps, resumption, early stops, what goes wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.files import trained_metadata
from mamushi.io.tables import write_table
from mamushi.lm.tokens import keep_spans, subset
from mamushi.unlearning.loop import steps_of
from tests.support.steps import Killed, kill_at
from tests.support.unlearning import (
    run,
    start,
    texts_of,
    weights,
)


def assert_same(one: PreTrainedModel, other: PreTrainedModel) -> None:
    found = weights(other)
    for name, value in weights(one).items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize(
    ("selected", "steps", "expected"),
    [
        (100, "by_data", 62),  # 500 / 8
        (100, "matched", 125),  # 1000 / 8
        (3, "by_data", 5),  # 15 / 3: the batch is the selection
    ],
)
def test_number_of_steps(selected: int, steps: str, expected: int) -> None:
    training = {"epochs": 5.0, "batch_size": 8, "steps": steps}
    assert steps_of(selected, 200, training) == expected


@pytest.mark.parametrize(
    ("kind", "precision", "changes"),
    [
        ("salun", "fp32", {}),
        ("neggrad_plus", "bf16", {}),
        ("npo", "fp32", {}),
        ("simnpo", "fp32", {"gamma": 10.0}),
    ],
)
def test_a_resumed_run_is_bit_equal(
    kind: str,
    precision: str,
    changes: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undisturbed, whole = run(kind, precision=precision, total=8, **changes)
    computed, state = kill_at(monkeypatch, 6), tmp_path / "state"
    with pytest.raises(Killed):
        run(kind, precision=precision, total=8, state=state, **changes)
    resumed, again = run(kind, precision=precision, total=8, state=state, **changes)
    assert len(computed) == 6 + 3
    for name in ("step", "loss", "forget_loss", "forget_mean", "gradient_norm"):
        assert again.log[name] == whole.log[name]
    assert again.masked == whole.masked
    assert_same(undisturbed, resumed)


RISING: dict[str, Any] = {"forget": texts_of("forget", 4, 1), "beta_ng": 0.2}
"""The same four texts in each step, so that their loss rises steadily."""


def limit_for(step: int) -> float:
    """A limit that the running mean of the forget loss first exceeds at ``step``."""
    _, outcome = run("neggrad_plus", total=12, **RISING)
    means = outcome.log["forget_mean"]
    assert means[step - 1] > max(means[: step - 1])
    return (means[step - 1] + max(means[: step - 1])) / 2


def test_a_run_stops_before_the_update_of_the_step_above_the_limit_also_when_resumed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    limit, state = limit_for(8), tmp_path / "state"
    before, _ = run("neggrad_plus", total=7, **RISING)
    for _ in range(2):
        found, outcome = run(
            "neggrad_plus", total=12, stop_forget_loss=limit, state=state, **RISING
        )
        assert outcome.stopped_at == 8
        assert outcome.steps == 7
        assert outcome.log["step"] == list(range(1, 9))
        assert outcome.log["forget_mean"][-1] > limit
        assert "stopped at step 8" in capsys.readouterr().err
        assert_same(before, found)
        assert all(p.grad is None for p in found.parameters())
    assert trained_metadata(state)["log"]["step"] == list(range(1, 8))


def test_the_mean_of_a_window_and_not_one_step_decides(tmp_path: Path) -> None:
    _, free = run("neggrad_plus", total=6, learning_rate=1e-20)
    write_table(tmp_path / "log.parquet", schemas.UNLEARN_LOG, free.log)
    losses, means = (free.log[name] for name in ("forget_loss", "forget_mean"))
    np.testing.assert_allclose(means, [np.mean(losses[max(0, i - 2) : i + 1]) for i in range(6)])
    limit = (max(losses) + max(np.cumsum(losses) / np.arange(1, 7))) / 2
    for window, stopped in ((6, None), (1, 1 + next(i for i, v in enumerate(losses) if v > limit))):
        changes = {"total": 6, "learning_rate": 1e-20, "stop_forget_loss": float(limit)}
        _, outcome = run("neggrad_plus", training={"stop_window": window}, **changes)
        assert outcome.stopped_at == stopped


def test_a_limit_of_texts_is_moved_by_what_the_tokens_are_above_them() -> None:
    """All texts are in each step, so that the loss rises from a little below the limit."""
    forget, retain = texts_of("forget", 6, 1), texts_of("retain", 4, 2)
    spans = [{"id": "forgett000", "start": 2}, {"id": "forgett002", "start": 1}]
    listed = keep_spans(forget, [{**span, "stop": span["start"] + 2} for span in spans])
    texts = subset(forget, np.flatnonzero(np.isin(forget.ids, listed.ids)))
    every = {"training": {"batch_size": 9}}
    starts = [
        run("neggrad_plus", None, unlearned, retain, total=1, **every)[1].log["forget_loss"][0]
        for unlearned in (texts, listed)
    ]
    assert abs(starts[1] - starts[0]) > 0.05
    for above, stopped in ((-0.001, 1), (0.001, 2)):
        changes = {"beta_ng": 0.1, "stop_forget_loss": starts[0] + above, **every}
        _, outcome = run(
            "neggrad_plus", None, listed, retain, total=3, all_forget=forget, **changes
        )
        assert outcome.stopped_at == stopped


def test_a_loss_that_is_not_finite_names_the_step_before_its_update() -> None:
    poisoned, calls = start(), 0

    def poison(module: torch.nn.Module, inputs: Any, states: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return states * float("nan") if calls == 4 else states

    poisoned.base_model.norm.register_forward_hook(poison)
    with pytest.raises(UserError, match=r"neggrad_plus: the loss is nan at step 4;"):
        run("neggrad_plus", poisoned)
    assert_same(run("neggrad_plus", total=3)[0], poisoned)
