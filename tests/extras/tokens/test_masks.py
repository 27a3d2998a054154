"""Selectors of tokens, whose spans are left out of the loss in the place of whole texts."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.tables import read_table, write_table
from mamushi.lm.tokens import TokenSet
from mamushi_extras.tokens.masks import TokenPool, highest_spans
from mamushi_extras.tokens.selectors import token_random, token_unigram


def texts(forget: list[list[int]], retain: list[list[int]]) -> TokenSet:
    every = [*forget, *retain]
    return TokenSet(
        ids=np.array([f"id{i}" for i in range(len(every))], dtype=object),
        domains=np.array(["forget"] * len(forget) + ["retain"] * len(retain), dtype=object),
        tokens=np.array([token for each in every for token in each], dtype=np.int32),
        offsets=np.cumsum([0, *map(len, every)]),
    )


NOTHING = texts([], [])


def spans_of(
    scores: list[np.ndarray], k: int, places: list[np.ndarray] | None = None
) -> list[tuple[int, int, int]]:
    """Number of a text, first token and the one behind the last of each span."""
    return [tuple(row.values()) for row in highest_spans(range(len(scores)), scores, k, places)]


def test_the_highest_tokens_are_spans_in_their_texts() -> None:
    scores = [np.array(each, np.float32) for each in ([5, 4, 1, 3], [], [2], [2, 9])]
    assert spans_of(scores, 0) == []
    # A text's first token is not predicted: its scores begin with the second, at 1.
    assert spans_of(scores, 4) == [(0, 1, 3), (0, 4, 5), (3, 2, 3)]
    assert spans_of(scores, 7) == [(0, 1, 5), (2, 1, 2), (3, 1, 3)]
    # None that is as likely in the retain domain.
    scores = [np.array(each, np.float32) for each in ([5, 0, -1], [-2, 1])]
    assert spans_of(scores, 5) == [(0, 1, 2), (1, 2, 3)]


def test_spans_are_of_the_tokens_that_count() -> None:
    """What stands between two of them parts a span."""
    scores = [np.array(each, np.float32) for each in ([5, 4, 1], [3, 2])]
    places = [np.array(each) for each in ([2, 4, 5], [7, 8])]
    assert spans_of(scores, 4, places) == [(0, 2, 3), (0, 4, 5), (1, 7, 9)]
    some = replace(texts([[9, 1, 3]] * 4, [[9, 2, 3]] * 4), weights=np.float32([0, 0, 1] * 8))
    pool = TokenPool(some, NOTHING)
    scored = token_unigram.score_tokens(pool, {"folds": 2, "prior": 4.0}, 0)
    assert [each.tolist() for each in scored] == [[0.0]] * 8
    drawn = token_random.score_tokens(pool, {}, 0)
    assert [each if each is None else len(each) for each in drawn] == [1] * 4 + [None] * 4


def test_a_unigram_ratio_is_that_of_the_formula_out_of_fold() -> None:
    # Token 9 begins each text and is not scored; 1 is of forget, 2 of retain, 3 of both.
    pool = TokenPool(texts([[9, 1, 3]] * 4, [[9, 2, 3]] * 8), texts([[9, 1, 1, 7]], [[9, 2]]))
    settings = {"folds": 2, "prior": 4.0}
    scores = token_unigram.score_tokens(pool, settings, 0)
    assert [each.shape for each in scores] == [(2,)] * 12
    # Whatever the folds are: half of the texts of each domain, and the contamination section.
    forget, retain = {9: 3, 1: 4, 3: 2, 7: 1}, {9: 5, 2: 5, 3: 4}
    n1, n2 = sum(forget.values()), sum(retain.values())
    for place, token in enumerate((1, 3)):
        both = forget.get(token, 0) + retain.get(token, 0)
        share = 4.0 * both / (n1 + n2)
        one = (forget.get(token, 0) + share) / (n1 + 4)
        two = (retain.get(token, 0) + share) / (n2 + 4)
        assert [each[place] for each in scores[:4]] == pytest.approx([np.log(one / two)] * 4)
    # Retain texts are scored as well.
    assert all(each[0] < 0 for each in scores[4:])


def test_no_text_is_scored_by_its_own_words_nor_by_those_of_its_group() -> None:
    # Token 5 stands in one text alone, 6 in two of one group.
    forget, retain = [[9, 5], [9, 6], [9, 6], [9, 1], [9, 1]], [[9, 2]] * 6
    groups = np.array([0, 1, 1, 2, 3, *range(4, 10)])
    pool = TokenPool(texts(forget, retain), NOTHING, groups)
    scores = token_unigram.score_tokens(pool, {"folds": 2, "prior": 1.0}, 3)
    assert [each[0] for each in scores[:3]] == [0.0] * 3
    alone = TokenPool(pool.texts, NOTHING)
    seeds = (token_unigram.score_tokens(alone, {"folds": 2, "prior": 1.0}, s) for s in range(9))
    assert any(each[1][0] > 0 for each in seeds)


@pytest.mark.parametrize(("beta", "tokens"), [(0.1, 0), (0.3, 2), (0.9, 3)])
def test_the_spans_of_a_budget(beta: float, tokens: int, tmp_path: Path) -> None:
    scores, out = tmp_path / "scores.parquet", tmp_path / "spans.parquet"
    columns = {"id": ["a", "r", "b"], "domain": ["forget", "retain", "forget"]}
    columns["score"] = pa.array([[1.0, 3.0, 2.0], [9.0], [0.0] * 6]).cast(pa.list_(pa.float32()))
    write_table(scores, schemas.TOKEN_SCORES, columns, metadata={"cut": 64})
    files = [f"--scores={scores}", f"--out={out}"]
    assert main(["spans", *files, f"--settings={json.dumps({'beta': beta, 'code': 'c'})}"]) == 0
    found = read_table(out, schemas.SPANS).to_pylist()
    # Tokens of retain texts are neither masked nor counted.
    assert {row["id"] for row in found} <= {"a"}
    assert sum(row["stop"] - row["start"] for row in found) == tokens
    if tokens == 2:
        assert found == [{"id": "a", "start": 2, "stop": 4}]
    counted = [[False, True, False, True, True], [False, True], [False] + [True] * 6]
    columns["counted"] = pa.array(counted)
    write_table(scores, schemas.TOKEN_SCORES, columns, metadata={"cut": 64})
    assert main(["spans", *files, f"--settings={json.dumps({'beta': beta, 'code': 'd'})}"]) == 0
    if tokens == 2:
        assert read_table(out, schemas.SPANS).to_pylist() == [{"id": "a", "start": 3, "stop": 5}]
