"""The table of membership: which texts a row is about, what it says beside gold, what not.

40 ranked forget texts and 120 held-out ones. The log-likelihood of a text that a model has seen is
higher by ``MEMORY`` per token; one that it unlearned, by half of that.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.io import paths, schemas
from mamushi.io.tables import read_table, write_table
from mamushi_extras.effects.contrasts import ONE_SEED
from mamushi_extras.left.attacks import WHY_NOT
from mamushi_extras.left.schemas import LIKELIHOODS, MEMBERSHIP
from mamushi_extras.left.stages import arms_asked
from tests.support.score_files import unknown_texts
from tests.support.stage_files import command

Rows = list[dict[str, Any]]

AXES: dict[str, Any] = {
    **{"datasets": ["alpha"], "models": ["small"], "seeds": [0, 1, 2]},
    **{"selectors": ["random"], "budgets": [0.5], "unlearners": ["neggrad_plus"]},
}
LIST = {"selector": "random", "beta": "0.50"}
RETRAINED, UNLEARNED = (
    arms.retrained_arm(*LIST.values()),
    arms.unlearned_arm("neggrad_plus", *LIST.values()),
)
RANKED, HELD_OUT, TOKENS, MEMORY, NOISE = 40, 120, 10, 1.0, 0.05
IDS = [f"i{n:02d}" for n in range(RANKED)] + [f"e{n:03d}" for n in range(HELD_OUT)]


def write_all(root: Path) -> None:
    """Write the likelihoods and lists that the target `left` reads; each seed lists other texts."""
    hard = np.random.default_rng(99).normal(-4, 1, len(IDS))
    for cell in cells(AXES):
        listed = np.sort(np.random.default_rng(cell["seed"]).permutation(RANKED)[: RANKED // 2])
        seen = np.arange(len(IDS)) < RANKED
        memory = {"base": 0.0 * seen, "gold": 0.0 * seen, "beta0": 1.0 * seen}
        memory |= {"contaminated": 1.0 * seen, RETRAINED: 1.0 * seen, UNLEARNED: 1.0 * seen}
        memory[RETRAINED][listed], memory[UNLEARNED][listed] = 0.0, 0.5
        for arm, remembered in memory.items():
            noise = np.random.default_rng([cell["seed"], *arm.encode()]).normal(0, NOISE, len(IDS))
            columns = {
                **{"id": IDS, "section": ["inference"] * RANKED + ["evaluation"] * HELD_OUT},
                "tokens": [TOKENS] * len(IDS),
                "nll": -TOKENS * (hard + MEMORY * remembered + noise),
            }
            path = paths.under(root, paths.MEMBERSHIP, **cell, arm=arm)
            write_table(path, LIKELIHOODS, columns)
        none = [0.0] * len(listed)
        columns = {"id": [IDS[i] for i in listed], "score": none, "rank": range(len(listed))}
        columns |= unknown_texts(len(listed))
        write_table(paths.under(root, paths.REMOVAL, **cell, **LIST), schemas.REMOVALS, columns)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("left") / "results"
    write_all(made)
    return made


def table(root: Path, seeds: Sequence[int] = (0, 1, 2)) -> Rows:
    axes = AXES | {"seeds": [*seeds]}
    config = {"models": {"small": {}}, "left": axes, "unlearning": {"start": "beta0"}}
    how = {"name": "left", "settings": {"grid": axes, "arms": arms_asked(config)}}
    out = root.parent / "tables"
    assert main(command("publish", how, root=root, out_folder=out)) == 0
    rows: Rows = read_table(out / "membership.parquet", MEMBERSHIP).to_pylist()
    return rows


@pytest.fixture(scope="module")
def rows(root: Path) -> Rows:
    return table(root)


def where(rows: Rows, **columns: Any) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in columns.items())]


def one(rows: Rows, **columns: Any) -> dict[str, Any]:
    (row,) = where(rows, **columns)
    return row


def test_each_method_is_asked_about_the_texts_that_it_may_have_seen(rows: Rows) -> None:
    by_loss = where(rows, attack="loss", measure="auc")
    counts = {(row["method"], row["members"]): (row["texts"], row["others"]) for row in by_loss}
    # The contaminated model was trained on another section.
    wanted = {(name, "forget"): (RANKED, HELD_OUT) for name in ("base", "beta0")}
    for name in ("retraining", "neggrad_plus"):
        wanted |= {(name, members): (RANKED // 2, HELD_OUT) for members in ("removed", "kept")}
    assert counts == wanted
    assert {row["attack"] for row in rows} == {*WHY_NOT}


@pytest.mark.parametrize("attack", [a for a in WHY_NOT if a != "reference"])
def test_retraining_forgets_and_unlearning_stands_between(rows: Rows, attack: str) -> None:
    removed = where(rows, attack=attack, measure="auc", members="removed")
    retrained, unlearned = (one(removed, method=name) for name in ("retraining", "neggrad_plus"))
    assert retrained["verdict"] == "not told from gold"
    assert retrained["difference_low"] <= 0 <= retrained["difference_high"]
    assert unlearned["verdict"] == "more than gold"
    for row in (retrained, unlearned):
        assert row["low"] <= row["value"] <= row["high"]
        assert row["difference"] == pytest.approx(row["value"] - row["gold"])
    kept = where(rows, attack=attack, measure="auc", members="kept")
    assert {row["verdict"] for row in kept} == {"more than gold"}


def test_one_seed_has_numbers_and_no_interval(root: Path) -> None:
    for row in where(table(root, [0]), attack="loss"):
        assert row["difference"] == row["value"] - row["gold"] and row["why"] == ONE_SEED
        ends = [row[name] for name in row if name.endswith(("low", "high"))]
        assert [*ends, row["verdict"], row["at_fault"]] == [None] * 8


def test_an_attack_that_accuses_gold_models_is_marked(root: Path, tmp_path: Path) -> None:
    """The ranked texts are easier in themselves: gold models, which saw none, find them so too."""
    copy = tmp_path / "results"
    shutil.copytree(root, copy)
    for path in copy.glob("runs/**/arms/**/membership.parquet"):
        columns = read_table(path, LIKELIHOODS).to_pydict()
        easier = [20.0 if s == "inference" else 0.0 for s in columns["section"]]
        columns["nll"] = [n - e for n, e in zip(columns["nll"], easier, strict=True)]
        write_table(path, LIKELIHOODS, columns)
    removed = where(table(copy), method="retraining", members="removed", measure="auc")
    of_loss = one(removed, attack="loss")
    assert of_loss["at_fault"]
    assert of_loss["value"] > 0.8
    assert of_loss["verdict"] == "not told from gold"
    # What is told against other models does not ask how easy a text is.
    assert not one(removed, attack="likelihood_ratio")["at_fault"]
    assert not one(removed, attack="reference")["at_fault"]
