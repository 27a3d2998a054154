"""The stage `retrain`: removal sets that are the same are trained on once, whoever chose them."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from safetensors.torch import load_file

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import read_metadata, read_table, write_table
from mamushi.artifacts.tensors import trained_metadata
from mamushi.cli import main
from mamushi.lm import finetune
from mamushi.lm.batches import examples_of_step
from tests.support.models import TRAINING
from tests.support.stage_files import EXECUTION, FILES, write_base
from tests.support.workflow import ROOT

CELL = {"dataset": "d", "model": "m", "seed": 0}
CHOSEN = {
    "dataset": "d",
    "model": "m",
    "seed": 0,
    "role": "retrained",
    "section": "inference",
    "domains": ["forget", "retain"],
    "training": TRAINING,
    "evaluation": {"max_length": 16},
    "code": "c",
}
FORGET = ["if0", "if1", "if2", "if3"]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A base model, examples and tokens beside the folder of results, in which the commands run, so
    that they claim what they write."""
    write_base(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def where(root: Path, pattern: str, selector: str, beta: str) -> Path:
    return paths.under(root / "results", pattern, **CELL, selector=selector, beta=beta)


def words(
    root: Path,
    removed: list[str],
    selector: str,
    beta: str,
    *,
    tensors: bool = False,
    **changes: Any,
) -> list[str]:
    """The command of a cell, whose removal list is written as a selector would: by score."""
    listed = where(root, paths.REMOVAL, selector, beta)
    count = len(removed)
    table = {
        "id": removed,
        "rank": pa.array(range(1, count + 1), pa.int64()),
        "score": [float(count - row) for row in range(count)],
        "copies": pa.array([[] for _ in removed], pa.list_(pa.string())),
    }
    write_table(listed, schemas.REMOVALS, table, metadata={"selector": selector, "beta": beta})
    written = {
        "perplexity": paths.PERPLEXITY,
        "nll": paths.NLL,
        "log-table": paths.RETRAINED_LOG,
        "card": paths.RETRAINED_CARD,
    }
    if tensors:
        written["tensors"] = paths.RETRAINED_TENSORS
    given = {key: where(root, pattern, selector, beta) for key, pattern in written.items()}
    given |= {key: root / name for key, name in FILES.items() if key != "trained"}
    given["removal"] = listed
    return [
        "retrain",
        *(f"--{key}={value}" for key, value in given.items()),
        f"--execution={json.dumps(EXECUTION)}",
        f"--settings={json.dumps(CHOSEN | changes)}",
    ]


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Texts of every fine-tune that is made, in order."""
    made: list[int] = []
    real = finetune.finetune

    def counted(model: Any, texts: Any, *args: Any, **options: Any) -> Any:
        made.append(len(texts))
        return real(model, texts, *args, **options)

    monkeypatch.setattr(finetune, "finetune", counted)
    return made


def test_a_set_that_two_selectors_or_budgets_remove_is_trained_on_once(
    made: Path, trainings: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    cells = {
        ("random", "0.40"): FORGET,
        ("random", "0.41"): FORGET,  # another budget of as many texts
        ("mamushi", "0.40"): FORGET[::-1],  # the same set in another order
        ("mamushi", "0.20"): FORGET[:2],
        ("random", "0.20"): FORGET[2:],
    }
    for (selector, beta), removed in cells.items():
        assert main(words(made, removed, selector, beta)) == 0
    assert trainings == [17, 19, 19]
    assert capsys.readouterr().err.count("trained on the same texts: took over") == 2
    first = read_json(where(made, paths.RETRAINED_CARD, "random", "0.40"))
    for cell in list(cells)[1:3]:
        card = read_json(where(made, paths.RETRAINED_CARD, *cell))
        assert {name for name in card if card[name] != first[name]} == {"inputs"}
        origin = {name: card[name] for name in ("settings", "inputs", "versions")}
        for pattern, kind in (
            (paths.PERPLEXITY, schemas.PERPLEXITY),
            (paths.NLL, schemas.NLL),
            (paths.RETRAINED_LOG, schemas.TRAIN_LOG),
        ):
            copy = where(made, pattern, *cell)
            assert read_table(copy, kind).equals(
                read_table(where(made, pattern, "random", "0.40"), kind)
            )
            # As if it had been trained here: what it was made from is its own.
            assert read_metadata(copy) == origin
    cards = made.glob("results/runs/**/retrained/**/card.json")
    assert len({read_json(path)["same"] for path in cards}) == len(trainings)
    # As a kill leaves it, with all but the last line done.
    state = where(made, paths.RETRAINED, "random", "0.40") / "card.json.state"
    state.touch()
    assert main(words(made, FORGET, "random", "0.40")) == 0
    assert len(trainings) == 3 and not state.exists()


def test_models_of_a_seed_read_what_they_share_in_one_order(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two removal lists and the gold standard: common random numbers."""
    read: list[list[str]] = []

    def told(model: Any, texts: Any, *args: Any, seed: int, kept: Any, **options: Any) -> Any:
        rows = examples_of_step(0, len(texts), len(texts), seed, kept)
        read.append([str(texts.ids[row]) for row in rows])
        return real(model, texts, *args, seed=seed, kept=kept, **options)

    real = finetune.finetune
    monkeypatch.setattr(finetune, "finetune", told)
    assert main(words(made, FORGET, "random", "0.40")) == 0
    assert main(words(made, ["if8", "if1"], "mamushi", "0.20")) == 0
    assert main(words(made, [], "oracle", "0.10", domains=["retain"])) == 0
    for one, other in itertools.combinations(read, 2):
        shared = set(one) & set(other)
        assert len(shared) >= 12
        assert [i for i in one if i in shared] == [i for i in other if i in shared]


def test_what_is_copied_is_what_would_have_been_trained(made: Path, trainings: list[int]) -> None:
    assert main(words(made, FORGET, "random", "0.40", tensors=True)) == 0
    assert main(words(made, FORGET, "mamushi", "0.40", tensors=True)) == 0
    assert len(trainings) == 1
    copied = where(made, paths.RETRAINED_TENSORS, "mamushi", "0.40")
    tensors, metadata = load_file(copied), trained_metadata(copied)
    nll = read_table(where(made, paths.PERPLEXITY, "mamushi", "0.40"), schemas.PERPLEXITY)
    # Without the one it was copied from, the same command trains.
    where(made, paths.RETRAINED_CARD, "random", "0.40").unlink()
    where(made, paths.RETRAINED_CARD, "mamushi", "0.40").unlink()
    assert main(words(made, FORGET, "mamushi", "0.40", tensors=True)) == 0
    assert len(trainings) == 2
    trained = load_file(copied)
    assert trained.keys() == tensors.keys() != set()
    assert all(trained[name].equal(tensors[name]) for name in trained)
    assert trained_metadata(copied) == metadata
    assert read_table(where(made, paths.PERPLEXITY, "mamushi", "0.40"), schemas.PERPLEXITY).equals(
        nll
    )


def test_tensors_that_an_earlier_run_kept_go_with_its_card(
    made: Path, trainings: list[int]
) -> None:
    cells = [("random", "0.40"), ("mamushi", "0.40")]
    for kept in (True, False):
        for selector, beta in cells:
            seed = {"seed": int(not kept)}
            assert main(words(made, FORGET, selector, beta, tensors=kept, **seed)) == 0
            assert where(made, paths.RETRAINED_TENSORS, selector, beta).exists() == kept
    # The second of each pair took over what the first had measured.
    assert len(trainings) == 2


@pytest.mark.parametrize(
    "changes",
    [{"seed": 1}, {"code": "other"}, {"training": CHOSEN["training"] | {"learning_rate": 2e-3}}],
    ids=["seed", "code", "training"],
)
def test_other_settings_are_trained_for_themselves(
    made: Path, trainings: list[int], changes: dict[str, Any]
) -> None:
    assert main(words(made, FORGET, "random", "0.40")) == 0
    assert main(words(made, FORGET, "mamushi", "0.40", **changes)) == 0
    assert len(trainings) == 2


def test_results_that_are_not_whole_are_not_copied(made: Path, trainings: list[int]) -> None:
    assert main(words(made, FORGET, "random", "0.40")) == 0
    perplexity = where(made, paths.PERPLEXITY, "random", "0.40")
    perplexity.unlink()
    assert main(words(made, FORGET, "mamushi", "0.40")) == 0
    where(made, paths.NLL, "mamushi", "0.40").unlink()
    perplexity.write_bytes(b"PAR1")
    where(made, paths.RETRAINED_CARD, "mamushi", "0.40").write_text("{")
    assert main(words(made, FORGET, "l2_norm", "0.40")) == 0
    # Tensors are asked for, and none was kept.
    assert main(words(made, FORGET, "coreset", "0.40", tensors=True)) == 0
    assert len(trainings) == 4


def test_a_perplexity_is_made_of_its_texts(made: Path) -> None:
    assert main(words(made, FORGET, "random", "0.40")) == 0
    each = read_table(where(made, paths.NLL, "random", "0.40"), schemas.NLL).to_pandas()
    whole = read_table(where(made, paths.PERPLEXITY, "random", "0.40"), schemas.PERPLEXITY)
    for row in whole.to_pylist():
        part = each[each["id"].str[:2] == f"e{row['domain'][0]}"]
        assert (len(part), part["tokens"].sum()) == (row["texts"], row["tokens"])
        assert part["nll"].sum() / part["tokens"].sum() == pytest.approx(row["nll"])


def test_who_comes_while_the_same_set_is_trained_on_waits_for_it(made: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "mamushi", *words(made, FORGET, selector, "0.40")],
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for selector in ("random", "mamushi", "coreset")
    ]
    said = [process.communicate(timeout=240)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert sum("took over" in text for text in said) == 2
    # Locks are gone with the last one that held them.
    assert [*(made / "results/claims").iterdir()] == []


def test_what_is_left_no_weight_and_no_token_is_removed(made: Path, trainings: list[int]) -> None:
    """Weights of 0 or 1 and spans of whole texts train what the list trains, in as many steps."""
    removed = FORGET[:2]
    assert main(words(made, removed, "random", "0.20")) == 0
    weights, spans = made / "weights.parquet", made / "spans.parquet"
    by_degrees = {"id": FORGET, "weight": [0.0, 0.0, 1.0, 1.0], "copies": [[]] * 4}
    write_table(weights, schemas.WEIGHTS, by_degrees)
    tokens = read_table(made / "tokens.parquet", schemas.TOKENS)
    length = dict(zip(tokens["id"].to_pylist(), map(len, tokens["tokens"]), strict=True))
    whole = {"id": removed, "start": [1, 1], "stop": [length[name] for name in removed]}
    write_table(spans, schemas.SPANS, whole)
    for selector, given in (("a", f"--weights={weights}"), ("b", f"--spans={spans}")):
        # Its list is there, and not what it removes.
        assert main([*words(made, FORGET, selector, "0.40"), given]) == 0
        for pattern, kind in ((paths.NLL, schemas.NLL), (paths.PERPLEXITY, schemas.PERPLEXITY)):
            found = read_table(where(made, pattern, selector, "0.40"), kind)
            assert found.equals(read_table(where(made, pattern, "random", "0.20"), kind))
        card = read_json(where(made, paths.RETRAINED_CARD, selector, "0.40"))
        assert (card["texts"], card["mass"], card["removed"]) == (19, 19.0, 0)
    assert trainings == [19, 19, 19]


def test_half_a_weight_takes_half_the_steps(made: Path) -> None:
    weights = made / "weights.parquet"
    names = [f"i{domain}{i}" for domain, count in (("f", 9), ("r", 12)) for i in range(count)]
    # In fp32 they sum to a little less than a half of the texts.
    halves = {"id": names, "weight": [0.3] * 10 + [0.7] * 10 + [0.0], "copies": [[]] * 21}
    write_table(weights, schemas.WEIGHTS, halves)
    for by_data, expected in (("by_data", 5), ("matched", 10)):
        training = TRAINING | {"steps": by_data}
        command = words(made, FORGET, "a", "0.40", training=training)
        assert main([*command, f"--weights={weights}"]) == 0
        card = read_json(where(made, paths.RETRAINED_CARD, "a", "0.40"))
        assert (card["steps"], card["mass"]) == (expected, 10.0)


def test_what_two_selectors_mask_alike_is_trained_on_once(made: Path, trainings: list[int]) -> None:
    spans = made / "spans.parquet"
    write_table(spans, schemas.SPANS, {"id": ["if0"], "start": [1], "stop": [2]})
    for selector in ("a", "b"):
        assert main([*words(made, FORGET[:2], selector, "0.20"), f"--spans={spans}"]) == 0
    assert main(words(made, [], "c", "0.20")) == 0
    assert trainings == [21, 21]
