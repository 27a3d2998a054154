"""The stage `retrain`: what is trained on, and what is measured of it."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.config import arms
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table, write_table
from mamushi.lm import training
from mamushi.lm.batches import examples_of_step
from tests.support.models import TRAINING
from tests.support.score_files import unknown_texts
from tests.support.stage_files import EXECUTION, FILES, write_base

CELL = {"dataset": "d", "model": "m", "seed": 0}
SETTINGS = {
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
    arm = arms.retrained(selector, beta)
    return paths.under(root / "results", pattern, **CELL, selector=selector, beta=beta, arm=arm)


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
        **unknown_texts(count),
    }
    write_table(listed, schemas.REMOVALS, table, metadata={"selector": selector, "beta": beta})
    written = {
        "perplexity": paths.PERPLEXITY,
        "nll": paths.NLL,
        "log-table": paths.TRAIN_LOG,
        "card": paths.CARD,
    }
    if tensors:
        written["tensors"] = paths.TRAINED
    given = {key: where(root, pattern, selector, beta) for key, pattern in written.items()}
    given |= {key: root / name for key, name in FILES.items() if key != "trained"}
    given["removal"] = listed
    return [
        "retrain",
        *(f"--{key}={value}" for key, value in given.items()),
        f"--execution={json.dumps(EXECUTION)}",
        f"--settings={json.dumps(SETTINGS | changes)}",
    ]


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Texts of every fine-tune that is made, in order."""
    made: list[int] = []
    real = training.finetune

    def counted(model: Any, texts: Any, *args: Any, **options: Any) -> Any:
        made.append(len(texts))
        return real(model, texts, *args, **options)

    monkeypatch.setattr(training, "finetune", counted)
    return made


def test_models_of_a_seed_read_what_they_share_in_one_order(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two removal lists and the gold standard: common random numbers."""
    read: list[list[str]] = []

    def told(model: Any, texts: Any, *args: Any, seed: int, kept: Any, **options: Any) -> Any:
        rows = examples_of_step(0, len(texts), len(texts), seed, kept)
        read.append([str(texts.ids[row]) for row in rows])
        return real(model, texts, *args, seed=seed, kept=kept, **options)

    real = training.finetune
    monkeypatch.setattr(training, "finetune", told)
    assert main(words(made, FORGET, "random", "0.40")) == 0
    assert main(words(made, ["if8", "if1"], "mamushi", "0.20")) == 0
    assert main(words(made, [], "oracle", "0.10", domains=["retain"])) == 0
    for one, other in itertools.combinations(read, 2):
        shared = set(one) & set(other)
        assert len(shared) >= 12
        assert [i for i in one if i in shared] == [i for i in other if i in shared]


def test_aligned_arms_take_the_steps_of_beta_0(made: Path) -> None:
    """Gold and a list: as many steps and passes, and fewer tokens in each."""
    aligned = TRAINING | {"steps": "aligned", "batch_size": 3, "epochs": 2}
    cards, logs = [], []
    for removed, selector, domains in (
        ([], "oracle", ["forget", "retain"]),
        (FORGET, "random", ["forget", "retain"]),
        ([], "mamushi", ["retain"]),
    ):
        given = {"training": aligned, "domains": domains}
        assert main(words(made, removed, selector, "0.40", **given)) == 0
        cards.append(read_json(where(made, paths.CARD, selector, "0.40")))
        path = where(made, paths.TRAIN_LOG, selector, "0.40")
        logs.append(read_table(path, schemas.TRAIN_LOG).to_pandas())
    assert len({card["steps"] for card in cards}) == 1
    assert len({card["texts"] for card in cards}) == 3
    for log in logs[1:]:
        assert (log["epoch"] == logs[0]["epoch"]).all()
        assert (log["tokens"] <= logs[0]["tokens"]).all()
        assert log["tokens"].sum() < logs[0]["tokens"].sum()


def test_a_step_without_a_text_is_taken_and_counts(made: Path) -> None:
    aligned = TRAINING | {"steps": "aligned", "batch_size": 1, "epochs": 1}
    assert main(words(made, FORGET, "random", "0.40", training=aligned)) == 0
    log = read_table(where(made, paths.TRAIN_LOG, "random", "0.40"), schemas.TRAIN_LOG)
    empty = [row for row in log.to_pylist() if row["tokens"] == 0]
    assert len(empty) == len(FORGET) and all(row["loss"] == 0 for row in empty)


def test_a_trunk_below_what_is_trained_changes_nothing(made: Path) -> None:
    frozen = TRAINING | {
        "train_input_embedding": False,
        "train_output_head": False,
        "precision": "fp32",
        "trained_blocks": 1,
    }
    found = []
    for selector, more in (("random", []), ("mamushi", [f"--trunk={made / 'trunk'}"])):
        assert main([*words(made, FORGET, selector, "0.40", training=frozen), *more]) == 0
        nll = read_table(where(made, paths.NLL, selector, "0.40"), schemas.NLL)
        found.append(nll["nll"].to_numpy())
    np.testing.assert_allclose(*found, rtol=1e-5)
    assert any((made / "trunk").glob("*.safetensors"))


def test_no_trunk_where_the_embedding_is_trained(made: Path) -> None:
    more = f"--trunk={made / 'trunk'}"
    assert main([*words(made, FORGET, "random", "0.40"), more]) == 0
    assert not (made / "trunk").exists()


def test_tensors_that_an_earlier_run_kept_go_with_its_card(made: Path) -> None:
    for kept in (True, False):
        assert main(words(made, FORGET, "random", "0.40", tensors=kept, seed=int(not kept))) == 0
        assert where(made, paths.TRAINED, "random", "0.40").exists() == kept


def test_what_a_kill_left_before_its_last_line_is_cleared(made: Path, trainings: list[int]) -> None:
    assert main(words(made, FORGET, "random", "0.40")) == 0
    state = where(made, paths.CARD, "random", "0.40").with_name("card.json.state")
    state.touch()
    assert main(words(made, FORGET, "random", "0.40")) == 0
    assert len(trainings) == 1 and not state.exists()


def test_a_perplexity_is_made_of_its_texts(made: Path) -> None:
    assert main(words(made, FORGET, "random", "0.40")) == 0
    each = read_table(where(made, paths.NLL, "random", "0.40"), schemas.NLL).to_pandas()
    whole = read_table(where(made, paths.PERPLEXITY, "random", "0.40"), schemas.PERPLEXITY)
    for row in whole.to_pylist():
        part = each[each["id"].str[:2] == f"e{row['domain'][0]}"]
        assert (len(part), part["tokens"].sum()) == (row["texts"], row["tokens"])
        assert part["nll"].sum() / part["tokens"].sum() == pytest.approx(row["nll"])


def test_what_is_left_no_token_is_removed(
    made: Path, trainings: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Spans of whole texts train what the list trains, in as many steps."""
    removed = FORGET[:2]
    assert main(words(made, removed, "random", "0.20")) == 0
    spans = made / "spans.parquet"
    tokens = read_table(made / "tokens.parquet", schemas.TOKENS)
    length = dict(zip(tokens["id"].to_pylist(), map(len, tokens["tokens"]), strict=True))
    whole = {"id": removed, "start": [1, 1], "stop": [length[name] for name in removed]}
    write_table(spans, schemas.SPANS, whole)
    both = [*words(made, FORGET, "b", "0.40"), f"--spans={spans}"]
    assert main(both) == 2
    assert "gives both a list and spans" in capsys.readouterr().err
    assert main([word for word in both if not word.startswith("--removal=")]) == 0
    for pattern, kind in ((paths.NLL, schemas.NLL), (paths.PERPLEXITY, schemas.PERPLEXITY)):
        found = read_table(where(made, pattern, "b", "0.40"), kind)
        assert found.equals(read_table(where(made, pattern, "random", "0.20"), kind))
    card = read_json(where(made, paths.CARD, "b", "0.40"))
    assert (card["texts"], card["mass"], card["removed"]) == (19, 19.0, 0)
    assert trainings == [19, 19]
