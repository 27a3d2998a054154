"""Who pays: the change of loss by groups of held-out texts, by hand and by simulation."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.data.labels import TextProperties
from mamushi.evaluation.effects import groups
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table, write_table
from tests.support.score_files import unknown_texts

GRID = {
    "datasets": ["d"], "models": ["m"], "seeds": [0, 1], "budgets": [0.5], "selectors": ["vmf"],
}  # fmt: skip
N = 240
FEW = ("forget", "label_few", "0")


def labelled(**labels: Any) -> TextProperties:
    rng = np.random.default_rng(0)
    return TextProperties(np.arange(N) % 2 == 0, rng.integers(1, 90, N) + 0.0, np.zeros(N), labels)


def test_every_text_with_a_value_is_in_one_group_of_its_column() -> None:
    topic = np.array([["a", None, "b"][i % 3] for i in range(N)], dtype=object)
    flag = np.where(np.arange(N) % 5 == 0, np.nan, np.arange(N) % 2)
    texts = labelled(label_topic=topic, label_flag=flag, label_size=np.arange(N, dtype=float))
    counted = np.arange(N) != 7
    expected = {
        "all": (counted, {"all"}),
        "words": (counted, {"short", "medium", "long"}),
        "label_topic": (counted & (topic != None), {"a", "b"}),  # noqa: E711
        "label_flag": (counted & ~np.isnan(flag), {"0", "1"}),
        "label_size": (counted, {"low", "middle", "high"}),
    }
    found = groups(texts, counted)
    assert all(set(texts.forget[part.rows]) == {part.domain == "forget"} for part in found)
    for name, (there, values) in expected.items():
        of_column = [part for part in found if part.subgroup == name]
        assert sorted(np.concatenate([part.rows for part in of_column])) == [*np.flatnonzero(there)]
        assert {part.value for part in of_column} == values
    longest = {p.value: texts.words[p.rows].max() for p in found if p.subgroup == "words"}
    assert longest["short"] < longest["medium"] < longest["long"]


def write_nll(path: Path, ids: list[str], tokens: np.ndarray, nll: np.ndarray) -> None:
    write_table(
        path, schemas.NLL, {"id": ids, "tokens": tokens, "nll": nll, "deep": [None] * len(ids)}
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two seeds, in which retain texts of the topic `b` are predicted worse by 0.5 nats a token."""
    folder, rng = tmp_path / "results", np.random.default_rng(0)
    ids = [f"t{i:03d}" for i in range(N)]
    topic = np.array(["a" if i % 4 < 2 else "b" for i in range(N)])
    forget = np.arange(N) % 2 == 0
    # Of the texts that are ranked, thirty are of the topic `a` and ten of `b`; those of the retain
    # domain, and of another section, are in no list.
    more = 60
    examples = {
        "id": ids + [f"r{i:02d}" for i in range(more)],
        "text": [" ".join(["w"] * (i % 9 + 2)) for i in range(N + more)],
        "domain": [*np.where(forget, "forget", "retain"), *["forget"] * 50, *["retain"] * 10],
        "section": ["evaluation"] * N + ["inference"] * 40 + ["contamination"] * 20,
        "log_density_ratio": pa.nulls(N + more, pa.float64()),
        "group": pa.nulls(N + more, pa.string()),
        "label_topic": [*topic, *["a"] * 30, *["b"] * 30],
        # Of the forget domain, nine texts have the first value.
        "label_few": np.arange(N + more) > 17,
    }
    write_table(paths.under(folder, paths.EXAMPLES, dataset="d"), schemas.EXAMPLES, examples)
    tokens = rng.integers(1, 20, N)
    for seed in (0, 1):
        run = {"dataset": "d", "model": "m", "seed": seed}
        beta0 = (3 + seed + rng.normal(0, 0.2, N)) * tokens
        gold = beta0 + forget * tokens
        after = beta0 + (~forget & (topic == "b")) * 0.5 * tokens + rng.normal(0, 0.1, N) * tokens
        for endpoint, nll in (("beta0", beta0), ("gold", gold)):
            at = paths.under(folder, paths.NLL, **run, arm=endpoint)
            write_nll(at, ids, tokens, nll)
        at = paths.under(folder, paths.NLL, **run, arm="retrained/vmf/beta0.50")
        write_nll(at, ids, tokens, after)
        # One seed lists 18 of `a` and 2 of `b`, the other 15 and 5.
        names = [f"r{i:02d}" for i in [*range(18 - 3 * seed), *range(30, 32 + 3 * seed)]]
        listed = {"id": names, "score": np.zeros(20), "rank": np.arange(20) + 1}
        at = paths.under(folder, paths.REMOVAL, **run, selector="vmf", beta="0.50")
        write_table(at, schemas.REMOVALS, {**listed, **unknown_texts(20)})
    return folder


def make(root: Path, **settings: Any) -> int:
    words = ["--root", str(root), "--out-folder", str(root / "tables")]
    given = {"grid": GRID, "ranked": GRID["selectors"], **settings}
    return main(["subgroups", *words, "--settings", json.dumps(given)])


def test_the_group_that_pays_is_the_one_that_pays(root: Path) -> None:
    assert make(root) == 0
    rows = read_table(root / "tables/subgroups.parquet", schemas.SUBGROUPS).to_pylist()

    def row(domain: str, subgroup: str, value: str) -> dict[str, Any]:
        key = (domain, subgroup, value)
        (found,) = [r for r in rows if (r["domain"], r["subgroup"], r["value"]) == key]
        return found

    pays, other = row("retain", "label_topic", "b"), row("retain", "label_topic", "a")
    assert (pays["texts"], pays["seeds"], pays["beta"]) == (60, 2, 0.5)
    assert 0 < pays["to_beta0_low"] < pays["to_beta0"] == pytest.approx(0.5, abs=0.05)
    assert other["to_beta0_low"] < 0 < other["to_beta0_high"]
    assert row("forget", "all", "all")["to_gold"] == pytest.approx(-1.0, abs=0.05)
    assert row("retain", "all", "all")["to_beta0"] == pytest.approx(0.25, abs=0.08)
    few = row("forget", "label_few", "0")
    assert (few["texts"], few["to_gold_low"]) == (9, None)


def test_a_list_is_told_by_the_parts_of_the_forget_domain(root: Path) -> None:
    assert make(root) == 0
    rows = read_table(root / "tables/subgroups.parquet", schemas.SUBGROUPS).to_pylist()
    names = ("ranked", "listed", "of_list")
    told = {
        (r["subgroup"], r["value"]): tuple(r[name] for name in names)
        for r in rows
        if r["domain"] == "forget"
    }
    assert told["all", "all"] == (40, 0.5, 1.0)
    a, b = told["label_topic", "a"], told["label_topic", "b"]
    assert a == (30, pytest.approx(0.55), pytest.approx(33 / 40))
    assert b == (10, pytest.approx(0.35), pytest.approx(7 / 40))
    # By the lengths of the held-out texts: up to 4 words are short.
    short = sum(i % 9 + 2 <= 4 for i in range(N, N + 40))
    assert told["words", "short"][0] == short
    # None of those that are ranked has this value.
    assert told["label_few", "0"] == (0, None, None)
    retain = [r for r in rows if r["domain"] == "retain"]
    assert {r[name] for r in retain for name in (*names, "recovered")} == {None}
    # Gold is a nat a token above beta 0 everywhere in the forget domain, the removal nowhere.
    (whole,) = [r for r in rows if (r["domain"], r["subgroup"]) == ("forget", "all")]
    assert whole["recovered_low"] < 0 < whole["recovered_high"] < 0.1
    # Too few texts for an interval, and so for a share.
    (few,) = [r for r in rows if (r["domain"], r["subgroup"], r["value"]) == FEW]
    assert (few["recovered"], few["recovered_low"]) == (None, None)
