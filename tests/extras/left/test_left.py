"""What is asked of single texts, on a tiny model: of which model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from mamushi.cli import main
from mamushi.io.tables import read_metadata, read_table
from mamushi.lm import device, parameters, storage, tiny
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import read_tokens
from mamushi_extras.left.schemas import LIKELIHOODS
from tests.support.models import PARTS, SIZES
from tests.support.stage_files import EXECUTION, FILES, FORGET, WORDS, opened, write_base

OPENED = {"precision": "fp32"}
TEXTS = {"texts": 100, "max_length": 16}
HEADS = ("train_input_embedding", "train_output_head")
UNLEARNED = PARTS | {"trained_blocks": 2} | dict.fromkeys(HEADS, False)
HELD = 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, a start's tensors and those that unlearning trained over them."""
    root = tmp_path_factory.mktemp("left")
    write_base(root)
    for seed, parts, name in ((1, PARTS, "start"), (2, UNLEARNED, "unlearned")):
        other, _ = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], seed)
        parameters.freeze(other, parts)
        storage.save_trained(root / f"{name}.safetensors", other, {})
    return root


def membership(made: Path, out: Path, unlearned: bool = False, **changes: Any) -> dict[str, Any]:
    settings = {**OPENED, **TEXTS, **changes}
    files = {key: made / file for key, file in FILES.items()}
    files |= {"unlearned": made / "unlearned.safetensors"} if unlearned else {}
    words = [f"--{key}={path}" for key, path in files.items()]
    words += [f"--execution={json.dumps(EXECUTION)}", f"--settings={json.dumps(settings)}"]
    assert main(["membership", *words, f"--out={out}"]) == 0
    assert read_metadata(out)["settings"] == settings
    columns: dict[str, Any] = read_table(out, LIKELIHOODS).to_pydict()
    return columns


@pytest.mark.parametrize("unlearned", [False, True])
def test_membership_reads_the_model_that_was_made(
    made: Path, tmp_path: Path, unlearned: bool
) -> None:
    found = membership(made, tmp_path / "out.parquet", unlearned)
    stored = ["start", "unlearned"] if unlearned else ["start"]
    files = (made / f"{name}.safetensors" for name in stored)
    model = opened(made / "card.json", *files)
    for section, count in (("inference", FORGET), ("evaluation", HELD)):
        rows = [i for i, one in enumerate(found["section"]) if one == section]
        texts = read_tokens(
            made / "tokens.parquet", made / "examples.parquet", section, 16, domains=["forget"]
        )
        assert [found["id"][i] for i in rows] == [*texts.ids]
        assert len(rows) == count
        with torch.inference_mode():
            nll = text_nll(model, texts, 64, device.accelerator("fp32"))
        assert [found["nll"][i] for i in rows] == pytest.approx(nll.nll, rel=1e-4)
        assert [found["tokens"][i] for i in rows] == nll.tokens.tolist()
