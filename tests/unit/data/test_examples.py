"""The stage: from raw files to the table and its card, and nothing at all after bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi import cli
from mamushi.data.examples import build_examples
from mamushi.data.raw import Raw
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.digests import text_sha
from mamushi.io.files import read_json, sha256
from mamushi.io.tables import read_metadata, read_table
from mamushi.registry import plugin

DATA = {
    "split_seed": 0,
    "near_duplicates": 0.9,
    "shingle_words": 3,
    "max_characters": 1000,
}
PAPER = {"contamination": 0.4, "inference": 0.4, "evaluation": 0.2}
NO_LIMIT = {"forget": None, "retain": None}
UNUSED = Path("unused")


def raw_of(texts: list[str], forget: list[bool], **changes: Any) -> Raw:
    n = len(texts)
    columns: dict[str, Any] = {
        "ids": [f"id{i}" for i in range(n)],
        "texts": texts,
        "forget": np.array(forget),
        "section": [None] * n,
        "stratum": [""] * n,
        "places": [f"row {i + 1}" for i in range(n)],
    }
    return Raw(**columns | changes)


def test_every_step_is_counted() -> None:
    words = [f"w{i}" for i in range(60)]
    long = " ".join(words)
    texts = [" one ", "ONE", "  ", "both", "Both", long, long + " tail", "two", "three", "four"]
    forget = [True, True, True, True, False, False, False, False, True, True]
    labels, ratio = {"place": [*range(10)]}, np.arange(10) / 10
    raw = raw_of(texts, forget, dropped={"unlabelled": 4}, labels=labels, log_density_ratio=ratio)
    table, duplicates, counts = build_examples(
        raw, {"inference": 1.0}, {"forget": 2, "retain": None}, DATA
    )
    # Of the four forget texts that are kept, the limit leaves two; it leaves the copies alone.
    gone = {"id1": ("id0", "exact", "ONE"), "id6": ("id5", "near", long + " tail")}
    gone |= {"id3": (None, "cross_post", "both"), "id4": (None, "cross_post", "Both")}
    assert duplicates.to_pylist() == [
        {"id": name, "kept_id": kept, "reason": reason, "text_sha256": text_sha(text)}
        for name, (kept, reason, text) in sorted(gone.items())
    ]
    assert counts["read"] == 14 and counts["left_out"] == {"unlabelled": 4}
    dropped = {s["step"]: (s["dropped"]["forget"], s["dropped"]["retain"]) for s in counts["steps"]}
    assert dropped == {
        "read": (0, 0),
        "empty": (1, 0),
        "exact_duplicates": (1, 0),
        "near_duplicates": (0, 1),
        "cross_posts": (1, 1),
        "limit": (1, 0),
    }
    assert counts["steps"][0]["kept"] == {"forget": 6, "retain": 4}
    assert counts["sections"] == {"inference": {"forget": 2, "retain": 2}}
    assert set(table["text"].to_pylist()) < {"one", long, "two", "three", "four"}
    # Labels and the ratio follow their rows.
    places = table["label_place"].to_pylist()
    assert [texts[place].strip() for place in places] == table["text"].to_pylist()
    assert table["log_density_ratio"].to_pylist() == [place / 10 for place in places]


def test_a_text_that_was_trained_on_is_not_evaluated_on() -> None:
    raw = raw_of(
        ["same", "x", "SAME", "y", "z"],
        [True, False, True, False, True],
        section=[None, None, "evaluation", "evaluation", "evaluation"],
    )
    table, _, counts = build_examples(raw, {"inference": 1.0}, NO_LIMIT, DATA)
    assert table["id"].to_pylist() == ["id0", "id1", "id3", "id4"]
    assert table["section"].to_pylist() == ["inference"] * 2 + ["evaluation"] * 2
    assert counts["sections"]["evaluation"] == {"forget": 1, "retain": 1}


@pytest.mark.parametrize(
    ("texts", "forget", "changes", "message"),
    [
        (["a", "b" * 1001], [True, False], {}, "row 2: a text of 1,001 characters; allowed are"),
        (["a", "b"], [True, False], {"ids": ["x", "x"]}, "row 2: id 'x' is there twice, first in"),
        (["a", "b", "c"], [True, False, False], {}, "forget domain has no texts in section 'inf"),
    ],
)
def test_bad_rows(
    texts: list[str], forget: list[bool], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        build_examples(raw_of(texts, forget, **changes), PAPER, NO_LIMIT, DATA)


def run(folder: Path, settings: dict[str, Any]) -> Path:
    out = folder / "out"
    tables = [("--examples", "examples.parquet"), ("--duplicates", "duplicates.parquet")]
    words = [word for name, file in tables for word in (name, str(out / file))]
    words += ["--card", str(out / "card.json"), "--cache", str(folder / "cache")]
    assert cli.main(["examples", "--settings", json.dumps(settings), *words]) == 0
    return out


def test_stage_writes_table_and_card_and_the_same_bytes_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"inference": {"forget": 20, "retain": 30}, "evaluation": {"forget": 5, "retain": 5}}
    given = {
        **{"dataset": "mine", "kind": "synthetic", "sections": {}, "limit": NO_LIMIT, "data": DATA},
        **{"drop_duplicates": True, "inputs": {}, "code": "digest"},
        "loader": plugin("dataset", "synthetic").defaults | {"sizes": sizes},
    }
    first, second = (run(tmp_path / name, given) for name in "ab")
    assert "section inference: 20 forget, 30 retain" in capsys.readouterr().err
    table = read_table(first / "examples.parquet", schemas.EXAMPLES)
    assert table.num_rows == 60 and table["log_density_ratio"].null_count == 0
    card = read_json(first / "card.json")
    assert card["settings"] == given and card["versions"]["mamushi"]
    assert card["counts"]["sections"]["evaluation"] == {"forget": 5, "retain": 5}
    of = read_metadata(first / "duplicates.parquet")["examples"]
    assert of == sha256(first / "examples.parquet")
    for name in ("examples.parquet", "duplicates.parquet", "card.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


@pytest.mark.real_data
def test_real_newsgroups(shared: Path) -> None:
    path = str(shared / "data/20ng/20news-bydate.tar.gz")
    loader = plugin("dataset", "newsgroups").defaults | {"path": path}
    raw = plugin("dataset", "newsgroups").code.load(loader, UNUSED)
    table, _, counts = build_examples(raw, PAPER, NO_LIMIT, DATA | {"max_characters": 1_000_000})
    assert counts["read"] == 18_846
    assert [sum(step["dropped"].values()) for step in counts["steps"]] == [0, 515, 77, 53, 0, 0]
    assert table.num_rows == 18_201
