"""The stages by the methods `lora` and `full`: from a fine-tune over unlearning to a folder."""

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.io.files import read_json
from mamushi.io.tables import EVALUATION
from mamushi.lm import device, folders, loading, parameters
from mamushi.lm.perplexity import perplexity_table, text_nll
from mamushi.lm.tokens import read_tokens
from tests.support.models import ADAPTERS, TRAINING
from tests.support.stage_files import (
    command,
    finetuning,
    measure,
    texts_of,
    trained_files,
    unlearning,
    write_base,
)

METHODS: dict[str, dict[str, Any]] = {
    "lora": {"method": "lora", "lora": ADAPTERS},
    "full": {"method": "full"},
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    write_base(tmp_path)
    return tmp_path


def stage(name: str, settings: dict[str, Any], **files: Any) -> None:
    assert main(command(name, settings, **files)) == 0


@pytest.mark.parametrize("method", METHODS)
def test_from_a_fine_tune_over_unlearning_to_a_folder(method: str, base: Path) -> None:
    method_settings, texts = METHODS[method], texts_of(base)
    beta0, after = (trained_files(base / name) for name in ("beta0", "after"))
    settings = finetuning(role="beta0", training={**TRAINING, **method_settings})
    stage("finetune", settings, **texts, **beta0)
    stored = load_file(beta0["tensors"])
    model = dict(loading.open_model(base / "card.json").named_parameters())
    if method == "lora":
        assert all(map(parameters.is_adapter, stored))
    else:
        assert stored.keys() == model.keys()
    card = read_json(beta0["card"])
    assert card["trained_parameters"] == sum(tensor.numel() for tensor in stored.values())

    files = {"trained": beta0["tensors"], **after}
    stage("unlearn", unlearning(**method_settings), **texts, **files)
    assert load_file(after["tensors"]).keys() == stored.keys()

    words = ["export", f"--model-card={base / 'card.json'}", f"--out={base / 'whole'}"]
    assert main([*words, "--trained", str(beta0["tensors"]), str(after["tensors"])]) == 0
    whole = folders.read_model(base / "whole")
    assert [*dict(whole.named_parameters())] == [*model]
    held_out = read_tokens(base / "tokens.parquet", base / "examples.parquet", EVALUATION, 16)
    nll = text_nll(whole, held_out, 64, device.accelerator("fp32"))
    arm = {"trained": beta0["tensors"], "unlearned": after["tensors"]}
    measured = measure(base, base, **arm)
    expected = perplexity_table(nll, held_out.domains)["perplexity"]
    assert measured == pytest.approx([*expected], rel=1e-5)
