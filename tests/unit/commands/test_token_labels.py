"""Spans of tokens as labels for other trainers."""

import json
from pathlib import Path

import numpy as np
import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import sha256, write_json
from mamushi.artifacts.tables import write_table
from mamushi.cli import main

CELL = {"dataset": "mine", "model": "tiny", "seed": 0, "selector": "words", "beta": "0.25"}
TEXTS = {"f": [9, 1, 2, 3], "r": [9, 4], "held": [9, 5]}


def test_a_masked_token_has_the_label_that_no_loss_counts(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run / "labels.jsonl"
    assert main(["export", str(spans(run)), "--to", "labels", "--out", str(out)]) == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert found == [
        {"id": "f", "domain": "forget", "input_ids": [9, 1, 2], "labels": [9, -100, 2]},
        {"id": "r", "domain": "retain", "input_ids": [9, 4], "labels": [9, 4]},
    ]
    assert capsys.readouterr().out.strip() == str(out)


def test_spans_are_those_of_their_manifest(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(spans(run), schemas.SPANS, {"id": ["f"], "start": [2], "stop": [3]})
    out = run / "labels.jsonl"
    assert main(["export", str(spans(run)), "--to", "labels", "--out", str(out)]) == 2
    assert "is not the file of the manifest" in capsys.readouterr().err
    assert not out.exists()
    assert main(["export", str(out), "--to", "labels", "--out", str(out)]) == 2
    assert "is no spans of a run" in capsys.readouterr().err


def spans(run: Path) -> Path:
    return paths.under(run, paths.SPANS, **CELL)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose tokens were scored as far as the third."""
    root = tmp_path / "results"
    written = {
        "id": list(TEXTS),
        "text": list(TEXTS),
        "domain": ["forget", "retain", "retain"],
        "section": ["inference", "inference", "evaluation"],
    }
    missing = [name for name in schemas.EXAMPLES.schema.names if name not in written]
    examples = paths.under(root, paths.EXAMPLES, dataset="mine")
    write_table(examples, schemas.EXAMPLES, written | {name: [None] * 3 for name in missing})
    tokens = paths.under(root, paths.TOKENS, dataset="mine", model="tiny")
    columns = {"id": list(TEXTS), "tokens": [np.int32(each) for each in TEXTS.values()]}
    write_table(tokens, schemas.TOKENS, columns, metadata={"max_length": 8})
    write_table(spans(root), schemas.SPANS, {"id": ["f"], "start": [1], "stop": [2]})
    manifest = {"spans_sha256": sha256(spans(root)), "max_length": 3}
    write_json(paths.under(root, paths.SPANS_MANIFEST, **CELL), manifest)
    return root
