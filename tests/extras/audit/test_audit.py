"""``mamushi audit``: what is drawn, what several people's answers say, and whose are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.digests import fingerprint
from mamushi.io.files import read_json, write_json
from mamushi.io.tables import read_table, write_table
from mamushi_extras.audit.auditing import ONE_READER, agreed_answers
from tests.support.audited import FORGET, LISTED, RETAIN, write_audited, write_corpus
from tests.support.removal_files import command, link

TRUE = {*(f"f{i}" for i in range(50)), *(f"r{i}" for i in range(4))}
"""The texts of the domain: ten of the labels are wrong in one direction, four in the other."""


@pytest.fixture
def folder() -> Path:
    Path("comments.csv").write_text("id,text\n", encoding="utf-8")
    return Path("results")


@pytest.fixture
def made(folder: Path) -> Path:
    return write_audited(folder, copies={"f0": ["f0 again"]})


def audit() -> dict[str, Any]:
    return dict(read_json("audit/audit.json"))


def write_answers(who: str, told: dict[str, Any] | None = None, true: Any = TRUE) -> str:
    """A file of one person's answers, to all texts as they are unless told otherwise."""
    right = {each["id"]: "yes" if each["id"] in true else "no" for each in audit()["sample"]}
    about = {"audit": fingerprint(audit()), "annotator": who, "answers": right | (told or {})}
    write_json(f"{who}.json", about)
    return f"{who}.json"


def merged(*files: str) -> dict[str, Any]:
    command("audit", "--merge", *files)
    return dict(read_json("audit/merged.json"))


def test_the_sample_is_recorded_with_its_probabilities_and_tells_what_to_expect(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("audit", made, "--size", 100)
    said, found = capsys.readouterr().out.splitlines(), audit()
    assert [row["texts"] for row in found["strata"]] == [15, 15, 5, 25, 30, 210]
    names = [row["texts_of"] for row in found["strata"]]
    assert names == ["listed"] * 2 + ["kept"] * 2 + ["retain"] * 2
    strata = [each["stratum"] for each in found["sample"]]
    # Who reads knows nothing of the stratum.
    assert strata != sorted(strata)
    by_stratum = np.bincount(strata)
    for row, drawn in zip(found["strata"], by_stratum, strict=True):
        assert row["drawn"] == drawn and row["probability"] == drawn / row["texts"]
    assert by_stratum.sum() == len({each["id"] for each in found["sample"]}) == 100
    assert said[0] == "100 of 300 texts are drawn"
    # The same again, and not another one in its place.
    before = Path("audit/audit.html").read_bytes()
    assert main(["audit", str(made), "--size", "100", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["strata"] == found["strata"]
    assert Path("audit/audit.html").read_bytes() == before
    with pytest.raises(UserError, match="another audit is there"):
        command("audit", made, "--size", 100, "--seed", 1)


def test_of_a_corpus_the_strata_come_from_its_posteriors(folder: Path) -> None:
    command("audit", write_corpus(folder), "--size", 60)
    found = audit()
    names = [row["texts_of"] for row in found["strata"]]
    assert names == ["listed"] * 2 + ["kept"] * 3
    assert [row["texts"] for row in found["strata"]] == [10, 10, 13, 39, 28]
    # The example and the wanted text beside the corpus are not asked about.
    assert {each["id"] for each in found["sample"]} <= {f"c{i}" for i in range(100)}
    likely = [row["likely"] for row in found["strata"]]
    assert likely == sorted(likely, reverse=True)
    first = {f"c{i}" for i in range(18)}
    estimates = merged(*(write_answers(who, true=first) for who in ("ana", "ben")))["estimates"]
    true = {"precision": 0.9, "recall": 1.0, "before": 0.18, "after": 0.0}
    assert all(low <= true[name] <= high for name, (_, low, high) in estimates.items())


def test_earlier_answers_are_kept_beside_new_ones(made: Path) -> None:
    """The next ranking is by these labels alone."""
    path = made.parents[6] / "data/comments/examples.parquet"
    table = read_table(path, schemas.EXAMPLES)
    said = ["no" if name in ("f0", "f1") else None for name in table["id"].to_pylist()]
    labelled = table.append_column("label__answered", pa.array(said, pa.string()))
    write_table(path, schemas.EXAMPLES, labelled)
    link(made)
    command("audit", made, "--size", 100)
    ids = {each["id"] for each in audit()["sample"]} - {"f0"}
    labels = merged(write_answers("ana", {"f0": "unsure"}, true=ids))["labels"]
    assert labels == {"f0": "no", "f0 again": "no", **dict.fromkeys(ids, "yes")}


def test_two_people_are_merged_and_the_truth_is_in_the_intervals(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("audit", made, "--size", 150)
    drawn = [each["id"] for each in audit()["sample"]]
    doubted = next(name for name in drawn if name.startswith("f") and name != "f0")
    other = "no" if doubted in TRUE else "yes"
    files = [write_answers("ana"), write_answers("ben", {doubted: other, drawn[-1]: "unsure"})]
    capsys.readouterr()
    found, said = merged(*files), capsys.readouterr().out.splitlines()
    truth = {
        "precision": 1.0,
        "recall": LISTED / len(TRUE),
        "before": len(TRUE) / (FORGET + RETAIN),
        "after": (len(TRUE) - LISTED) / (FORGET + RETAIN - LISTED),
    }
    assert [line.split()[0] for line in said[1:5]] == [*truth]
    for name, true in truth.items():
        _, low, high = found["estimates"][name]
        assert low <= true <= high and high - low < 0.5
    # Nobody can say of the text on which they differ, nor of the one on which Ana is alone.
    assert said[0] == "150 of 150 texts, 2 of them unsure"
    assert found["annotators"] == ["ana", "ben"]
    assert doubted not in found["labels"] and len(found["labels"]) >= 149
    assert found["labels"].get("f0 again") == found["labels"].get("f0")


def test_one_reader_gives_labels_and_no_share(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who says yes to 5% of what is kept by mistake; asked twice, the share holds."""
    command("audit", made, "--size", 200)
    kept = [each["id"] for each in audit()["sample"] if each["id"] not in TRUE]
    mistaken, again = (dict.fromkeys(kept[start::20], "yes") for start in (0, 1))
    found, said = merged(write_answers("ana", mistaken)), capsys.readouterr().out
    assert found["estimates"] is None and found["withheld"] == ONE_READER
    assert len(found["labels"]) >= 200 and f" of them of the domain; {ONE_READER}\n" in said
    found = merged("ana.json", write_answers("ana again", again))
    _, low, high = found["estimates"]["recall"]
    assert low <= LISTED / len(TRUE) <= high and found["withheld"] is None
    assert found["unsure"] == len(mistaken) + len(again)


def test_the_majority_decides_and_a_tie_is_unsure() -> None:
    answers = {"one": "yyyuu", "two": "ynnnu", "three": "nun", "four": "y n  n"}
    words = {"y": "yes", "n": "no", "u": "unsure", " ": None}
    people = pd.DataFrame({who: pd.Series([*said]) for who, said in answers.items()}).map(words.get)
    assert "".join(a[0] for a in agreed_answers(people[["one", "two", "three"]])) == "yunnu"
    # Of those that two have reached: what two more say than the other answer.
    assert "".join(a[0] for a in agreed_answers(people, 2)) == "yunuu"
    assert len(agreed_answers(people[["one"]], 2)) == 0
