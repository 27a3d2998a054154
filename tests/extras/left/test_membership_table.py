"""The table of membership: which texts a row is about, what it says beside gold, what not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from mamushi.io.tables import read_table, write_table
from mamushi_extras.left.attacks import ATTACKS, audit_texts
from mamushi_extras.left.schemas import LIKELIHOODS
from tests.support.audit_files import AXES, HELD, RANKED, write_all

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("left") / "results"
    write_all(made)
    return made


def made(root: Path, start: str = "beta0", ready: tuple[str, ...] = (), **axes: Any) -> Rows:
    rows: Rows = audit_texts({**AXES, **axes}, {"small": start}, ready, root).to_pylist()
    return rows


@pytest.fixture(scope="module")
def found(root: Path) -> Rows:
    return made(root)


def where(rows: Rows, **columns: Any) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in columns.items())]


def one(rows: Rows, **columns: Any) -> dict[str, Any]:
    (row,) = where(rows, **columns)
    return row


def test_each_method_is_asked_about_the_texts_that_it_may_have_seen(found: Rows) -> None:
    rows = where(found, attack="loss", measure="auc")
    asked = {(row["method"], row["members"]): (row["texts"], row["others"]) for row in rows}
    # The contaminated model was trained on another section.
    wanted = {(name, "forget"): (RANKED, HELD) for name in ("base", "beta0")}
    for name in ("retraining", "neggrad_plus"):
        wanted |= {(name, members): (RANKED // 2, HELD) for members in ("removed", "kept")}
    assert asked == wanted
    assert {row["attack"] for row in found} == {*ATTACKS}


@pytest.mark.parametrize("ready", [(), ("small",)])
def test_a_start_that_has_not_seen_them_is_not_asked(root: Path, ready: tuple[str, ...]) -> None:
    """A model that was trained before it came has seen all there is."""
    rows = made(root, start="contaminated", ready=ready, seeds=[0])
    asked = {row["method"] for row in rows}
    assert ({"neggrad_plus", "contaminated"} & asked != set()) == bool(ready)
    assert "retraining" in asked


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a != "reference"])
def test_retraining_forgets_and_unlearning_stands_between(found: Rows, attack: str) -> None:
    rows = where(found, attack=attack, measure="auc", members="removed")
    retrained, unlearned = (one(rows, method=name) for name in ("retraining", "neggrad_plus"))
    assert retrained["verdict"] == "not told from gold"
    assert retrained["difference_low"] <= 0 <= retrained["difference_high"]
    assert unlearned["verdict"] == "more than gold"
    for row in (retrained, unlearned):
        assert row["low"] <= row["value"] <= row["high"]
        assert row["difference"] == pytest.approx(row["value"] - row["gold"])
    kept = where(found, attack=attack, measure="auc", members="kept")
    assert {row["verdict"] for row in kept} == {"more than gold"}


def test_an_attack_that_accuses_gold_models_is_marked(root: Path, tmp_path: Path) -> None:
    """The ranked texts are easier in themselves: gold models, which saw none, find them so too."""
    copy = tmp_path / "results"
    shutil.copytree(root, copy)
    for path in copy.glob("runs/**/arms/**/membership.parquet"):
        columns = read_table(path, LIKELIHOODS).to_pydict()
        easier = [20.0 if s == "inference" else 0.0 for s in columns["section"]]
        columns["nll"] = [n - e for n, e in zip(columns["nll"], easier, strict=True)]
        write_table(path, LIKELIHOODS, columns)
    rows = where(made(copy), method="retraining", members="removed", measure="auc")
    of_loss = one(rows, attack="loss")
    assert of_loss["at_fault"]
    assert of_loss["value"] > 0.8
    assert of_loss["verdict"] == "not told from gold"
    # What is told against other models does not ask how easy a text is.
    assert not one(rows, attack="likelihood_ratio")["at_fault"]
    assert not one(rows, attack="reference")["at_fault"]
