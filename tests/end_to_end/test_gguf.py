"""A GGUF file as the source of a model: from the file to embeddings, as its user does."""

from pathlib import Path

from mamushi.artifacts.files import read_json
from tests.support import gguf_files, small_grid
from tests.support.workflow import run

DATASET = small_grid.DATASET
EMBEDDINGS = f"results/runs/{DATASET}/bought/seed0/embeddings.parquet"


def test_a_gguf_file_is_converted_once_and_then_a_model_as_any(tmp_path: Path) -> None:
    model, tokenizer = gguf_files.built("llama")
    path = gguf_files.write(tmp_path / "bought.gguf", model, tokenizer, "Q8_0")
    config = small_grid.CONFIG | {"models": {"bought": {"source": path.name}}}
    for section in ("grid", "unlearning"):
        config[section] = config[section] | {"models": ["bought"]}
    run(EMBEDDINGS, directory=tmp_path, config=config)
    card = read_json(tmp_path / "results/base/bought/card.json")
    assert card["gguf"]["quantization"] == "Q8_0"
    # Touched, or with another file of the same content in its place, it is the same model.
    path.write_bytes(path.read_bytes())
    assert "Nothing to be done" in run(EMBEDDINGS, directory=tmp_path, config=config).stdout
    gguf_files.write(path, model, tokenizer, "F16")
    planned = run("--dry-run", EMBEDDINGS, directory=tmp_path, config=config).stdout
    for rule in ("convert", "tokens", "contaminate", "embed"):
        assert f"rule {rule}:" in planned
    path.write_bytes(b"<html>")
    done = run("--dry-run", EMBEDDINGS, directory=tmp_path, config=config, check=False)
    assert done.returncode
    assert "models.bought.source: 'bought.gguf' is not allowed; it does not start" in done.stdout
    assert "Traceback" not in done.stdout
