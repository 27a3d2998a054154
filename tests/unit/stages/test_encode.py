"""Sentence encoders: their embeddings are those of the package, one text at a time."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.artifacts import digests, schemas
from mamushi.artifacts.tables import read_table, write_table
from mamushi.cli import main
from tests.support.encoders import save
from tests.support.stage_files import EXECUTION, WORDS, examples

st = pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("made"), WORDS)


def run(
    root: Path,
    source: Path,
    *more: str,
    out: str = "embeddings",
    execution: dict[str, Any] = EXECUTION,
    **changes: Any,
) -> int:
    write_table(root / "examples.parquet", schemas.EXAMPLES, examples())
    given = {"embedding": {"source": str(source), "revision": None}, "code": "c", **changes}
    words = [f"--examples={root / 'examples.parquet'}", f"--out={root / out}.parquet"]
    options = [f"--execution={json.dumps(execution)}", f"--settings={json.dumps(given)}"]
    return main(["encode", *words, *options, *more])


def test_embeddings_are_those_of_the_package_one_text_at_a_time(
    folder: Path, tmp_path: Path
) -> None:
    assert run(tmp_path, folder) == 0
    found = read_table(tmp_path / "embeddings.parquet", schemas.EMBEDDINGS)
    given = examples()
    ranked = [i for i, section in enumerate(given["section"]) if section == "inference"]
    assert found["id"].to_pylist() == [given["id"][i] for i in ranked]
    alone = st.SentenceTransformer(str(folder), device="cpu")
    # Some texts are longer than the encoder reads.
    assert max(len(given["text"][i].split()) for i in ranked) > 6
    expected = np.array([alone.encode([given["text"][i]])[0] for i in ranked])
    vectors = np.array(found["embedding"].to_pylist(), dtype=np.float32)
    np.testing.assert_allclose(vectors, expected, atol=1e-3)
    assert np.abs(vectors - vectors[::-1]).max() > 0.1


def changed(folder: Path, to: Path, spoil: str) -> Path:
    shutil.copytree(folder, to)
    modules = json.loads((to / "modules.json").read_text(encoding="utf-8"))
    if spoil == "plain":
        (to / "modules.json").unlink()
    elif spoil == "code":
        modules[1]["type"] = "custom_code.Pooling"
        (to / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    elif spoil == "pickle":
        (to / "model.safetensors").rename(to / "pytorch_model.bin")
    else:
        (to / "model.safetensors").write_bytes(b"0" * 100)
    return to


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        ("plain", "no modules.json, so this is no folder of sentence-transformers"),
        ("code", "names the module 'custom_code.Pooling', whose code is not run"),
        ("pickle", "only pickle weights, which can run code"),
        ("damaged", "damaged safetensors file"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: str, told: str
) -> None:
    assert run(tmp_path, changed(folder, tmp_path / "other", spoil)) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert told in said[-1] and len(said) == 1


def test_files_that_have_changed_since_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = {"1_Pooling/config.json": digests.of(folder / "1_Pooling" / "config.json")}
    assert run(tmp_path, folder, inputs=here) == 0
    assert run(tmp_path, folder, inputs={"1_Pooling/config.json": "0" * 64}) == 2
    assert "has changed since this run began" in capsys.readouterr().err


def test_without_the_package_there_is_one_line(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    assert run(tmp_path, folder) == 2
    assert "needs the Python package sentence-transformers" in capsys.readouterr().err
