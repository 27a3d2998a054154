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
from datasets import Dataset
from threadpoolctl import threadpool_info

import mamushi
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table
from mamushi.lm import tiny
from mamushi.running.machine import command_environment, sees_gpu, side_by_side
from mamushi.selection.selectors import mamushi_lr
from tests.support.lab import SHAPE

N, BUDGETS = 90, [0.1, 0.25]
WORDS = {"ours": ["river", "stone", "water"], "theirs": ["engine", "wheel", "brake"]}


def rows() -> list[dict[str, Any]]:
    """Texts of two kinds, a few of them copies, one in both domains, one empty and one of neither;
    the first author has several."""
    rng = np.random.default_rng(0)
    made = [
        {
            "name": f"t{i}",
            "body": f"{' '.join(rng.choice(WORDS[kind], 12))} {i}",
            "source": kind,
            "author": f"a{max(i - 5, 0)}",
            "vector": [float(x) for x in rng.normal(size=6) + 0.8 * (kind == "theirs")],
        }
        for i, kind in enumerate(rng.choice([*WORDS], N))
    ]
    theirs = next(row for row in made if row["source"] == "theirs")
    made[-1] |= {"body": theirs["body"].upper(), "source": "theirs"}
    made[-2] |= {"body": "A text in both.", "source": "theirs"}
    made[-3] |= {"body": "a text in both.", "source": "ours"}
    made[-4] |= {"body": ""}
    made[-5] |= {"source": "unknown"}
    return made


ROWS = rows()
FRAME = pd.DataFrame(ROWS)
VECTORS = np.array([row["vector"] for row in ROWS])
GIVEN: dict[str, Any] = {
    **{"text": "body", "id": "name", "group": "author", "budgets": BUDGETS},
    **{"forget": "source == 'theirs'", "retain": "source == 'ours'", "embeddings": VECTORS},
}
QUICK = {**GIVEN, "selector": "mamushi_lr", "quick": True}


class Other:
    """A frame that hands itself over as Arrow does, and is made of a table of Arrow, as Polars'."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(schema)

    def __getitem__(self, name: str) -> Any:
        return self.table[name].to_pylist()


KINDS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: FRAME,
    "arrow": lambda: pa.Table.from_pylist(ROWS),
    "datasets": lambda: Dataset.from_list(ROWS),
    "of another library": lambda: Other(pa.Table.from_pylist(ROWS)),
}


@pytest.fixture(scope="module")
def ranked() -> Any:
    return mamushi.rank(FRAME, **QUICK)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_of_each_kind_is_ranked_alike_and_comes_back_as_it_is(
    kind: str, ranked: Any
) -> None:
    frame = KINDS[kind]()
    ranking = mamushi.rank(frame, **{**QUICK, "embeddings": "vector"})
    assert ranking.scores.equals(ranked.scores)
    for beta, listed in ranking.lists.items():
        assert listed.ids == ranked.lists[beta].ids and listed.ids
        left = ranking.apply(frame, beta)
        assert type(left) is type(frame)
        gone = listed.ids + listed.copies
        assert [*map(str, left["name"])] == [r["name"] for r in ROWS if r["name"] not in gone]
    assert len(frame["name"]) == N


def test_rows_are_numbered_from_1_and_copies_go_along() -> None:
    """The last row is a copy of the first forget text, which is made the first to go."""
    vectors = VECTORS.copy()
    first = next(i for i, row in enumerate(ROWS) if row["source"] == "theirs")
    vectors[first] = 50.0
    ranking = mamushi.rank(FRAME, **{**QUICK, "id": None, "group": None, "embeddings": vectors})
    listed = ranking.lists[0.1]
    assert listed.ids[0] == str(first + 1) and listed.copies == [str(N)]
    gone = {int(name) - 1 for name in [*listed.ids, *listed.copies]}
    assert ranking.apply(FRAME, 0.1).index.tolist() == [i for i in range(N) if i not in gone]
    with pytest.raises(UserError, match="is not the one that was ranked"):
        ranking.apply(FRAME[::-1], 0.1)


# Refusals -----------------------------------------------------------------------------------------

LIKE = [f"an engine with wheel and brake {i}" for i in range(30)]
CORPUS = {"forget": None, "retain": None, "like": LIKE}
REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "the frame: int is no one table; give a table of pandas": (3, {}),
    "holds 'ours', 'theirs', 'unknown', not 0 and 1": (FRAME, {"forget": "source"}),
    "forget: has another index than the frame": (
        FRAME,
        {"forget": (FRAME["source"] == "theirs")[::-1]},
    ),
    "has 89 rows, and the frame 90": (FRAME, {"embeddings": VECTORS[1:]}),
    "not (120, width), with 30 of like": (FRAME, CORPUS),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_ranked_is_one_line_and_nothing_is_computed(
    says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, changes = REFUSED[says]
    monkeypatch.setattr(mamushi_lr, "score", lambda *_: pytest.fail("scored"))
    with pytest.raises(UserError) as refused:
        mamushi.rank(frame, **{**QUICK, **changes})
    (line,) = str(refused.value).splitlines()
    assert says in line, line
    assert refused.value._render_traceback_() == [f"mamushi: {line}"]


def test_a_corpus_in_memory_goes_by_the_vectors_of_its_examples() -> None:
    """Those behind the frame's are of the examples, and then of the wanted texts."""
    selector = {"kind": "mamushi_lr", "solver": "newton-cholesky", "alpha": 1.0}
    ours, theirs = (VECTORS[FRAME["source"] == kind][:25] for kind in WORDS)
    unlike = [f"a river {i}" for i in range(25)]
    given = QUICK | CORPUS | {"like": LIKE[:25], "unlike": unlike, "budgets": ()}
    for first, second, kind in ((theirs, ours, "theirs"), (ours, theirs, "ours")):
        vectors = np.concatenate([VECTORS, first, second])
        ranking = mamushi.rank(FRAME, **{**given, "selector": selector, "embeddings": vectors})
        assert {0.05, 0.1, ranking.likely} <= {*ranking.lists}
        kinds = FRAME.set_index("name")["source"][ranking.lists[ranking.likely].ids]
        assert (kinds == kind).mean() > 0.65


@pytest.mark.parametrize("make", [pd.DataFrame, pa.Table.from_pylist, Dataset.from_list])
def test_conversations_in_a_frame(make: Callable[[list[dict[str, Any]]], Any]) -> None:
    """By their turns or by the answers alone; a list takes them out."""
    bad = np.arange(60) % 3 == 0
    vectors = np.random.default_rng(0).normal(size=(60, 6)) + bad[:, None]
    turns = [[("user", "What is it?"), ("assistant", f"It is {i * 7}.")] for i in range(60)]
    frame = make(
        [
            {"bad": bool(bad[i]), "messages": [{"role": r, "content": said} for r, said in of]}
            for i, of in enumerate(turns)
        ]
    )
    options: dict[str, Any] = {"embeddings": vectors, "selector": "mamushi_lr", "quick": True}
    for part in ("whole", "assistant"):
        options |= {"text": "messages", "part": part}
        ranking = mamushi.rank(frame, forget="bad", budgets=0.2, **options)
        left, listed = ranking.apply(frame, 0.2), ranking.lists[0.2]
        assert len(left) == 60 - len(listed.ids) - len(listed.copies) < 60
    options |= {"embeddings": np.concatenate([vectors, vectors[:30]]), "part": "whole"}
    with pytest.raises(UserError, match="is conversations, and the other is not"):
        mamushi.rank(frame, like=LIKE, **options)


# What surrounds it --------------------------------------------------------------------------------


def test_texts_are_embedded_by_a_model_as_the_command_embeds_them(tmp_path: Path) -> None:
    for made in tiny.build(SHAPE, [row["body"] for row in ROWS], seed=0):
        made.save_pretrained(tmp_path / "ours")
    FRAME.drop(columns="vector").to_csv("texts.csv", index=False)
    words = ["rank", "texts.csv", "--text", "body", "--id", "name", "--model", "ours", "--quick"]
    words += ["--forget", GIVEN["forget"], "--retain", GIVEN["retain"], "--selectors", "stack"]
    assert main(words) == 0
    torch.use_deterministic_algorithms(False)
    state = torch.get_rng_state().tolist()
    changes = {"group": None, "embeddings": None, "model": tmp_path / "ours", "selector": "stack"}
    ranking = mamushi.rank(FRAME, **{**QUICK, **changes})
    assert torch.get_rng_state().tolist() == state
    assert not torch.are_deterministic_algorithms_enabled()
    cell = {"dataset": "texts", "model": "ours", "seed": 0, "selector": "stack"}
    for pattern, kind in ((paths.EMBEDDINGS, schemas.EMBEDDINGS), (paths.SCORES, schemas.SCORES)):
        ours, theirs = ranking._pipeline.path(pattern, selector="stack"), pattern.format(**cell)
        assert read_table(ours, kind).equals(read_table(theirs, kind))
    assert ranking.advice["retraining"] is not None


def test_a_process_keeps_its_own_threads_and_sees_its_own_gpu() -> None:
    before, given = torch.get_num_threads(), dict(os.environ)
    torch.set_num_threads(3)
    try:
        with command_environment():
            assert torch.get_num_threads() == 1 and not sees_gpu()
            assert {*side_by_side(lambda _: torch.get_num_threads(), range(4))} == {1}
            assert all(each["num_threads"] == 1 for each in threadpool_info())
        assert torch.get_num_threads() == 3 and dict(os.environ) == given
    finally:
        torch.set_num_threads(before)
