"""A model as a folder of its own: the base with trained tensors laid over it."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from mamushi.cli import main
from mamushi.io.files import read_json, sha256, write_json
from mamushi.lm import loading, parameters, storage, tiny
from tests.support.models import ENDS_FROZEN, FAMILIES, SIZES, training_of


@pytest.fixture(scope="module", params=FAMILIES)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model with its card; ``start`` trains embeddings and blocks, ``unlearned`` blocks."""
    root = tmp_path_factory.mktemp(request.param)
    text = ["the cat sat on the mat"]
    model, tokenizer = tiny.build({"family": request.param, **SIZES}, text, 0)
    model.to(torch.bfloat16).save_pretrained(root / "base")
    tokenizer.save_pretrained(root / "base")
    made = loading.inspect("mine", str(root / "base"), revision=None, contaminated=False)
    write_json(root / "card.json", made)
    for name, settings in (("start", {}), ("unlearned", ENDS_FROZEN)):
        model = loading.open_model(root / "card.json")
        parameters.freeze(model, training_of(settings))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.data = torch.randn_like(parameter, dtype=torch.float32)
        storage.save_trained(root / f"{name}.safetensors", model, {})
    return root


def export(root: Path, *trained: str, out: str = "out") -> int:
    tensors = [str(root / f"{name}.safetensors") for name in trained]
    words = ["export", "--model-card", str(root / "card.json"), "--trained", *tensors]
    return main([*words, "--out", str(root / out)])


def test_the_folder_is_the_base_with_each_file_over_the_one_before(files: Path) -> None:
    assert export(files, "start", "unlearned", out="whole") == 0
    found = AutoModelForCausalLM.from_pretrained(files / "whole", dtype="auto")
    base = dict(loading.open_model(files / "card.json").named_parameters())
    with (
        safe_open(files / "start.safetensors", "pt") as start,
        safe_open(files / "unlearned.safetensors", "pt") as unlearned,
    ):
        expected = {name: value.float() for name, value in base.items()}
        for stored in (start, unlearned):
            expected |= {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        assert set(unlearned.keys()) < set(start.keys()) < set(base)
    own = dict(found.named_parameters())
    assert own.keys() == expected.keys()
    for name, value in expected.items():
        assert own[name].dtype == torch.float32
        assert torch.equal(own[name], value), name
    assert AutoTokenizer.from_pretrained(files / "whole")("the cat")["input_ids"]
    card = read_json(files / "whole" / "mamushi.json")
    assert card["inputs"]["trained_2"] == sha256(files / "unlearned.safetensors")


def test_tensors_of_another_model_or_start_are_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where shapes agree, and what they were made from does not."""
    other, _ = tiny.build({"family": "llama", **SIZES, "layers": 6}, ["a b"], 0)
    model = loading.open_model(files / "card.json")
    start = {"model_card": sha256(files / "card.json")}
    start["trained"] = sha256(files / "start.safetensors")
    origins = {"other": {}, "chained": start, "foreign": {"model_card": "0" * 64}}
    for name, origin in origins.items():
        trained = other if name == "other" else model
        parameters.freeze(trained, training_of(ENDS_FROZEN))
        storage.save_trained(files / f"{name}.safetensors", trained, {"inputs": origin})
    assert export(files, "start", "chained", out="good") == 0
    for trained, says in (
        (["other"], "the model has"),
        (["chained"], "does not start from the file before it"),
        (["unlearned", "chained"], "does not start from the file before it"),
        (["foreign"], "was trained from another model"),
    ):
        assert export(files, *trained, out="none") == 2
        assert says in capsys.readouterr().err
        assert not (files / "none").exists() and not list(files.glob(".none*"))
