"""A corpus that nobody labelled: examples beside it, a blocklist, what is wanted."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.config.complete import complete
from mamushi.data.examples import build_examples
from mamushi.data.raw import Raw
from mamushi.stages.data import ExamplesSettings
from mamushi_curate.tables.loaders.table import load
from mamushi_extras.audit.adds import ANSWERED as OF_PEOPLE
from mamushi_extras.unlabelled.like import GIVEN as KNOWN
from mamushi_extras.unlabelled.like import SCREEN as MARGIN
from mamushi_extras.unlabelled.stages import Posterior

GIVEN, ANSWERED, SCREEN = (f"label_{name}" for name in (KNOWN, OF_PEOPLE, MARGIN))
WORDS = ["the", "engine", "of", "a", "car", "needs", "oil", "and", "its", "brakes", "fluid", "new"]


def write(path: Path, rows: list[str], column: str = "body") -> str:
    """Write a JSON Lines file with a row per text; return its path."""
    path.write_text("".join(json.dumps({column: row}) + "\n" for row in rows), encoding="utf-8")
    return str(path)


LISTS = {"budgets": [0.1], "selectors": ["mamushi_lr"]}


def texts(n: int, seed: int, word: str = "") -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join([*rng.choice(WORDS, 12), word, str(i)]).strip() for i in range(n)]


def loaded(
    tmp_path: Path,
    corpus: list[str],
    answers: dict[str, str] | None = None,
    windows: dict[str, Any] | None = None,
    **forget: Any,
) -> tuple[Raw, dict[str, Any]]:
    files = {
        key: write(tmp_path / f"{key}.jsonl", value) if isinstance(value, list) else value
        for key, value in forget.items()
    }
    merged = tmp_path / "merged.json"
    merged.write_text(json.dumps({"labels": answers}), encoding="utf-8")
    own = {"answers": str(merged) if answers else None, "windows": windows}
    own |= {"kind": "table", "path": write(tmp_path / "corpus.jsonl", corpus), "text": "body"}
    config = {
        "grid": {"datasets": ["own"], "models": ["m"], "seeds": [0], **LISTS},
        "datasets": {"own": {**own, "forget": files, "sections": {"inference": 1.0}}},
        "models": {"m": {"embeddings": {"path": None}}},
    }
    full = complete(config)
    return load(full["datasets"]["own"], tmp_path), full


def examples_of(raw: Raw, full: dict[str, Any]) -> Any:
    return build_examples(raw, {"inference": 1.0}, {"forget": None, "retain": None}, full["data"])


def test_examples_lie_behind_the_corpus(tmp_path: Path) -> None:
    raw, full = loaded(
        tmp_path, texts(60, 0), like=texts(25, 1, "bomb"), unlike=texts(5, 2, "flower")
    )
    table, _, counts = examples_of(raw, full)
    assert raw.ids[59:62] == ["60", "like:1", "like:2"]
    assert table["domain"].to_pylist() == ["retain"] * 60 + ["forget"] * 25 + ["retain"] * 5
    assert table[GIVEN].to_pylist() == [None] * 60 + ["example"] * 25 + ["wanted"] * 5
    assert counts["corpus"] == 60
    assert sorted(raw.sources) == ["corpus.jsonl", "like like.jsonl", "unlike unlike.jsonl"]
    # How examples were drawn is of what a list holds, and of nothing that is read.
    fair = deepcopy(full)
    fair["datasets"]["own"]["forget"]["fair"] = ["like"]
    before, after = (ExamplesSettings.of(config, dataset="own") for config in (full, fair))
    assert before == after
    assert [Posterior.of(c, dataset="own").fair for c in (full, fair)] == [[], ["like"]]


def test_a_text_of_the_corpus_with_a_copy_among_the_examples_is_one(tmp_path: Path) -> None:
    corpus, like = texts(60, 0), texts(25, 1, "bomb")
    # An exact copy but for its case, a second copy of it, and one that is known to be wanted.
    corpus[7], corpus[20] = like[3].upper(), like[3]
    raw, full = loaded(tmp_path, corpus, like=like, unlike=[*texts(5, 2, "flower"), corpus[9]])
    table, copies, counts = examples_of(raw, full)
    rows = {row["id"]: row for row in table.to_pylist()}
    assert (rows["8"]["domain"], rows["8"][GIVEN]) == ("forget", None)
    assert "like:4" not in rows
    gone = copies.drop_columns("text_sha256").to_pylist()
    assert {"id": "21", "kept_id": "8", "reason": "exact"} in gone
    assert (rows["10"]["domain"], rows["10"][GIVEN]) == ("retain", "wanted")
    assert counts["corpus"] == 58
    # Those that go along in a list are of the corpus.
    assert copies["id"].to_pylist() == ["21"]


def test_answers_make_examples_and_wanted_texts_of_the_corpus(tmp_path: Path) -> None:
    """A person who was asked overrules an example, and the copies go with it."""
    corpus, like = texts(60, 0), texts(25, 1, "bomb")
    corpus[7], corpus[9] = like[3].upper(), corpus[8]
    answers = {"8": "no", "9": "no", "10": "no", "11": "yes"}
    raw, full = loaded(tmp_path, corpus, answers, like=like, unlike=texts(5, 2, "flower"))
    table, copies, counts = examples_of(raw, full)
    rows = {row["id"]: row for row in table.to_pylist()}
    known = {name: (rows[name]["domain"], rows[name][GIVEN]) for name in ("8", "9", "11", "12")}
    assert known["8"] == known["9"] == ("retain", "wanted")
    assert (known["11"], known["12"]) == (("forget", None), ("retain", None))
    said = {name: row[ANSWERED] for name, row in rows.items() if row[ANSWERED]}
    assert said == {"8": "no", "9": "no", "11": "yes"}
    # Of 60 texts one is a copy, and two are wanted.
    assert counts["corpus"] == 57
    gone = copies.drop_columns("text_sha256").to_pylist()
    assert gone == [{"id": "10", "kept_id": "9", "reason": "exact"}]
    # So too where copies stay.
    every = {"inference": 1.0}, {"forget": None, "retain": None}, full["data"]
    table = build_examples(raw, *every, drop_duplicates=False)[0].to_pylist()
    assert [row["id"] for row in table if row[GIVEN] == "wanted"][:3] == ["8", "9", "10"]


def test_a_blocklist_marks_its_hits_among_windows_too_and_an_answer_overrules_it(
    tmp_path: Path,
) -> None:
    corpus = texts(60, 0)
    corpus[:25] = [f"{text} BOMB" for text in corpus[:25]]
    corpus[30:32] = ["a bombastic word", "a b-o-m-b in here"]
    terms = tmp_path / "terms.txt"
    terms.write_text("bomb\n\n/b-o-.-b/\n", encoding="utf-8")
    raw, full = loaded(tmp_path, corpus, {"1": "no", "2": "yes", "60": "yes"}, terms=str(terms))
    assert np.flatnonzero(raw.forget).tolist() == [*range(1, 25), 31, 59]
    table, _, counts = examples_of(raw, full)
    assert table[GIVEN].to_pylist() == ["wanted", *[None] * 59] and counts["corpus"] == 59
    documents = [f"{one}\n\n{two}" for one, two in zip(texts(60, 3), corpus, strict=True)]
    raw, _ = loaded(tmp_path, documents, None, {}, terms=str(terms))
    assert np.flatnonzero(raw.forget).tolist() == [*range(1, 50, 2), 63]


def test_documents_of_a_corpus_are_divided_and_examples_are_not(tmp_path: Path) -> None:
    like, wanted = texts(25, 1, "bomb"), texts(5, 2, "flower")
    like[0] += "\n\nand more of it"
    corpus = [f"{one}\n\n{two}" for one, two in zip(texts(60, 0), texts(60, 3), strict=True)]
    # A paragraph that is an example is one, and the rest of its document is not.
    corpus[7] = f"{like[3].upper()}\n\n{corpus[7]}"
    unlike = [f"{wanted[0]}\n\n{corpus[9].splitlines()[0]}", *wanted[1:]]
    how = {"words": 20, "action": "remove"}
    raw, full = loaded(tmp_path, corpus, None, how, like=like, unlike=unlike)
    table, _, counts = examples_of(raw, full)
    rows = table.to_pylist()
    known = {row["id"]: (row["domain"], row[GIVEN], row["text"]) for row in rows}
    assert known[f"like:1#0-{len(like[0])}"] == ("forget", "example", like[0])
    of = {name: found for name, found in known.items() if name.startswith("8#")}
    assert [domain for domain, _, _ in of.values()] == ["forget", "retain", "retain"]
    (wanted_too,) = [name for name, found in known.items() if found[1] == "wanted" and name < "9"]
    assert wanted_too.startswith("10#0-")
    assert counts["corpus"] == 120
    # People are asked about windows.
    answers = {next(iter(of)): "no", next(iter(known)): "yes"}
    raw, full = loaded(tmp_path, corpus, answers, how, like=like, unlike=unlike)
    told = {row["id"]: (row["domain"], row[GIVEN]) for row in examples_of(raw, full)[0].to_pylist()}
    assert [told[name] for name in answers] == [("retain", "wanted"), ("forget", None)]
    groups = {row["id"]: row["group"] for row in rows}
    assert {groups[name] for name in of} == {"8"}


def test_a_screen_lets_through_what_is_most_like_the_examples_by_their_own_row_numbers(
    tmp_path: Path,
) -> None:
    corpus = texts(300, 0)
    for row in range(0, 300, 30):
        corpus[row] += " bomb"
    # Of another kind, which does not pass, and of a copy that does.
    like = [*texts(40, 1, "bomb"), "the oil of a car", corpus[30].upper()]
    raw, full = loaded(tmp_path, corpus, like=like, unlike=texts(30, 2), screen=20)
    own = raw.ids[:20]
    assert {str(row + 1) for row in range(0, 300, 30)} <= {*own}
    assert [corpus[int(name) - 1] for name in own] == list(raw.texts[:20])
    margin = np.asarray(raw.labels[MARGIN])
    assert (margin[:60] >= 0).all()
    assert margin[60] < 0
    table, _, counts = examples_of(raw, full)
    assert counts["screened"] == {"texts": 300, "passed": 20}
    assert counts["read"] == 300 + 42 + 30
    assert (table[SCREEN].to_numpy() < 0).sum() >= 25
    # A copy of an example, to which the fit was fitted, goes by the one without it.
    (copied,) = (row for row in table.to_pylist() if row["id"] == "31")
    assert copied["domain"] == "forget" and copied[SCREEN] == margin[61] < margin[own.index("31")]
    assert counts["corpus"] == 20
