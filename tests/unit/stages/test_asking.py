"""What a model is asked in the job that makes it: the same as if it had been kept."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.tables import read_table, write_table
from mamushi.selection.removals import text_digests
from tests.support.models import PARTS, TRAINING
from tests.support.score_files import unknown_texts
from tests.support.stage_files import EXECUTION, FILES, unlearning, write_start

TRAINS = {"trained_blocks": 2, "max_length": 12, "evaluation": {"max_length": 16}, "seed": 0}
AGAIN = {"examples": 3, "steps": [1, 4], "batch_size": 2, "learning_rate": 1e-3}
RELEARN = {**TRAINS, "relearning": AGAIN}
ASKED: dict[str, Any] = {
    "generate": {"prompts": ["the cat", "a dog saw"], "new_tokens": 5},
    "membership": {"texts": 100, "max_length": 16},
    "relearn": RELEARN,
}
ANSWERS = {
    "generate": {"generations": schemas.CONTINUATIONS},
    "membership": {"membership": schemas.LIKELIHOODS},
    "relearn": {"relearning": schemas.RELEARNING_CURVE},
}
RETRAIN = {
    **{"dataset": "d", "model": "m", "seed": 0, "role": "retrained", "section": "inference"},
    **{"domains": ["forget", "retain"], "training": TRAINING, "evaluation": {"max_length": 16}},
}
WRITTEN = {"perplexity": "perplexity", "log-table": "log", "card": "card.json"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("asking")
    write_start(root)
    removed = {"id": ["if0", "if1"], "rank": pa.array([1, 2], pa.int64()), "score": [2.0, 1.0]}
    texts = text_digests([read_table(root / "examples.parquet", schemas.EXAMPLES)], ["if0", "if1"])
    removed |= {**unknown_texts(2), "text_sha256": texts}
    write_table(root / "removal.parquet", schemas.REMOVALS, removed)
    return root


def command(name: str, made: Path, settings: dict[str, Any], **files: Path) -> None:
    words = [f"--{key.replace('_', '-')}={path}" for key, path in files.items()]
    words += [f"--{key}={made / FILES[key]}" for key in ("examples", "tokens", "model-card")]
    words += [f"--execution={json.dumps(EXECUTION)}", f"--settings={json.dumps(settings)}"]
    assert main([name, *words]) == 0


def outputs(out: Path, *names: str) -> dict[str, Path]:
    return {field: out / field for name in names for field in ANSWERS[name]}


@pytest.mark.parametrize("maker", ["retrain", "unlearn"])
def test_answers_are_those_of_a_model_that_is_kept(made: Path, tmp_path: Path, maker: str) -> None:
    settings = RETRAIN if maker == "retrain" else unlearning("neggrad_plus")
    tensors, plain = tmp_path / "kept.safetensors", tmp_path / "plain.safetensors"
    written = {key: tmp_path / name for key, name in WRITTEN.items()}
    written |= (
        {"nll": tmp_path / "nll"} if maker == "retrain" else {"trained": made / "start.safetensors"}
    )
    given = {**written, "removal": made / "removal.parquet"}
    command(maker, made, settings, **given, tensors=plain)
    before = read_table(written["perplexity"], schemas.PERPLEXITY)
    (tmp_path / "card.json").unlink()
    command(
        maker,
        made,
        {**settings, "questions": ASKED},
        **given,
        tensors=tensors,
        **outputs(tmp_path, *ASKED),
    )
    # Asking changes neither the model nor what was measured of it.
    assert read_table(written["perplexity"], schemas.PERPLEXITY).equals(before)
    kept, alone = load_file(tensors), load_file(plain)
    assert kept.keys() == alone.keys() and all(kept[name].equal(alone[name]) for name in kept)
    start = made / "start.safetensors"
    # The same from the tensors that were kept, question by question.
    opened: dict[str, Any] = {"training": TRAINING, "precision": "fp32"}
    opened["training"] = {key: TRAINING[key] for key in PARTS}
    files = {"trained": tensors}
    if maker == "unlearn":
        opened = {"training": PARTS, "precision": "fp32", "unlearned": {"trained_blocks": 2}}
        files = {"trained": start, "unlearned": tensors}
    again = tmp_path / "again"
    for name, question in ASKED.items():
        asking = {"model": opened, "questions": {name: question}}
        command("ask", made, asking, **files, **outputs(again, name))
        for field, kind in ANSWERS[name].items():
            one, other = (read_table(folder / field, kind) for folder in (tmp_path, again))
            assert one.equals(other), (name, field)
