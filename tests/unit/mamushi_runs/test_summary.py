"""What is said at the end of a run, from the manifests that it wrote."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mamushi.artifacts.files import write_json
from mamushi_runs import hooks, summary

STRONG = "strong separation, trust the ranking: AUC 0.93 [0.90, 0.95]"
REFUSED = (
    "no verdict on a budget, do not delete by this: the domains cannot be told apart: "
    "AUC 0.55 [0.50, 0.60]"
)


def wrote(root: Path, seed: int, selector: str, lists: dict[float, int], verdict: str) -> Any:
    """The job that wrote the manifests of a selector's lists."""
    folder = root / f"seed{seed}" / "removals" / selector
    folder.mkdir(parents=True)
    told = {"dataset": "texts", "model": "tiny", "seed": seed, "selector": selector}
    for beta, removed in lists.items():
        each = {**told, "beta": beta, "removed": removed, "verdict": verdict}
        write_json(folder / f"beta{beta}.json", each)
    output = [str(folder / f"beta{beta}.json") for beta in lists]
    return SimpleNamespace(rule=SimpleNamespace(name="manifests"), output=output)


def workflow(*jobs: Any) -> Any:
    other = SimpleNamespace(rule=SimpleNamespace(name="retrain"), output=["no/such.json"])
    return SimpleNamespace(dag=SimpleNamespace(jobs=[other, *jobs]))


def test_lists_with_their_counts_the_verdict_and_what_is_next(tmp_path: Path) -> None:
    said = summary.lists(
        workflow(
            wrote(tmp_path, 0, "mamushi", {0.5: 50, 0.05: 5, 0.95: 95}, STRONG),
            wrote(tmp_path, 0, "lr_cos", {0.25: 25}, STRONG),
            wrote(tmp_path, 1, "mamushi", {0.5: 50}, STRONG),
        )
    )
    assert said is not None
    assert said.splitlines() == [
        "What was made:",
        f"  texts, tiny, seed 0: {STRONG}",
        f"    lr_cos: 25 examples at budgets 0.25: {tmp_path}/seed0/removals/lr_cos",
        f"    mamushi: 5 to 95 examples at budgets 0.05 to 0.95: {tmp_path}/seed0/removals/mamushi",
        f"  texts, tiny, seed 1: {STRONG}",
        f"    mamushi: 50 examples at budgets 0.5: {tmp_path}/seed1/removals/mamushi",
        "Next: how much to remove: make the target `evidence`, then "
        "`python -m mamushi advise --removal 0.5`.",
    ]


def test_a_list_that_should_not_be_acted_on(tmp_path: Path) -> None:
    sure = wrote(tmp_path, 0, "mamushi", {0.5: 50}, STRONG)
    unsure = wrote(tmp_path, 1, "mamushi", {0.5: 50}, REFUSED)
    said = summary.lists(workflow(sure, unsure))
    assert said is not None
    assert f"  texts, tiny, seed 1: {REFUSED}" in said
    assert said.splitlines()[-1].startswith(
        "Next: look at the rankings before deleting anything, 1 of 2 separations do not carry it"
    )


def test_a_run_without_lists_says_nothing() -> None:
    assert summary.lists(workflow()) is None


def test_a_damaged_manifest_fails_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a failed run says nothing of lists."""
    job = wrote(tmp_path, 0, "mamushi", {0.5: 50}, STRONG)
    ended = []
    monkeypatch.setattr("mamushi_runs.forecast.account.end", lambda *_, **__: None)
    monkeypatch.setattr("mamushi_runs.guard.session.end", lambda *_, **__: ended.append(1))
    hooks.end(workflow(job), {}, succeeded=False)
    assert capsys.readouterr().err == ""
    hooks.end(workflow(job), {}, succeeded=True)
    assert "What was made:" in capsys.readouterr().err
    Path(job.output[0]).write_text("{", encoding="utf-8")
    hooks.end(workflow(job), {}, succeeded=True)
    assert capsys.readouterr().err.startswith("No account of the run: ")
    assert len(ended) == 3
