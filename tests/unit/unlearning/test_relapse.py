"""What brings a domain back: each treatment begins with the model as it came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE, RETAIN, read_table
from mamushi.cli import main
from mamushi.lm import device, loading, parameters, storage, tiny
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import read_tokens, subset
from mamushi.unlearning.relapse import relapse, unrelated
from mamushi.unlearning.relearning import choose, relearn
from tests.support.models import PARTS, SIZES
from tests.support.stage_files import EXECUTION, FILES, WORDS, write_base
from tests.support.stage_files import FORGET as RANKED

LAST = {"trained_blocks": 2} | dict.fromkeys(("train_input_embedding", "train_output_head"), False)
RELEARNING = {"examples": 3, "steps": [1, 4], "batch_size": 2, "learning_rate": 1e-2}
TRAINS = {"trained_blocks": 2, "max_length": 12, "evaluation": {"max_length": 16}, "seed": 0}
OPENED = {"training": PARTS, "precision": "fp32", "unlearned": {"trained_blocks": 2}}


def words(made: Path, out: Path, **changes: Any) -> list[str]:
    """Return the command that asks the unlearned model what comes back."""
    relapse = {**TRAINS, "relearning": RELEARNING | changes}
    settings = {"model": OPENED, "questions": {"relapse": relapse}, "code": "c"}
    files = [f"--{key}={made / name}" for key, name in FILES.items()]
    files += [f"--unlearned={made / 'unlearned.safetensors'}"]
    files += [f"--relapse={out / 'out.parquet'}", f"--relapse-nll={out / 'nll.parquet'}"]
    given = [f"--settings={json.dumps(settings)}", f"--execution={json.dumps(EXECUTION)}"]
    return ["ask", *files, *given]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, and tensors of a start and of what unlearning trained of it."""
    root = tmp_path_factory.mktemp("relapse")
    write_base(root)
    for name, parts, seed in (("start", PARTS, 1), ("unlearned", PARTS | LAST, 2)):
        other, _ = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], seed)
        parameters.freeze(other, parts)
        storage.save_trained(root / f"{name}.safetensors", other, {})
    return root


@pytest.fixture(scope="module")
def written(made: Path) -> Path:
    """What the stage writes of the unlearned model."""
    assert main(words(made, made)) == 0
    return made


@pytest.fixture
def opened(made: Path) -> Iterator[Any]:
    """The unlearned model by hand: the start's tensors, and over them those of unlearning."""
    model = loading.open_trained(made / "card.json", made / "start.safetensors", PARTS)
    storage.overlay(made / "unlearned.safetensors", model)
    parameters.freeze(model, PARTS | LAST)
    return model


def of(made: Path, section: str, length: int, *domains: str) -> Any:
    files = (made / "tokens.parquet", made / "examples.parquet")
    return read_tokens(*files, section, length, domains=domains or (FORGET, RETAIN))


def test_every_treatment_begins_with_the_model_as_it_came(written: Path, opened: Any) -> None:
    accelerator = device.accelerator("fp32")
    held_out = of(written, EVALUATION, 16)
    rows = read_table(written / "out.parquet", schemas.RELAPSES).to_pylist()
    found = {(row["treatment"], row["amount"]): row for row in rows}
    names = ["relearn forget", "relearn retain", "relearn unrelated"]
    assert [*found] == [(name, n) for name in names for n in (0, 1, 4)]
    starts = {
        tuple(row[f"nll_{d}"] for d in ("forget", "retain")) for row in rows if not row["amount"]
    }
    assert len(starts) == 1

    tokenizer = loading.open_tokenizer(written / "card.json")
    texts = {
        "forget": of(written, INFERENCE, 12, FORGET),
        "retain": of(written, INFERENCE, 12, RETAIN),
        "unrelated": unrelated(tokenizer, 12),
    }
    first = {name: p.detach().clone() for name, p in opened.named_parameters()}
    for name, those in texts.items():
        few = subset(those, choose(those, 3, 0))
        curve = relearn(
            opened, few, held_out, RELEARNING, seed=0, accelerator=accelerator, batch_tokens=64
        )
        for step, ppl in zip(curve["step"], curve["ppl_forget"], strict=True):
            expected = found[f"relearn {name}", step]["nll_forget"]
            assert expected == pytest.approx(np.log(ppl), abs=1e-5)
        with torch.no_grad():
            for n, parameter in opened.named_parameters():
                parameter.copy_(first[n])


def test_the_model_is_afterwards_what_it_was(made: Path, opened: Any) -> None:
    before = {name: p.detach().clone() for name, p in opened.named_parameters()}
    texts = {"forget": of(made, INFERENCE, 12, FORGET)}
    held_out, accelerator = of(made, EVALUATION, 16), device.accelerator("fp32")
    relapse(opened, texts, held_out, RELEARNING, seed=0, accelerator=accelerator, batch_tokens=64)
    assert all(torch.equal(p, before[name]) for name, p in opened.named_parameters())


def test_the_nll_is_of_all_held_out_and_all_ranked_forget_texts(written: Path, opened: Any) -> None:
    table = read_table(written / "nll.parquet", schemas.NLL).to_pandas().set_index("id")
    parts = [of(written, EVALUATION, 16), of(written, INFERENCE, 16, FORGET)]
    assert len(table) == sum(map(len, parts)) == 8 + RANKED
    for part in parts:
        expected = text_nll(opened, part, 64, device.accelerator("fp32"))
        here = table.loc[list(part.ids)]
        np.testing.assert_allclose(here["nll"], expected.nll, rtol=1e-5)
        assert (here["tokens"] == expected.tokens).all()


def test_a_model_that_diverges_is_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(made, tmp_path, learning_rate=1e30)) == 2
    assert "probe.relearning.learning_rate" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
