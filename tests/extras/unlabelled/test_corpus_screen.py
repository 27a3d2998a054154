"""A corpus that tasks of datatrove screen: the texts that one process lets through, as the page
shows it."""

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from mamushi.cli import main
from mamushi.config.complete import complete
from mamushi.running.stage import stages
from mamushi_extras.unlabelled import screen
from tests.extras.unlabelled.test_like import write
from tests.support.workflow import ROOT
from tests.unit.test_docs import blocks

MOST = 90


def read_examples(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the table that the stage writes, by their texts."""
    settings = stages()["examples"].settings_text(complete(config), dataset="corpus")
    out = ["--examples", "e.parquet", "--duplicates", "d.parquet", "--card", "card.json"]
    assert main(["examples", "--cache", "cache", *out, "--settings", settings]) == 0
    rows = pq.read_table("e.parquet", columns=["text", "domain", "label__screen"]).to_pylist()
    return sorted(rows, key=lambda row: str(row["text"]))


def corpus_of(folder: Path) -> dict[str, Any]:
    """Write a corpus of three files into a folder, and say how one process screens it."""
    rng = random.Random(0)

    def texts(n: int, share: float) -> list[str]:
        return [
            " ".join(
                f"{'own' if rng.random() < share else 'word'}{rng.randrange(60)}" for _ in range(30)
            )
            for _ in range(n)
        ]

    (folder / "corpus").mkdir()
    for number, size in enumerate((60, 120, 60)):
        rows = [*texts(size, 0.02), *texts(size // 4, 0.3)]
        frame = pd.DataFrame({"body": [*rows, *rows[: size // 30]]})
        frame.to_parquet(folder / f"corpus/{number}.parquet")
    like = write(folder / "unwanted.jsonl", texts(60, 0.3))
    source: dict[str, Any] = {"kind": "table", "path": str(folder / "corpus"), "text": "body"}
    source |= {"forget": {"like": like, "screen": MOST}, "sections": {"inference": 1}}
    return {
        "grid": {"datasets": ["corpus"], "models": ["words"], "selectors": ["lexical"]},
        "datasets": {"corpus": source},
        "models": {"words": {"embeddings": {"words": 16}}},
    }


def page_block() -> str:
    """Return the code of the page, for this corpus."""
    text = (ROOT / "docs/guide/no-labels.md").read_text(encoding="utf-8")
    (block,) = (each for each in blocks(text, "python") if "CorpusScreen(" in each)
    return block.replace('"unwanted.jsonl"', '"unwanted.jsonl", like_text="body"').replace(
        "100_000", str(MOST)
    )


def passed_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration that ranks what passed."""
    forget = {"like": "unwanted.jsonl", "text": "body", "screened": "screen/screen.safetensors"}
    passed = {"path": "passed", "text": "text", "forget": forget}
    return {**config, "datasets": {"corpus": {**config["datasets"]["corpus"], **passed}}}


def test_four_tasks_let_the_texts_through_that_one_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the rest is known by as much: which examples would have passed."""
    pytest.importorskip("datatrove")
    monkeypatch.setattr(screen, "SCREEN_SAMPLE", 150)
    config = corpus_of(tmp_path)
    alone = read_examples(config)
    exec(compile(page_block().replace("tasks=tasks", "tasks=tasks, workers=1"), "page", "exec"), {})
    assert read_examples(passed_config(config)) == alone
    assert 60 < sum(row["domain"] != "forget" for row in alone) <= MOST
    card = json.loads(Path("card.json").read_text(encoding="utf-8"))
    assert card["counts"]["screened"] == {"texts": 308, "passed": MOST}
