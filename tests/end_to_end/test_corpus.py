"""A corpus in which nobody marked the domain: examples that are planted in it come first, and its
lists apply and are handed over."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from mamushi import rank
from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.digests import fingerprint
from mamushi.io.files import read_json, write_json
from mamushi.io.tables import read_metadata, read_table
from mamushi.lm import tiny
from mamushi_extras.unlabelled.schemas import POSTERIOR
from tests.support.lab import SHAPE, WORDS
from tests.support.workflow import mamushi

pytestmark = pytest.mark.slow

RANK = ["rank", "corpus.jsonl", "--text", "body", "--id", "id", "--model", "ours", "--cores", "1"]
FAIR = ["like", "unlike"]
RANK += ["--like", "unwanted.jsonl", "--unlike", "wanted.jsonl", "--like-text", "words"]
RANK += ["--fair", *FAIR]
CELL = {"dataset": "corpus", "model": "ours", "seed": 0, "selector": "mamushi_words"}


def write(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `mamushi rank` has ranked a corpus, every tenth text of which is unwanted;
    c5, c17 and c18 are copies of examples."""
    folder, rng = tmp_path_factory.mktemp("corpus"), random.Random(0)

    def text(kind: str) -> str:
        return " ".join(rng.choices(WORDS[kind], k=15))

    like = [text("theirs") for _ in range(60)]
    corpus = {f"c{i}": text("ours" if i % 10 else "theirs") for i in range(400)}
    corpus |= {"c5": like[0], "c17": like[1].upper(), "c18": like[1]}
    write(folder / "corpus.jsonl", [{"id": name, "body": each} for name, each in corpus.items()])
    write(folder / "unwanted.jsonl", [{"words": each} for each in like])
    write(folder / "wanted.jsonl", [{"words": text("ours")} for _ in range(60)])
    model, tokenizer = tiny.build(SHAPE, list(corpus.values()), seed=0)
    model.save_pretrained(folder / "ours")
    tokenizer.save_pretrained(folder / "ours")
    done = mamushi(folder, *RANK)
    (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
    return folder


def made(ranked: Path, pattern: str, **more: Any) -> Path:
    return ranked / pattern.format(**{**CELL, **more})


def test_what_is_planted_comes_first(ranked: Path) -> None:
    rows = pq.read_table(made(ranked, paths.POSTERIOR)).to_pylist()
    order = [row for row in sorted(rows, key=lambda row: row["rank"] or 0) if row["rank"]]
    assert len(order) == 399
    assert {row["id"] for row in order[:2]} == {"c5", "c17"}
    assert [row["posterior"] for row in order[:2]] == [1.0, 1.0]
    unwanted = [int(row["id"][1:]) % 10 == 0 for row in order[2:42]]
    assert sum(unwanted) >= 36
    assert not any(row["rank"] for row in rows if ":" in row["id"])
    share = read_json(made(ranked, paths.MANIFEST, beta="0.10"))["share"]
    assert share["low"] <= 42 / 399 <= share["high"]
    said = (ranked / "said.txt").read_text(encoding="utf-8")
    for part in ("399 texts of the corpus, by 60 examples", "2 texts are copies of examples"):
        assert part in said


def test_a_corpus_in_memory_is_ranked_as_one_in_files(ranked: Path) -> None:
    """Scores, posteriors, lists and what is said of them, to the last bit."""
    frame, like, unlike = (
        pd.read_json(ranked / f"{name}.jsonl", lines=True)
        for name in ("corpus", "unwanted", "wanted")
    )
    beside = {"like": like["words"], "unlike": unlike["words"].tolist(), "fair": FAIR}
    found = rank(frame, text="body", id="id", model=ranked / "ours", **beside)
    table = read_table(made(ranked, paths.POSTERIOR), POSTERIOR)
    assert found.scores.equals(table)
    about = read_metadata(made(ranked, paths.POSTERIOR))
    assert found.share == about["share"]
    assert len(found.lists[found.likely].ids) == about["likely"]
    for beta in (0.01, 0.05, 0.1, found.likely):
        own = found.lists[beta]
        written = paths.beta(beta)
        listed = read_table(made(ranked, paths.REMOVAL, beta=written), schemas.REMOVALS)
        assert own.table.to_pylist() == listed.to_pylist()
        manifest = read_json(made(ranked, paths.MANIFEST, beta=written))
        of_place = {"dataset", "model", "provenance", "crc32"}
        same = json.loads(json.dumps(dict(own.manifest))).items()
        assert {n: v for n, v in same if n not in of_place} == {
            n: v for n, v in manifest.items() if n in own.manifest and n not in of_place
        }
    gone = found.apply(frame, found.likely)
    assert not {"c5", "c17", "c18"} & {*gone["id"]}
    with pytest.raises(UserError, match="advise: nobody marked the domain in the corpus"):
        _ = found.advice


def test_an_audit_is_fed_back_into_the_ranking(ranked: Path, tmp_path: Path) -> None:
    """What people want is in no list, what they do not comes first, and the rest is ranked anew."""
    shutil.copytree(ranked, folder := tmp_path / "audited")
    unwanted = {f"c{i}" for i in range(400) if i % 10 == 0 or i in (5, 17, 18)}
    list_ = paths.REMOVAL.format(**CELL, beta="0.10")
    mamushi(folder, "audit", list_, "--size", "100")
    audit = read_json(folder / "audit/audit.json")
    asked = {each["id"] for each in audit["sample"]}
    told = {name: "yes" if name in unwanted else "no" for name in asked}
    about = {"audit": fingerprint(audit), "annotator": "ana", "answers": told}
    files = [f"answers-{who}.json" for who in ("ana", "ben")]
    for who, file in zip(("ana", "ben"), files, strict=True):
        write_json(folder / file, about | {"annotator": who})
    mamushi(folder, "audit", "--merge", *files)
    merged = read_json(folder / "audit/merged.json")
    before = {*pq.read_table(folder / list_)["id"].to_pylist()}
    mamushi(folder, "list", "--texts", "7", "--cores", "1")
    true = {"precision": len(before & unwanted) / len(before), "before": 42 / 399}
    for name, share in true.items():
        _, low, high = merged["estimates"][name]
        assert low <= share <= high
    done = mamushi(folder, *RANK, "--label", "audit/merged.json", "--force").stdout
    yes, no = ({n for n, a in merged["labels"].items() if a == each} for each in ("yes", "no"))
    rows = pq.read_table(made(folder, paths.POSTERIOR)).to_pylist()
    assert len(no) > 20 and not [row for row in rows if row["id"] in no and row["rank"]]
    certain = (yes | {"c5", "c17"}) - {"c18"}
    assert len(yes) > 10
    first = {row["id"] for row in rows if row["rank"] and row["rank"] <= len(certain)}
    assert first == certain
    # A list that nobody asks for again is of the ranking before.
    old = paths.REMOVAL.format(**CELL, beta="0.02")
    assert f"\n{old}: is of an earlier ranking, and not to be acted on\n" in done
    refused = mamushi(folder, "apply", old, "--data", "corpus.jsonl", "--out", "x", check=False)
    assert f"error: {old}: is of an earlier ranking than the one that is there" in refused.stderr
    share = read_json((folder / list_).with_suffix(".json"))["share"]
    assert share["low"] <= 42 / 399 <= share["high"]
