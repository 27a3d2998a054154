"""Two runs of the same seed on the CPU: the same bits from the fine-tune to the scores, also where
one of them was killed."""

import json
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mamushi.io import schemas
from mamushi.io.files import sha256
from mamushi.io.tables import read_table, write_table
from mamushi.registry import plugin
from tests.support.models import TRAINING
from tests.support.processes import mamushi
from tests.support.real_texts import made_up

pytestmark = pytest.mark.slow

KILLS = 3
TRAINED = {
    **TRAINING,
    **{"learning_rate": 1e-4, "epochs": 1.0, "max_length": 12, "precision": "bf16"},
    **{"trained_blocks": 1, "train_input_embedding": False, "train_output_head": False},
}
FINETUNE = {
    **{"dataset": "d", "model": "smollm2", "seed": 0, "role": "contaminated"},
    **{"section": "inference", "domains": ["forget", "retain"], "training": TRAINED},
}
EMBED = {
    "embedding": {
        **{"pooling": "mean", "skip_bos": True, "layer": -1, "max_length": 12},
        "precision": "bf16",
    },
    "training": TRAINED,
}
SCORE = {
    **{"selector": "mamushi", "kind": "mamushi", "seed": 0},
    "settings": {**plugin("selector", "mamushi").defaults, "seeds_averaged": 2},
}
EXECUTION = {"MAMUSHI_EXECUTION": '{"checkpoint_seconds": 0}'}
TUNED = ("trained.safetensors", "card.json")
RANKED = ("embeddings.parquet", "scores.parquet")
TIMES = ("seconds", "tokens_per_second")


def words(stage: str, settings: dict[str, Any], **files: str | Path) -> list[str]:
    given = [f"--{name.replace('_', '-')}={path}" for name, path in files.items()]
    return [stage, *given, f"--settings={json.dumps(settings)}"]


@pytest.fixture(scope="module")
def prepared(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts and their tokens."""
    folder = tmp_path_factory.mktemp("prepared")
    texts, forget = made_up(20)
    write_table(
        folder / "examples.parquet",
        schemas.EXAMPLES,
        {
            "id": [f"t{place}" for place in range(len(texts))],
            "text": texts,
            "domain": ["forget" if each else "retain" for each in forget],
            "section": ["inference"] * len(texts),
            "log_density_ratio": pa.nulls(len(texts), pa.float64()),
            "group": pa.nulls(len(texts), pa.string()),
        },
    )
    given = {"examples": "examples.parquet", "model_card": smollm2, "out": "tokens.parquet"}
    assert mamushi(folder, *words("tokens", {"max_length": 12}, **given)).wait() == 0
    return folder


def finetune(card: Path) -> list[str]:
    return words(
        "finetune",
        FINETUNE,
        examples="examples.parquet",
        tokens="tokens.parquet",
        model_card=card,
        log_table="log.parquet",
        card="card.json",
        tensors="trained.safetensors",
    )


def follow(folder: Path, card: Path) -> None:
    """Embed and score with the model that was trained."""
    embed = words(
        "embed",
        EMBED,
        examples="examples.parquet",
        tokens="tokens.parquet",
        model_card=card,
        trained="trained.safetensors",
        out="embeddings.parquet",
    )
    scored = {"examples": "examples.parquet", "embeddings": "embeddings.parquet"}
    for command in (embed, words("score", SCORE, **scored, out="scores.parquet")):
        assert mamushi(folder, *command).wait() == 0


def results(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Digests of files, and the log of the fine-tune but for its times."""
    log = read_table(folder / "log.parquet", schemas.TRAIN_LOG).drop_columns(list(TIMES))
    return {"log": log.to_pydict(), **{name: sha256(folder / name) for name in names}}


@pytest.fixture(scope="module")
def first(
    prepared: Path, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], float]:
    """What a run made, and the seconds of its fine-tune."""
    folder = shutil.copytree(prepared, tmp_path_factory.mktemp("first") / "run")
    began = time.monotonic()
    assert mamushi(folder, *finetune(smollm2), **EXECUTION).wait() == 0
    seconds = time.monotonic() - began
    follow(folder, smollm2)
    return results(folder, TUNED + RANKED), seconds


def test_two_runs_of_the_same_seed_are_equal_bit_for_bit(
    prepared: Path, smollm2: Path, first: tuple[dict[str, Any], float], tmp_path: Path
) -> None:
    again = shutil.copytree(prepared, tmp_path / "run")
    assert mamushi(again, *finetune(smollm2), **EXECUTION).wait() == 0
    assert len(first[0]["log"]["loss"]) == 10
    follow(again, smollm2)
    assert results(again, TUNED + RANKED) == first[0]


def test_a_fine_tune_that_is_killed_ends_at_the_same_bits(
    prepared: Path, smollm2: Path, first: tuple[dict[str, Any], float], tmp_path: Path
) -> None:
    folder = shutil.copytree(prepared, tmp_path / "run")
    moment = random.Random(0)
    for _ in range(KILLS):
        process = mamushi(folder, *finetune(smollm2), **EXECUTION)
        time.sleep(moment.uniform(0.4, 1) * first[1])
        process.kill()
        process.wait()
        for name in TUNED:
            # What is there is whole.
            assert not (folder / name).exists() or sha256(folder / name) == first[0][name]
    assert mamushi(folder, *finetune(smollm2), **EXECUTION).wait() == 0
    assert results(folder, TUNED).items() <= first[0].items()
    assert [*folder.glob("*.state"), *folder.glob(".*.part")] == []
