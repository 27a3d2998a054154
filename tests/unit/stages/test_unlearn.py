"""The stage `unlearn`: what it writes, from which list, with and without a trunk; removal lists."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.domains import INFERENCE
from mamushi.io.files import read_json, sha256
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.lm import loading, parameters
from mamushi.lm.tokens import read_tokens
from mamushi.selection.removals import text_digests
from mamushi.stages.unlearn import _selected
from mamushi.unlearning.removal import read_ids
from tests.support.models import PARTS
from tests.support.score_files import unknown_texts, write_scores
from tests.support.stage_files import (
    EXECUTION,
    FILES,
    FORGET,
    unlearn_words,
    unlearning,
    write_start,
)
from tests.support.steps import kill_at
from tests.support.unlearning import LOOP


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, a start model's tensors, examples and tokens."""
    root = tmp_path_factory.mktemp("unlearn")
    write_start(root)
    return root


PROBE = {
    "generate": {"prompts": ["the cat", "a dog saw"], "new_tokens": 5},
    "relearn": {
        **{"seed": 0, "trained_blocks": 2, "max_length": 12, "evaluation": {"max_length": 16}},
        "relearning": {"examples": 3, "steps": [1, 4], "batch_size": 2, "learning_rate": 1e-3},
    },
}


def unlearn(made: Path, out: Path, settings: dict[str, Any] | None = None, **options: Any) -> int:
    return main(unlearn_words(made, out, unlearning() if settings is None else settings, **options))


def perplexities(out: Path) -> list[float]:
    return read_table(out / "perplexity.parquet", schemas.PERPLEXITY)["perplexity"].to_pylist()


def listed(path: Path, ids: list[str]) -> Path:
    path.write_text("".join(f"{name}\n" for name in ids), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["neggrad_plus", "salun"])
def test_it_writes_measures_and_leaves_no_state(kind: str, made: Path, tmp_path: Path) -> None:
    ids = [f"if{number}" for number in (3, 0, 7, 5, 8)]
    removal = listed(tmp_path / "list.txt", ids)
    tensors, settings = tmp_path / "out" / "trained.safetensors", unlearning(kind)
    assert unlearn(made, tmp_path / "out", settings, removal=removal, tensors=tensors) == 0
    card = read_json(tmp_path / "out" / "card.json")
    assert card["texts"] == FORGET
    assert card["removed"] == 5
    assert card["steps"] == 6  # floor(5 epochs * 5 texts / 4)
    assert card["stopped_at"] is None
    model = loading.open_trained(
        made / "card.json", tensors, PARTS | {"trained_blocks": 2} | dict.fromkeys(HEADS, False)
    )
    trained = parameters.count(model).trained
    assert card["trained_parameters"] == trained
    assert card["masked"] == (trained // 2 if kind == "salun" else None)
    assert card["settings"] == settings
    expected = {"examples", "tokens", "model_card", "trained", "removal"}
    assert set(card["inputs"]) == expected
    assert card["inputs"]["removal"] == sha256(removal)
    log = read_table(tmp_path / "out" / "log.parquet", schemas.UNLEARN_LOG)
    assert log["step"].to_pylist() == [1, 2, 3, 4, 5, 6]
    for name in ("log", "perplexity"):
        assert read_metadata(tmp_path / "out" / f"{name}.parquet")["settings"] == settings
    assert all(np.isfinite(perplexities(tmp_path / "out")))
    assert not (tmp_path / "out" / "card.json.state").exists()


HEADS = ("train_input_embedding", "train_output_head")


def test_the_trunk_changes_nothing(made: Path, tmp_path: Path) -> None:
    probe = {"questions": PROBE}
    for name, options in (("plain", {}), ("cached", {"trunk": made / "trunk.safetensors"})):
        out = tmp_path / name
        options["generations"], options["relearning"] = out / "said", out / "curve"
        assert unlearn(made, out, unlearning("salun", **probe), **options) == 0
    plain, cached = (
        read_table(tmp_path / name / "log.parquet", schemas.UNLEARN_LOG)
        for name in ("plain", "cached")
    )
    for name in ("forget_loss", "retain_loss"):
        assert cached[name][0].as_py() == pytest.approx(plain[name][0].as_py(), rel=1e-6)
    np.testing.assert_allclose(
        perplexities(tmp_path / "cached"), perplexities(tmp_path / "plain"), rtol=1e-3
    )
    said = [
        read_table(tmp_path / name / "said", schemas.CONTINUATIONS) for name in ("plain", "cached")
    ]
    assert said[0].equals(said[1])
    curves = [
        read_table(tmp_path / name / "curve", schemas.RELEARNING_CURVE)
        for name in ("plain", "cached")
    ]
    np.testing.assert_allclose(*(curve["ppl_forget"].to_numpy() for curve in curves), rtol=1e-3)
    # The cache is no input of what is written.
    cards = [read_json(tmp_path / name / "card.json") for name in ("plain", "cached")]
    assert cards[0] == cards[1]


def test_a_list_of_all_is_the_whole_set_however_it_is_sorted(made: Path, tmp_path: Path) -> None:
    rows = [f"if{number}" for number in range(FORGET)]
    results = []
    for name, ids in (("whole", None), ("up", rows), ("down", rows[::-1])):
        options = {} if ids is None else {"removal": listed(tmp_path / f"{name}.txt", ids)}
        assert unlearn(made, tmp_path / name, **options) == 0
        log = read_table(tmp_path / name / "log.parquet", schemas.UNLEARN_LOG)
        results.append((log["loss"].to_pylist(), perplexities(tmp_path / name)))
    assert results[0] == results[1] == results[2]


def test_a_stopped_run_says_so_in_its_card(made: Path, tmp_path: Path) -> None:
    settings = unlearning("neggrad_plus")
    settings["settings"]["stop_forget_loss"] = 0.1
    assert unlearn(made, tmp_path, settings) == 0
    card = read_json(tmp_path / "card.json")
    assert (card["stopped_at"], card["steps"]) == (1, 0)
    assert len(read_table(tmp_path / "log.parquet", schemas.UNLEARN_LOG)) == 1


def test_a_killed_run_goes_on(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert unlearn(made, tmp_path / "whole") == 0
    calls = kill_at(monkeypatch, 4, UserError)
    assert unlearn(made, tmp_path / "out") == 2
    assert (tmp_path / "out" / "card.json.state").exists()
    assert not (tmp_path / "out" / "perplexity.parquet").exists()
    assert unlearn(made, tmp_path / "out") == 0
    assert len(calls) == 4 + 11 - 3
    assert perplexities(tmp_path / "out") == perplexities(tmp_path / "whole")


def test_a_model_that_has_diverged_is_told_by_the_setting_of_the_unlearner(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # One step, after which the loop does not look again.
    settings = unlearning(training=LOOP | {"epochs": 0.1})
    settings["settings"]["learning_rate"] = 1e39
    assert unlearn(made, tmp_path, settings) == 2
    assert "diverged; lower unlearners.my_neggrad_plus.learning_rate" in capsys.readouterr().err
    assert not (tmp_path / "perplexity.parquet").exists()


@pytest.mark.parametrize("name", ["ir3", "ef0", "nobody"])
def test_ids_that_are_no_forget_texts_of_the_section_are_told(
    name: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    removal = listed(tmp_path / "list.txt", ["if1", name])
    assert unlearn(made, tmp_path / "out", removal=removal) == 2
    said = capsys.readouterr().err
    assert (
        f"1 of its 2 ids are no forget texts of the inference section, the first is '{name}'"
        in (said)
    )
    assert "Traceback" not in said


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("blocks", [2, 4])
def test_the_zero_of_the_scale_is_the_very_model_that_unlearning_starts_from(
    blocks: int, cached: bool, made: Path, tmp_path: Path
) -> None:
    """Recovery is measured from what the stage `evaluate` says of the start, which has trained
    three blocks, the embedding and the head: none of them may be rounded before unlearning."""
    start = {"training": PARTS, "precision": "bf16"}
    empty: dict[str, list[Any]] = {column: [] for column in schemas.REMOVALS.schema.names}
    write_table(tmp_path / "removals.parquet", schemas.REMOVALS, empty)
    settings = unlearning(start=start, trained_blocks=blocks)
    options: dict[str, Any] = {"trunk": tmp_path / "trunk.safetensors"} if cached else {}
    removal = tmp_path / "removals.parquet"
    assert unlearn(made, tmp_path / "out", settings, removal=removal, **options) == 0
    measured = {**start, "evaluation": {"max_length": 16}, "code": "c"}
    words = [f"--{key}={made / name}" for key, name in FILES.items()]
    words += [f"--out={tmp_path / 'perplexity.parquet'}", f"--nll={tmp_path / 'nll.parquet'}"]
    words += [f"--settings={json.dumps(measured)}"]
    assert main(["evaluate", *words, f"--execution={json.dumps(EXECUTION)}"]) == 0
    assert perplexities(tmp_path / "out") == perplexities(tmp_path)


def test_a_budget_of_no_text_leaves_the_model_as_it_is(made: Path, tmp_path: Path) -> None:
    """A tenth of nine texts is none: the list is empty, and the start is what is measured."""
    empty = {
        "id": pa.array([], pa.string()),
        "score": pa.array([], pa.float64()),
        "rank": pa.array([], pa.int64()),
        **unknown_texts(0),
        "text_sha256": pa.array([], pa.string()),
    }
    write_table(tmp_path / "removals.parquet", schemas.REMOVALS, empty)
    out = tmp_path / "out"
    tensors = out / "trained.safetensors"
    removal = tmp_path / "removals.parquet"
    assert unlearn(made, out, removal=removal, tensors=tensors) == 0
    card = read_json(out / "card.json")
    assert (card["removed"], card["steps"], card["stopped_at"]) == (0, 0, None)
    assert len(read_table(out / "log.parquet", schemas.UNLEARN_LOG)) == 0
    stored, start = load_file(tensors), load_file(made / "start.safetensors")
    assert stored and all(value.equal(start[name]) for name, value in stored.items())


# --- removal lists ----------------------------------------------------------------------------

IDS = ["b", "a", "ü 1"]


def test_a_ranking_and_a_list_of_other_texts_are_refused(made: Path, tmp_path: Path) -> None:
    ids = ["if0", "if1"]
    scores, listed = tmp_path / "scores.parquet", tmp_path / "list.parquet"
    write_scores(scores, ids, ["forget"] * 2, [1.0, 0.0])
    with pytest.raises(UserError, match="is a ranking of all texts, and no list"):
        read_ids(scores)
    columns = {"id": ids, "score": [2.0, 1.0], "rank": [1, 2], **unknown_texts(2)}
    examples = made / "examples.parquet"
    tokens = read_tokens(made / "tokens.parquet", examples, INFERENCE, 12, domains=["forget"])
    right = text_digests([read_table(examples, schemas.EXAMPLES)], ids)
    write_table(listed, schemas.REMOVALS, {**columns, "text_sha256": right})
    assert [*_selected(tokens, listed, examples).ids] == ids
    write_table(listed, schemas.REMOVALS, {**columns, "text_sha256": [right[0], right[0]]})
    with pytest.raises(UserError, match="its text 'if1' is another one than in"):
        _selected(tokens, listed, examples)


def test_every_format_gives_the_same_ids(tmp_path: Path) -> None:
    table = pa.table({"other": [1, 2, 3], "id": IDS})
    pq.write_table(table, tmp_path / "own.parquet")
    removals = {
        "id": IDS,
        "score": [3.0, 2.0, 1.0],
        "rank": [1, 2, 3],
        **unknown_texts(3),
    }
    write_table(tmp_path / "removals.parquet", schemas.REMOVALS, removals)
    (tmp_path / "list.csv").write_text("other,id\n" + "".join(f"1,{i}\n" for i in IDS))
    (tmp_path / "list.tsv").write_text("id\tother\n" + "".join(f"{i}\t1\n" for i in IDS))
    (tmp_path / "list.jsonl").write_text("".join(json.dumps({"id": i}) + "\n" for i in IDS))
    (tmp_path / "list.txt").write_bytes("\ufeffb\r\n\n  a \nü 1".encode())
    listed(tmp_path / "ids", IDS)
    names = ("own.parquet", "removals.parquet", "list.csv", "list.tsv", "list.jsonl", "list.txt")
    for name in (*names, "ids"):
        assert read_ids(tmp_path / name) == IDS, name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "names no id"),
        ("a.txt", "\n \n", "names no id"),
        ("a.txt", "x\ny\nx\nz\nz\n", "2 ids are there more than once, the first is 'x'"),
        ("a.csv", "name\nx\n", "no column 'id'"),
        ("a.csv", "id\n", "no rows"),
        ("a.csv", "id,other\n,1\n", "there is no id"),
        ("a.jsonl", '{"id": null}\n', "there is no id"),
        ("a.jsonl", '{"id": "a"}\n{"other": "b"}\n', "row 2: there is no id"),
        ("a.parquet", "nothing", "is not a Parquet file"),
    ],
)
def test_bad_lists_are_told(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=message):
        read_ids(tmp_path / name)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.parquet", "."])
def test_a_list_that_is_missing_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file|is a folder"):
        read_ids(tmp_path / name)
