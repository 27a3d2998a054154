"""What a removal changes, and who pays for it, from files of runs whose truth is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mamushi.data.labels import TextProperties
from mamushi.io import paths, schemas
from mamushi.io.files import read_json, sha256, write_json
from mamushi.io.tables import write_table
from mamushi_extras.effects.contrasts import FEWEST_GROUPS, NO_TEXTS, ONE_SEED
from mamushi_extras.effects.effects import groups, tables
from mamushi_extras.effects.schemas import EFFECTS, SUBGROUPS
from tests.support.score_files import domains, unknown_texts, write_examples

N, RANKED, MARGIN = 240, 40, 0.02
AT = {"dataset": "d", "model": "m"}
SHARE = {"random": 0.5, "random_2": 0.3, "ours": 0.8, "back": 0.1, "worse": 0.0}
COST = {"ours": 0.2}
WORSE = {"worse": 0.1}
"""Nats by which all texts lose: no property of the forget domain."""
DEEP = {"random": 0.3, "random_2": 0.1, "ours": 0.0, "back": 0.6, "worse": 0.0}
"""Share that is recovered of the gap without word frequencies, which is a quarter of the whole."""
GRID: dict[str, Any] = {
    "datasets": ["d"], "models": ["m"], "budgets": [0.5], "selectors": list(SHARE),
}  # fmt: skip


def write_run(folder: Path, seeds: range) -> None:
    """Write models that recover ``SHARE`` of a gap, at a ``COST`` of retain texts of the topic `b`,
    in nats, and the lists of ``ours``."""
    rng, drawn = np.random.default_rng(1), np.random.default_rng(3)
    ids, forget = [f"t{i:03d}" for i in range(N)], np.arange(N) % 2 == 0
    topic = np.array(["a" if i % 4 < 2 else "b" for i in range(N)])
    # Threads of three texts of a domain; the last half has none.
    threads = [f"g{i // 6}{i % 2}" if i < N // 2 else None for i in range(N)]
    # Of the texts that are ranked, thirty are of the topic `a` and ten of `b`; those of the retain
    # domain, and of another section, are in no list.
    more = {
        "text": [" ".join(["w"] * (i % 9 + 2)) for i in range(N + RANKED + 20)],
        "section": ["evaluation"] * N + ["inference"] * RANKED + ["contamination"] * 20,
        "group": [*threads, *[None] * (RANKED + 20)],
        "label_topic": [*topic, *["a"] * 30, *["b"] * 30],
        # Of the forget domain, nine texts have the first value.
        "label_few": np.arange(N + RANKED + 20) > 17,
    }
    names, kinds = [f"r{i:02d}" for i in range(RANKED + 20)], ["forget"] * 50 + ["retain"] * 10
    examples = paths.under(folder, paths.EXAMPLES, dataset="d")
    write_examples(examples, ids + names, domains(forget) + kinds, **more)
    # One of them has nothing to predict.
    tokens = rng.integers(3, 20, N)
    tokens[5] = 0
    base = rng.normal(3, 0.3, N)
    opens = forget * (0.4 + 0.1 * rng.normal(size=N))
    for seed in seeds:
        changes = {"beta0": (0.0 * opens, 0.0), "gold": (opens, 1.0)}
        for name, share in SHARE.items():
            change = share * opens + (~forget & (topic == "b")) * COST.get(name, 0.0)
            change += WORSE.get(name, 0.0)
            changes[f"retrained/{name}/beta0.50"] = change + 0.01 * rng.normal(), DEEP[name]
        for arm, (change, of_deep) in changes.items():
            at = {**AT, "seed": seed, "arm": arm}
            nll = (base + 0.05 * seed + change + 0.02 * rng.normal(size=N)) * tokens
            deep = (base + of_deep * opens / 4 + 0.02 * drawn.normal(size=N)) * tokens
            # Half of either domain is sampled.
            sampled = np.where(np.arange(N) % 4 < 2, deep, np.nan)
            raked = pa.array(sampled, mask=np.isnan(sampled))
            columns = {"id": ids, "tokens": tokens, "nll": nll, "deep": raked}
            write_table(paths.under(folder, paths.NLL, **at), schemas.NLL, columns)
            card: dict[str, Any] = {"steps": 60, "settings": {"training": {"steps": "aligned"}}}
            card["inputs"] = {"examples": sha256(examples)}
            write_json(paths.under(folder, paths.CARD, **at), card)
        # One seed lists 18 of `a` and 2 of `b`, the next 15 and 5.
        listed = [*names[: 18 - 3 * seed], *names[30 : 32 + 3 * seed]]
        rows = {"id": listed, "score": np.zeros(20), "rank": np.arange(20) + 1, **unknown_texts(20)}
        of_list = {**AT, "seed": seed, "selector": "ours", "beta": "0.50"}
        write_table(paths.under(folder, paths.REMOVAL, **of_list), schemas.REMOVALS, rows)


def made(folder: Path, seeds: range) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of both tables."""
    by_chance = {name: name.startswith("random") for name in SHARE}
    of_tables = tables(folder, {**GRID, "seeds": list(seeds)}, ["ours"], by_chance, MARGIN)
    return of_tables[EFFECTS], of_tables[SUBGROUPS]


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_table_says_what_the_run_was_made_of(tmp_path: Path, seeds: int) -> None:
    write_run(tmp_path, range(seeds))
    rows = {row["selector"]: row for row in made(tmp_path, range(seeds))[0]}
    assert list(rows) == ["random", "ours", "back", "worse"]
    ours, chance, back, worse = rows["ours"], rows["random"], rows["back"], rows["worse"]
    # Both lists of chance are one selector, and what it is compared with.
    assert (chance["lists"], ours["lists"], "recovered_vs_random" in chance) == (2, 1, False)
    # What it costs retain texts is taken off: 0.1 of 0.4 nats, or all.
    for row, share in ((ours, 0.55), (chance, 0.4), (back, 0.1), (worse, 0.0)):
        assert row["recovered_net_low"] < share < row["recovered_net_high"]
        assert row["recovered_net"] == pytest.approx(share, abs=0.06)
        assert row["recovered_net_gap"] == pytest.approx(0.4, abs=0.02)
    for row, share in ((ours, 0.8), (chance, 0.4), (back, 0.1), (worse, 0.25)):
        assert row["recovered_low"] < share < row["recovered_high"]
        assert row["recovered"] == pytest.approx(share, abs=0.06)
        assert (row["steps"], row["equal_steps"], row["withheld"]) == ("aligned", True, None)
    for row, share in ((ours, 0.0), (chance, 0.2), (back, 0.6)):
        assert row["deep_low"] < share < row["deep_high"]
        assert row["deep_net_low"] < share < row["deep_net_high"]
        assert row["deep_gap"] == pytest.approx(0.1, abs=0.01) and row["deep_withheld"] is None
        assert 0 < row["deep_gap_low"] < row["deep_gap"] < row["deep_gap_high"]
    assert ours["deep_vs_random_high"] < 0 < back["deep_vs_random_low"]
    assert ours["recovered_vs_random_low"] > 0 > back["recovered_vs_random_high"]
    assert ours["p"] <= ours["p_holm"] < 0.05
    assert ours["comparisons"] == 3
    assert (ours["non_inferior"], ours["retain_change"]) == ("no", pytest.approx(0.1, abs=0.03))
    assert chance["non_inferior"] in ("yes", "cannot be told") and chance["retain_margin"] == MARGIN
    assert seeds != 3 or not ours["pooled"]


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
    listed = [*groups(texts, counted)]
    assert all(set(texts.forget[rows]) == {domain == "forget"} for domain, _, _, rows in listed)
    for name, (there, values) in expected.items():
        of_column = {(d, value): rows for d, column, value, rows in listed if column == name}
        assert sorted(np.concatenate([*of_column.values()])) == [*np.flatnonzero(there)]
        assert {value for _, value in of_column} == values
    longest = {value: texts.words[r].max() for _, name, value, r in listed if name == "words"}
    assert longest["short"] < longest["medium"] < longest["long"]


def test_with_one_seed_shares_have_no_interval_and_the_table_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, range(1))
    changes, subgroups = made(tmp_path, range(1))
    (ours,) = (row for row in changes if row["selector"] == "ours")
    assert ours["recovered"] > 0 and ours["withheld"] == ours["deep_withheld"] == ONE_SEED
    assert [name for name in ours if name.endswith(("_low", "_high", "_gold")) and ours[name]] == []
    assert (ours["p"], ours["comparisons"], ours["non_inferior"]) == (None, 0, "cannot be told")
    for row in subgroups:
        ends = [row[name] for name in row if name.endswith(("_low", "_high"))]
        few = row["texts"] < FEWEST_GROUPS
        assert (ends, row["withheld"]) == ([None] * len(ends), NO_TEXTS if few else ONE_SEED)


def test_who_pays_and_who_is_listed(tmp_path: Path) -> None:
    write_run(tmp_path, range(2))
    table = [row for row in made(tmp_path, range(2))[1] if row["selector"] == "ours"]
    rows = {(row["domain"], row["subgroup"], row["value"]): row for row in table}
    pays, other = rows["retain", "label_topic", "b"], rows["retain", "label_topic", "a"]
    assert (pays["texts"], pays["seeds"], pays["beta"]) == (60, 2, 0.5)
    assert 0 < pays["to_beta0_low"] < pays["to_beta0"] == pytest.approx(0.2, abs=0.05)
    assert other["to_beta0_low"] < 0 < other["to_beta0_high"]
    every = rows["forget", "all", "all"]
    # Of two seeds a difference has an interval, and a share has none.
    assert (every["recovered"], every["recovered_low"]) == (pytest.approx(0.8, abs=0.05), None)
    assert every["to_gold_low"] < -0.2 * 0.4 < every["to_gold_high"]
    # Too few texts for an interval, and so for a share.
    few = rows["forget", "label_few", "0"]
    assert (few["texts"], few["to_gold_low"], "recovered" in few) == (9, None, False)
    shares = {
        key: tuple(map(row.get, ("ranked", "listed", "of_list"))) for key, row in rows.items()
    }
    assert shares["forget", "all", "all"] == (40, 0.5, 1.0)
    a, b = shares["forget", "label_topic", "a"], shares["forget", "label_topic", "b"]
    assert a == (30, pytest.approx(0.55), pytest.approx(33 / 40))
    assert b == (10, pytest.approx(0.35), pytest.approx(7 / 40))
    # By the lengths of the held-out texts: up to 4 words are short.
    short = sum(i % 9 + 2 <= 4 for i in range(N, N + RANKED))
    assert shares["forget", "words", "short"][0] == short
    # None of those that are ranked has this value.
    assert shares["forget", "label_few", "0"] == (0, None, None)
    assert {of_list for key, of_list in shares.items() if key[0] == "retain"} == {(None,) * 3}


def test_of_a_list_counts_what_its_own_seed_has_drawn(tmp_path: Path) -> None:
    write_run(tmp_path, range(2))
    pool = pq.read_table(paths.under(tmp_path, paths.EXAMPLES, dataset="d"))
    # Ten texts of `a`, and five of `b`, that are on no list.
    for seed, left_out in enumerate([range(18, 28), range(35, 40)]):
        drawn = paths.under(tmp_path, paths.DRAWN, dataset="d", seed=seed)
        gone = pa.array([f"r{i:02d}" for i in left_out])
        write_table(drawn, schemas.EXAMPLES, pool.filter(pc.invert(pc.is_in(pool["id"], gone))))
        card = paths.under(tmp_path, paths.CARD, **AT, seed=seed, arm="gold")
        write_json(card, read_json(card) | {"inputs": {"examples": sha256(drawn)}})
    table = made(tmp_path, range(2))[1]
    shares = {row["value"]: (row["ranked"], row["listed"]) for row in table if "listed" in row}
    assert shares["a"] == (25, pytest.approx(16.5 / 25))
    assert shares["b"] == (8, pytest.approx(3.5 / 7.5))
