"""A paragraph that is planted in long documents is found, and cut out of their file."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.io.files import read_json
from tests.support.lab import WORDS, write_lab
from tests.support.removal_files import command
from tests.support.workflow import mamushi

pytestmark = pytest.mark.slow

QUICK = "--cores 1 --config 'selectors={mamushi_lr: {solver: newton-cholesky}}'"
DOCUMENTS, OTHERS = 60, 5


def paragraph(rng: random.Random, source: str) -> str:
    return " ".join(rng.choices(WORDS[source][3:], k=12))


def documents() -> dict[str, tuple[str, str]]:
    """By id the text of a document and, of every other one, the unwanted paragraph in it."""
    rng, found = random.Random(0), {}
    for i in range(DOCUMENTS):
        parts = [paragraph(rng, "ours") for _ in range(OTHERS)]
        unwanted = "" if i % 2 else f"{paragraph(rng, 'theirs')} \U0001f600"
        if unwanted:
            # Behind what is read of a whole text, and so never where the ending of a file is.
            parts.insert(rng.randrange(OTHERS), unwanted)
        found[f"d{i}"] = ("\n\n".join(parts), unwanted)
    # An exact copy, of which nobody knows.
    found["copy"] = (found["d0"][0].upper(), found["d0"][1].upper())
    return found


def rows(texts: dict[str, str]) -> list[dict[str, object]]:
    return [
        {"id": name, "body": text, "kind": int(name == "copy" or int(name[1:]) % 2 == 0)}
        for name, text in texts.items()
    ]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model ``ours``, in which the documents are ranked in windows to cut."""
    folder = tmp_path_factory.mktemp("lab")
    write_lab(folder)
    texts = {name: text for name, (text, _) in documents().items()}
    pq.write_table(pa.Table.from_pylist(rows(texts)), folder / "long.parquet")
    given = ["long.parquet", "--text", "body", "--id", "id", "--forget", "kind == 1"]
    given += ["--model", "ours", "--windows", "100", "--cut", "--selectors", "mamushi_lr"]
    # As many as there are unwanted paragraphs among the windows of forget documents.
    given += ["--budgets", str(round(1 / (OTHERS + 1) + 0.001, 3))]
    mamushi(folder, "rank", *given, "--snakemake-args", QUICK)
    return folder


def test_what_is_planted_is_found_and_cut(lab: Path) -> None:
    (listed,) = lab.glob("results/runs/long/ours/seed0/removals/mamushi_lr/beta0.1*.parquet")
    assert read_json(listed.with_suffix(".json"))["windows"]["action"] == "cut"
    out = lab / "clean.parquet"
    command("apply", listed, "--data", lab / "long.parquet", "--out", out)
    found = pq.read_table(out).to_pylist()
    planted = {name: unwanted for name, (_, unwanted) in documents().items() if unwanted}
    whole = {name: text for name, (text, _) in documents().items()}
    left = {str(row["id"]): str(row["body"]) for row in found}
    gone = [name for name, unwanted in planted.items() if unwanted not in left[name]]
    assert len(gone) >= 0.8 * len(planted) and ("copy" in gone) == ("d0" in gone)
    # Nothing else: all that is left is what was there, in its order.
    wanted = {
        name: whole[name].replace(f"{planted[name]}\n\n", "") if name in gone else whole[name]
        for name in whole
    }
    same = [name for name in whole if left[name] == wanted[name]]
    assert len(same) >= 0.8 * len(whole)
    assert found == rows(left)
