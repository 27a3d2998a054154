"""``mamushi.rank`` gives what the workflow gives, and refuses in one line what that would."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from datasets import Dataset, DatasetDict
from threadpoolctl import threadpool_info

import mamushi
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table
from mamushi.lm import tiny
from mamushi.running.machine import as_in_a_command, sees_gpu, side_by_side
from mamushi.selection.selectors import mamushi_lr
from tests.support.lab import SHAPE

N, BUDGETS = 90, [0.1, 0.25]
WORDS = {"ours": ["river", "stone", "water"], "theirs": ["engine", "wheel", "brake"]}


def rows() -> list[dict[str, Any]]:
    """Texts of two kinds, a few of them copies, one in both domains, one empty and one of neither;
    the first author has several."""
    rng = np.random.default_rng(0)
    found = [
        {
            "name": f"t{i}",
            "body": f"{' '.join(rng.choice(WORDS[kind], 12))} {i}",
            "source": kind,
            "author": f"a{max(i - 5, 0)}",
            "vector": [float(x) for x in rng.normal(size=6) + 0.8 * (kind == "theirs")],
        }
        for i, kind in enumerate(rng.choice([*WORDS], N))
    ]
    first = {kind: next(row for row in found if row["source"] == kind) for kind in WORDS}
    found[-1] |= {"body": first["theirs"]["body"].upper(), "source": "theirs"}
    found[-2] |= {"body": "A text in both.", "source": "theirs"}
    found[-3] |= {"body": "a text in both.", "source": "ours"}
    found[-4] |= {"body": ""}
    found[-5] |= {"source": "unknown"}
    return found


ROWS = rows()
FRAME = pd.DataFrame(ROWS)
VECTORS = np.array([row["vector"] for row in ROWS])
GIVEN: dict[str, Any] = {
    **{"text": "body", "id": "name", "group": "author", "budgets": BUDGETS},
    **{"forget": "source == 'theirs'", "retain": "source == 'ours'", "embeddings": VECTORS},
}
QUICK = {**GIVEN, "selector": "mamushi_lr", "quick": True}

# Frames -------------------------------------------------------------------------------------------


class Other:
    """A frame that hands itself over as Arrow does, and is made of a table of Arrow, as Polars'."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(schema)

    def ids(self) -> Any:
        return self.table["name"].to_pylist()


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], list[str]]]] = {
    "pandas": (lambda: FRAME, lambda frame: frame["name"].tolist()),
    "arrow": (lambda: pa.Table.from_pylist(ROWS), lambda table: table["name"].to_pylist()),
    "datasets": (lambda: Dataset.from_list(ROWS), lambda data: list(data["name"])),
    "of another library": (lambda: Other(pa.Table.from_pylist(ROWS)), lambda frame: frame.ids()),
}
"""By name, the rows as a frame of a kind, and the ids in it."""


@pytest.fixture(scope="module")
def ranked() -> Any:
    return mamushi.rank(FRAME, **QUICK)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_of_each_kind_is_ranked_alike_and_comes_back_as_it_is(
    kind: str, ranked: Any
) -> None:
    frame, ids = KINDS[kind][0](), KINDS[kind][1]
    found = mamushi.rank(frame, **{**QUICK, "embeddings": "vector"})
    assert found.scores.equals(ranked.scores)
    for beta, own in found.lists.items():
        assert own.ids == ranked.lists[beta].ids and own.ids
        left = found.apply(frame, beta)
        assert type(left) is type(frame)
        assert ids(left) == [row["name"] for row in ROWS if row["name"] not in own.ids + own.copies]
    assert ids(frame) == [row["name"] for row in ROWS]


def test_rows_are_numbered_from_1_and_copies_go_along() -> None:
    """The last row is a copy of the first forget text, which is made the first to go."""
    vectors = VECTORS.copy()
    first = next(i for i, row in enumerate(ROWS) if row["source"] == "theirs")
    vectors[first] = 50.0
    named = {**QUICK, "id": None, "group": None, "embeddings": vectors}
    found = mamushi.rank(FRAME, **named)
    own = found.lists[0.1]
    assert own.ids[0] == str(first + 1) and own.copies == [str(N)]
    left = found.apply(FRAME, 0.1)
    gone = {int(name) - 1 for name in [*own.ids, *own.copies]}
    assert left.index.tolist() == [i for i in range(N) if i not in gone]
    with pytest.raises(UserError, match="is not the one that was ranked"):
        found.apply(FRAME[::-1], 0.1)
    with pytest.raises(UserError, match=r"budget: no list at 0.2; there are 0.1, 0.25"):
        found.apply(FRAME, 0.2)
    by_id = mamushi.rank(FRAME, **QUICK)
    with pytest.raises(UserError, match="several rows have the id"):
        by_id.apply(pd.concat([FRAME, FRAME], ignore_index=True), 0.1)
    others = FRAME.assign(**{QUICK["id"]: [f"other {i}" for i in range(N)]})
    with pytest.raises(UserError, match=r"the frame: none of its \d+ ids, as"):
        by_id.apply(others, 0.1)
    with pytest.raises(UserError, match="budget: no list at"):
        by_id.apply(FRAME, by_id.lists[0.1].ids)
    listed = FRAME[FRAME[QUICK["id"]].isin(by_id.lists[0.1].ids + by_id.lists[0.1].copies)]
    with pytest.raises(UserError, match="rows are listed, and nothing would be left"):
        by_id.apply(listed, 0.1)


def test_a_row_without_a_text_is_left_out_as_the_command_does(ranked: Any) -> None:
    for missing in (None, float("nan"), " "):
        found = mamushi.rank(with_cell("body", missing), **QUICK)
        assert {*ranked.scores["id"].to_pylist()} - {*found.scores["id"].to_pylist()} == {"t0"}


THEIRS = FRAME["source"] == "theirs"


# Refusals -----------------------------------------------------------------------------------------


def with_cell(column: str, value: Any) -> pd.DataFrame:
    return pd.DataFrame([ROWS[0] | {column: value}, *ROWS[1:]])


VECTORS_ALONE = {"kind": "mamushi_lr", "solver": "newton-cholesky", "alpha": 1.0}
LIKE = [f"an engine with wheel and brake {i}" for i in range(30)]


def by(like: list[Any], **more: Any) -> dict[str, Any]:
    """What ranks the rows as a corpus, with a vector for each that is given beside it."""
    given = {"forget": None, "retain": None, "like": like, **more}
    texts = VECTORS[: len(like) + len(more.get("unlike", ()))]
    return {"embeddings": np.concatenate([VECTORS, texts]), **given}


NONE = {"forget": None, "retain": None, "embeddings": None, "model": "ours"}
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no table": (3, {}, "the frame: int is no one table; give a table of pandas"),
    "splits": (DatasetDict(train=Dataset.from_list(ROWS)), {}, "DatasetDict is no one table; give"),
    "index": (FRAME.set_index(np.zeros(N)), {}, "its index has a label twice; call reset_index"),
    "no column": (FRAME, {"text": "words"}, "the frame: no column 'words'; it has 'name', 'body'"),
    "numbers": (FRAME.assign(body=[*map(str, range(N))]), {}, "column 'body' holds numbers"),
    "words": (FRAME, {"forget": "source"}, "holds 'ours', 'theirs', 'unknown', not 0 and 1"),
    "other index": (FRAME, {"forget": THEIRS[::-1]}, "forget: has another index than the frame"),
    "no model": (FRAME, {"embeddings": None, "model": "./ours"}, "no such folder: ./ours"),
    "other vectors": (FRAME, {"embeddings": VECTORS[1:]}, "has 89 rows, and the frame 90"),
    "tokens": (FRAME, {"selector": "token_random"}, "selector: token_random ranks tokens"),
    "nothing marked": (
        FRAME,
        {"forget": None},
        "datasets.frame.forget: allowed is one of: where, like",
    ),
    "no list": (FRAME, {**NONE, "like": "unwanted.jsonl"}, "like: 'unwanted.jsonl' is no list of"),
    "vectors of the frame": (
        FRAME,
        by(LIKE, embeddings=VECTORS),
        "not (120, width), with 30 of like",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_ranked_is_one_line_and_nothing_is_computed(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, changes, said = REFUSED[case]

    def never(*_: Any) -> None:
        pytest.fail("scored")

    monkeypatch.setattr(mamushi_lr, "score", never)
    with pytest.raises(UserError) as refused:
        mamushi.rank(frame, **{**QUICK, **changes})
    (line,) = str(refused.value).splitlines()
    assert said in line, line
    assert refused.value._render_traceback_() == [f"mamushi: {line}"]


def test_a_corpus_in_memory_goes_by_the_vectors_of_its_examples() -> None:
    """Those behind the frame's are of the examples, and then of the wanted texts."""
    ours, theirs = (VECTORS[FRAME["source"] == kind][:25] for kind in WORDS)
    given = QUICK | by(LIKE[:25], unlike=[f"a river {i}" for i in range(25)], budgets=())
    for first, second, kind in ((theirs, ours, "theirs"), (ours, theirs, "ours")):
        vectors = np.concatenate([VECTORS, first, second])
        found = mamushi.rank(FRAME, **{**given, "selector": VECTORS_ALONE, "embeddings": vectors})
        assert {0.05, 0.1, found.likely} <= {*found.lists}
        kinds = FRAME.set_index("name")["source"][found.lists[found.likely].ids]
        assert (kinds == kind).mean() > 0.65


# What surrounds it --------------------------------------------------------------------------------


def test_texts_are_embedded_by_a_model_as_the_command_embeds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = tiny.build(SHAPE, [row["body"] for row in ROWS], seed=0)
    for each in (model, tokenizer):
        each.save_pretrained(tmp_path / "ours")
    monkeypatch.chdir(tmp_path)
    FRAME.drop(columns="vector").to_csv("texts.csv", index=False)
    words = ["rank", "texts.csv", "--text", "body", "--id", "name", "--model", "ours", "--quick"]
    words += ["--forget", GIVEN["forget"], "--retain", GIVEN["retain"], "--selectors", "stack"]
    assert main(words) == 0
    torch.use_deterministic_algorithms(False)
    state = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    changes = {"group": None, "embeddings": None, "model": tmp_path / "ours", "selector": "stack"}
    found = mamushi.rank(FRAME, **{**QUICK, **changes})
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == state
    assert not torch.are_deterministic_algorithms_enabled()
    cell = {"dataset": "texts", "model": "ours", "seed": 0, "selector": "stack"}
    for pattern, kind in (
        (paths.EMBEDDINGS, schemas.EMBEDDINGS),
        (paths.SCORES, schemas.SCORES),
    ):
        ours, theirs = found._pipeline.path(pattern, selector="stack"), pattern.format(**cell)
        assert read_table(ours, kind).equals(read_table(theirs, kind))
    assert found.advice["retraining"] is not None


def test_a_process_keeps_its_own_threads_and_sees_its_own_gpu() -> None:
    before, given = torch.get_num_threads(), dict(os.environ)
    torch.set_num_threads(3)
    try:
        with as_in_a_command():
            assert torch.get_num_threads() == 1 and not sees_gpu()
            assert {*side_by_side(lambda _: torch.get_num_threads(), range(4))} == {1}
            assert all(each["num_threads"] == 1 for each in threadpool_info())
        assert torch.get_num_threads() == 3 and dict(os.environ) == given
    finally:
        torch.set_num_threads(before)
