"""What a dry run shows is what runs: trainings whose tensors were deleted, and finer budgets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mamushi.config.complete import complete
from mamushi.io import paths
from mamushi.io.files import write_json
from tests.support import contract_grid
from tests.support.contract_grid import changed
from tests.support.dry_runs import Snakemake


@pytest.fixture
def deleted(finished: Path) -> Iterator[Path]:
    """The finished folder without the tensors that a run deletes once they have been read."""
    arms = (finished / "results/runs").glob("*/*/seed*/arms/*/*/*/trained.safetensors")
    tensors = [path for path in arms if "lists" not in path.parts]
    assert len(tensors) > 20
    for path in tensors:
        path.rename(f"{path}.away")
    yield finished
    for path in tensors:
        Path(f"{path}.away").rename(path)


def test_tensors_that_were_deleted_are_missed_by_nobody(
    snakemake: Snakemake, deleted: Path
) -> None:
    look = snakemake.look(deleted, targets=contract_grid.TARGETS)
    assert look["needed"] == {} == look["blind"]
    is_deleted = {name for name, rule in look["rules"].items() if rule["temp"]}
    arms = {"retrain", "unlearn", "unlearn_whole"}
    assert is_deleted == arms


def test_a_new_question_makes_the_model_again_that_it_is_put_to(
    snakemake: Snakemake, deleted: Path
) -> None:
    change = changed("probe.relearning.examples", 8)
    needed = snakemake.would_run(deleted, targets=["unlearning"], change=change)
    # Of each of two models a retrained and an unlearned one at one budget.
    assert (needed["retrain"], needed["unlearn"]) == (2, 2)
    assert needed["relearn"] >= 4 and "endpoint" not in needed


def test_where_tensors_are_kept_a_change_of_the_evaluation_trains_nothing(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    kept = {**changed("grid.datasets", ["made"]), "keep_checkpoints": True, "studies": None}
    done = snakemake.finish(tmp_path, targets=["all"], change=kept)
    # All but one that was contaminated before.
    assert done["evaluate"] == done["retrain"] + done["endpoint"] - 1
    change = {**kept, **changed("evaluation.max_length", 64)}
    assert snakemake.look(tmp_path, targets=["all"], change=change)["begin"] == ["evaluate"]


@pytest.mark.parametrize(
    ("earlier", "finer"),
    [
        *(({}, 1), ({"budgets": [0.2]}, 0), ({"seeds": [1]}, 0)),
        *(({"fine": 0.05}, 0), ({"target": 0.25}, 0)),
    ],
    ids=["same", "budgets", "seeds", "fine", "target"],
)
def test_every_model_that_will_be_unlearned_is_in_the_dry_run(
    snakemake: Snakemake, tmp_path: Path, earlier: dict[str, Any], finer: int
) -> None:
    """The configured budgets and, where an earlier run of the same settings chose them, the finer
    ones, for which there are lists as well."""
    contract_grid.make(tmp_path)

    def needed() -> dict[str, int]:
        return snakemake.would_run(tmp_path, targets=["unlearning"])

    # Two models, three unlearners, two budgets.
    first = needed()
    assert (first["unlearn"], first["unlearn_whole"], first["half_gap"]) == (12, 6, 1)
    assert first["remove"] == 4
    unlearning = complete(contract_grid.CONFIG)["unlearning"]
    chosen = {key: unlearning[key] for key in ("budgets", "seeds", "fine", "target")} | earlier
    added = {"added": {"made/tiny/salun/mamushi": [0.3]}}
    write_json(tmp_path / paths.SWEEPS, {**chosen, **added})
    second = needed()
    assert (second["unlearn"], second["remove"]) == (12 + finer, 4 + finer)
    assert second["evaluate"] == first["evaluate"]


def test_tokens_are_unlearned_by_their_spans_and_texts_by_their_list(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    change = changed("unlearning.selectors", ["mamushi", "token_unigram"])
    jobs = snakemake.look(tmp_path, targets=["unlearning"], change=change)["files"]["unlearn"]
    read = {outputs[0].rpartition("/arms/")[2]: {*inputs} for inputs, outputs in jobs if inputs}
    for unlearner in ("neggrad_plus", "salun", "even"):
        for selector, folder in (("mamushi", "removals"), ("token_unigram", "spans")):
            inputs = read[f"{unlearner}/{selector}/beta0.20/trained.safetensors"]
            of_lists = {path for path in inputs if "/removals/" in path or "/spans/" in path}
            assert {path.split("/")[-3:-1] == [folder, selector] for path in of_lists} == {True}
    whole = snakemake.would_run(tmp_path, targets=["unlearning"], change=change)
    assert (whole["unlearn"], whole["unlearn_whole"], whole["spans"]) == (24, 6, 4)
