"""An edit that is exported, loaded around a model of transformers, and what that generates."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedModel

import mamushi
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io.files import read_json, read_plain_json, sha256, trained_metadata
from mamushi.lm import device, storage, tiny
from mamushi.lm.loading import open_placed
from mamushi.lm.perplexity import text_nll
from mamushi_extras.edits.head import read_edit
from tests.support import stage_files as stage
from tests.support.models import SIZES, token_set

CPU = device.accelerator("fp32")
TEXTS = token_set(6, seed=4)


def export_edit(root: Path, kind: str, ids: list[str] | None = None) -> Path:
    """The folder of an edit, fitted to all forget texts of the base model in ``root`` or to these,
    and exported."""
    settings = stage.unlearning(kind)
    settings["settings"] |= {"harm": 100.0}
    removal = {} if ids is None else {"removal": stage.listed(root / "list.parquet", root, ids)}
    files = {**stage.texts_of(root), **removal, **stage.trained_files(root / "arm")}
    assert main(stage.command("unlearn", settings, **files)) == 0
    tensors, out = str(root / "arm" / "trained.safetensors"), str(root / "edit")
    if kind == "tilt" and ids is None:
        # Words of such texts say nothing of their domain, and a calibrated classifier as much.
        origin, stored = trained_metadata(tensors), load_file(tensors)
        stored["edit.B"] = torch.randn(stored["edit.B"].shape)
        storage.write(tensors, stored, origin)
    assert main(["export", tensors, "--to", "edit", "--out", out]) == 0
    return root / "edit"


def open_base(root: Path) -> PreTrainedModel:
    """The base model as a user of transformers opens it."""
    return AutoModelForCausalLM.from_pretrained(root / "base", dtype="auto").eval()


@pytest.mark.parametrize("family", ["llama", "gemma2"])  # Gemma's embeddings are its head's
@pytest.mark.parametrize("kind", ["tilt", "logit_bias"])
def test_the_model_that_was_taken_home_is_the_arm(kind: str, family: str, tmp_path: Path) -> None:
    built, _ = tiny.build({"family": family, **SIZES}, [" ".join(stage.WORDS)], 0)
    stage.write_base(tmp_path, built)
    folder = export_edit(tmp_path, kind)
    arm = open_placed(tmp_path / "card.json", [tmp_path / "arm" / "trained.safetensors"], CPU)
    loaded = mamushi.edits.load(open_base(tmp_path), folder)
    nll, plain = (text_nll(of, TEXTS, 64, CPU).nll for of in (loaded, open_base(tmp_path)))
    np.testing.assert_allclose(nll, text_nll(arm, TEXTS, 64, CPU).nll, rtol=1e-6)
    assert np.abs(nll - plain).max() > 1e-3
    prompt = torch.tensor([[3, 7, 5]])
    greedy = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None}
    expected = prompt
    for _ in range(6):
        token = arm(expected).logits[:, -1].argmax(1, keepdim=True)
        expected = torch.cat([expected, token], 1)
    assert torch.equal(loaded.generate(prompt, **greedy, use_cache=True), expected)
    samples = []
    for cached in (True, False):
        torch.manual_seed(0)
        how = greedy | {"do_sample": True, "use_cache": cached}
        samples.append(loaded.generate(prompt.repeat(4, 1), **how))
    assert torch.equal(*samples)
    card = read_json(folder / "card.json")
    assert card["inputs"]["model_card"] == sha256(tmp_path / "card.json")
    assert card["strength"] == 1 and card["gold_rise"] is None
    if kind == "logit_bias":
        of_server = read_plain_json(folder / "logit_bias.json")
        edit = read_edit(folder / "edit.safetensors")
        assert edit.bias is not None
        bias = torch.zeros_like(edit.bias)
        bias[[*map(int, of_server)]] = torch.tensor([*of_server.values()])
        torch.testing.assert_close(bias, edit.bias * edit.strength)
        assert 0 < len(of_server) < len(bias)


def test_what_does_not_fit_is_refused_and_an_edit_of_no_text_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.write_start(tmp_path)
    folder = export_edit(tmp_path, "tilt", [])
    home, ids = open_base(tmp_path), torch.tensor([[3, 7, 5]])
    expected = home(ids).logits
    assert torch.equal(mamushi.edits.load(home, folder)(ids).logits, expected)
    export = ["export", "--model-card", str(tmp_path / "card.json"), "--trained"]
    out = str(tmp_path / "start")
    assert main([*export, str(tmp_path / "start.safetensors"), "--out", out]) == 0
    with pytest.raises(UserError, match="was fitted to another model"):
        mamushi.edits.load(AutoModelForCausalLM.from_pretrained(out), folder)
    arm = str(tmp_path / "arm" / "trained.safetensors")
    assert main([*export, arm, "--out", str(tmp_path / "none")]) == 2
    assert "export it with --to edit" in capsys.readouterr().err
