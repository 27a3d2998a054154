"""A corpus of many files: the same texts are ranked however many jobs screen its files."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.cli import main
from mamushi.config.complete import complete
from mamushi.io import digests, paths, schemas
from mamushi.io.tables import read_table
from mamushi.running.stage import stages
from mamushi_extras.shards import handed_on
from mamushi_extras.shards import settings as of_shards
from mamushi_extras.shards.settings import divide_files, shards_of
from mamushi_extras.unlabelled import screening
from mamushi_extras.unlabelled.screen import fit_screen
from tests.support.corpora import write_texts

Rows = list[dict[str, Any]]
LETTERS = "abcdefgh"


def text(rng: random.Random, share: float) -> str:
    """Thirty words, of which a share is of sixty that others hardly have."""
    words = (
        f"{'own' if rng.random() < share else 'word'}{rng.choice(LETTERS)}{rng.choice(LETTERS)}"
        for _ in range(30)
    )
    return " ".join(words)


def rows_of(n: int) -> Rows:
    """Rows of a corpus, some of which are copies, and one of which has no text."""
    rng = random.Random(n)
    rows = [
        {
            "name": f"c{number}",
            "body": text(rng, 0.3 if number % 9 == 0 else 0.02),
            "thread": f"t{number // 3}" if number % 2 else None,
            "votes": number,
        }
        for number in range(n)
    ]
    for first, copy in ((0, 100), (27, 28), (9, n - 1)):
        rows[copy]["body"] = rows[first]["body"]
    rows[5]["body"] = ""
    return rows


def write_rows(path: Path, rows: Rows) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Write a corpus of five files of unequal sizes; return its configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(screening, "SCREEN_SAMPLE", 150)
    rng = random.Random(1)
    write_texts(tmp_path / "like.jsonl", [text(rng, 0.3) for _ in range(60)])

    def written(ending: str, shards: int, **settings: Any) -> dict[str, Any]:
        rows = rows_of(400)
        Path("corpus").mkdir(exist_ok=True)
        for number, (start, stop) in enumerate(
            [(0, 10), (10, 150), (150, 160), (160, 390), (390, 400)]
        ):
            write_rows(Path("corpus") / f"part-{number}{ending}", rows[start:stop])
        dataset = {
            **{"kind": "table", "path": "corpus", "text": "body", "sections": {"inference": 1}},
            **{"forget": {"like": "like.jsonl", "screen": 0.3}, "labels": ["votes"], **settings},
        }
        return complete(
            {
                "grid": {"datasets": ["corpus"], "models": ["words"], "selectors": ["lexical"]},
                "datasets": {"corpus": dataset},
                "models": {"words": {"embeddings": {"words": 16}}},
                "execution": {"shards": shards},
            }
        )

    return written


def run(stage: str, config: dict[str, Any], *options: str, **wildcards: Any) -> None:
    settings = stages()[stage].settings_text(config, dataset="corpus", **wildcards)
    assert main([stage, *options, "--settings", settings]) == 0


def screened(config: dict[str, Any]) -> list[str]:
    """Screen the corpus by a job per shard, in another order than that of the files; return what
    `examples` reads of it."""

    def at(pattern: str, shard: int = 0) -> str:
        path = Path(pattern.format(dataset="corpus", shard=shard))
        path.parent.mkdir(parents=True, exist_ok=True)
        return str(path)

    numbers = range(len(shards_of(config, "corpus")))
    backwards = numbers[::-1]
    for n in backwards:
        run("screen-texts", config, "--out", at(paths.SCREEN_TEXTS, n), shard=n)
    texts = [at(paths.SCREEN_TEXTS, n) for n in numbers]
    run("screen-fit", config, "--texts", *texts, "--out", at(paths.CORPUS_SCREEN))
    screen = ["--screen", at(paths.CORPUS_SCREEN)]
    for n in backwards:
        run("screen-scores", config, *screen, "--out", at(paths.SCREEN_SCORES, n), shard=n)
    scores = [at(paths.SCREEN_SCORES, n) for n in numbers]
    run("screen-cut", config, "--scores", *scores, "--out", at(paths.SCREEN_CUT))
    for n in backwards:
        files = ["--scores", scores[n], "--cut", at(paths.SCREEN_CUT)]
        run("screen-pass", config, *files, "--out", at(paths.PASSED_ROWS, n), shard=n)
    return [
        *map(at, (paths.CORPUS_SCREEN, paths.SCREEN_CUT)),
        *(at(paths.PASSED_ROWS, n) for n in numbers),
    ]


def examples(config: dict[str, Any], parts: list[str]) -> tuple[bytes, bytes]:
    """Return the bytes of both tables that the stage writes."""
    files = ["examples.parquet", "duplicates.parquet"]
    options = ["--examples", files[0], "--duplicates", files[1], "--card", "card.json"]
    run("examples", config, "--cache", "cache", "--parts", *parts, *options)
    return Path(files[0]).read_bytes(), Path(files[1]).read_bytes()


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("settings", [{"id": "name", "group": "thread"}, {}], ids=["ids", "rows"])
def test_any_number_of_shards_ranks_the_same_texts(
    corpus: Callable[..., dict[str, Any]], ending: str, settings: dict[str, Any]
) -> None:
    """To the byte, and as one process does that reads all files."""
    whole = examples(corpus(ending, 1, **settings), [])
    for shards in (2, 500):
        config = corpus(ending, shards, **settings)
        assert len(shards_of(config, "corpus")) == min(shards, 5)
        assert examples(config, screened(config)) == whole
    table = read_table("examples.parquet", schemas.EXAMPLES).to_pylist()
    ranked = [row for row in table if not row["id"].startswith("like:")]
    assert 100 < len(ranked) <= 120
    # Ids stand for the rows of all files.
    bodies = {row["name" if settings else "number"]: row["body"] for row in numbered(rows_of(400))}
    assert all(bodies[row["id"]] == row["text"] for row in ranked)


def numbered(rows: Rows) -> Rows:
    return [{**row, "number": str(number)} for number, row in enumerate(rows, 1)]


def test_a_file_that_changes_between_two_readings_is_told(
    corpus: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    config = corpus(".jsonl", 3, id="name")
    settings = stages()["examples"].settings_text(config, dataset="corpus")
    parts, changed = screened(config), Path("corpus/part-1.jsonl")
    (n,) = [n for n, files in enumerate(shards_of(config, "corpus")) if changed in files]
    changed.write_text(changed.read_text(encoding="utf-8").replace("own", "won"), encoding="utf-8")
    files = ["--scores", parts[2 + n].replace("passed", "scores"), "--cut", parts[1]]
    run("screen-pass", config, *files, "--out", parts[2 + n], shard=n)
    options = ["--cache", "c", "--examples", "e", "--duplicates", "d", "--card", "k"]
    assert main(["examples", "--parts", *parts, *options, "--settings", settings]) == 2
    assert "corpus: has changed while it was read; run again" in capsys.readouterr().err


def test_of_many_files_one_that_changed_is_told_as_well(
    corpus: Callable[..., dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(digests, "MANY", 4)
    config = corpus(".jsonl", 1, id="name")
    settings = stages()["examples"].settings_text(config, dataset="corpus")
    assert {*json.loads(settings)["inputs"]} == {"5 files", "like.jsonl"}
    options = ["--cache", "c", "--examples", "e", "--duplicates", "d", "--card", "k"]
    assert main(["examples", *options, "--settings", settings]) == 0
    changed = Path("corpus/part-1.jsonl")
    changed.write_text(changed.read_text(encoding="utf-8").replace("own", "won"), encoding="utf-8")
    assert main(["examples", *options, "--settings", settings]) == 2
    assert "5 files: has changed since this run began; run again" in capsys.readouterr().err


def test_bad_input_is_told_by_the_job_that_reads_it(
    corpus: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    config = corpus(".jsonl", 3)
    with Path("corpus/part-4.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"body": 7}\n')
    settings = stages()["screen-texts"].settings_text(config, dataset="corpus", shard=2)
    assert main(["screen-texts", "--out", "texts.parquet", "--settings", settings]) == 2
    said = capsys.readouterr().err
    assert "dataset corpus: part-4.jsonl, row 11: column 'body' is 7, not text" in said
    assert not Path("texts.parquet").exists()


def test_a_screen_is_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    rng = random.Random(3)
    fitted = fit_screen([text(rng, 0.3) for _ in range(40)], [text(rng, 0.02) for _ in range(99)])
    texts = [*(text(rng, 0.1) for _ in range(50)), "unheard of words", ""]
    sample = screening.ScreenSample(np.array([1]), ["a"], 7, ["body"], {"a.csv": "0"})
    handed_on.write_screen(tmp_path / "screen.safetensors", fitted, sample, {})
    again, about = handed_on.read_screen(tmp_path / "screen.safetensors")
    assert np.array_equal(again.scores(texts), fitted.scores(texts))
    assert again.fold.tolist() == fitted.fold.tolist()
    assert (about.rows, about.digests) == (7, {"a.csv": "0"})


def test_the_jobs_of_many_shards_list_the_files_once(
    corpus: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And there are no more shards than a command can name."""
    asked = list[int]()

    def divided(files: list[Path], most: int) -> list[list[Path]]:
        asked.append(most)
        return divide_files(files, most)

    monkeypatch.setattr(of_shards, "MOST_SHARDS", 4)
    monkeypatch.setattr(of_shards, "divide_files", divided)
    config = corpus(".jsonl", 5)
    assert len(shards_of(config, "corpus")) == 4
    for shard in range(4):
        stages()["screen-texts"].settings_text(config, dataset="corpus", shard=shard)
    assert asked == [4]


@pytest.mark.parametrize("most", [1, 2, 7, 30, 1000])
def test_files_are_divided_by_their_bytes(tmp_path: Path, most: int) -> None:
    files = []
    for number, size in enumerate([*[100] * 20, 5000, *[0] * 3, *[100] * 6]):
        files.append(tmp_path / f"{number:02}")
        files[-1].write_bytes(b"x" * size)
    runs = divide_files(files, most)
    assert [file for run in runs for file in run] == files
    assert len(runs) == min(most, len(files))
    assert all(runs)
    if most == 7:
        heaviest = max(range(7), key=lambda n: sum(f.stat().st_size for f in runs[n]))
        assert files[20] in runs[heaviest]
        assert len(runs[heaviest]) < 12
