"""Models of GGUF files: the same model as the folder they came from, or one clear line."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from mamushi.cli import main
from mamushi.io.files import read_json, sha256
from mamushi.lm import device, loading
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, encode, offsets_of
from tests.support import gguf_files
from tests.support.stage_files import refusal

SETTINGS = '{"name": "mine", "contaminated": true, "inputs": {}}'


def words(path: Path, out: Path) -> list[str]:
    return ["convert", "--gguf", str(path), "--out", str(out), "--settings", SETTINGS]


def converted(path: Path, out: Path) -> int:
    return main(words(path, out))


def nll(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Nats of each of a few texts in fp32."""
    ids = list(encode(tokenizer, gguf_files.TEXTS))
    texts = TokenSet(
        np.array(["a", "b", "c"]),
        np.array(["forget", "retain", "retain"]),
        np.concatenate([np.array(text, dtype=np.int32) for text in ids]),
        offsets_of(np.array([len(text) for text in ids])),
    )
    accelerator = device.accelerator("fp32")
    return text_nll(model.float(), texts, 4096, accelerator).nll


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("kind", ["F16", "Q8_0"])
def test_the_perplexity_is_that_of_the_folder_it_came_from(
    tmp_path: Path, family: str, kind: str
) -> None:
    """F16 holds every number of a folder in float16, so that not a bit differs. Of Q8_0 each number
    is within 1/254 of its block's largest; not a bit differs from a folder with these numbers."""
    model, tokenizer = gguf_files.built(family)
    path = gguf_files.write(tmp_path / "a.gguf", model, tokenizer, kind)
    assert converted(path, tmp_path / "out") == 0
    card = tmp_path / "out" / "card.json"
    opened, reader = loading.open_model(card), loading.open_tokenizer(card)
    assert {p.dtype for p in opened.parameters()} == {torch.float32}
    assert [*encode(reader, gguf_files.TEXTS)] == [*encode(tokenizer, gguf_files.TEXTS)]
    before, after = nll(model, tokenizer), nll(opened, reader)
    # Far from a model that knows nothing, by which any would pass.
    lengths = np.array([len(ids) - 1 for ids in encode(tokenizer, gguf_files.TEXTS)])
    assert (np.abs(before / lengths / np.log(gguf_files.SIZES["vocabulary_size"]) - 1) > 0.2).any()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                rounded = gguf_files.plain(parameter.numpy(), kind)
                parameter.copy_(torch.from_numpy(rounded))
    assert np.array_equal(nll(model, tokenizer), after)
    assert np.array_equal(before, after) == (kind == "F16")
    assert after == pytest.approx(before, rel=0.05)


def test_the_card_says_what_the_file_was(tmp_path: Path) -> None:
    model, tokenizer = gguf_files.built("qwen2")
    path = gguf_files.write(tmp_path / "a.Q8_0.gguf", model, tokenizer, "Q8_0")
    out = tmp_path / "out"
    out.mkdir()
    (out / "chat_template.jinja").write_text("of the model that was here before")
    assert converted(path, out) == 0
    card = read_json(out / "card.json")
    vectors = sum(p.numel() for p in model.parameters() if p.dim() == 1)
    matrices = sum(p.numel() for p in model.parameters()) - vectors
    assert card["gguf"] == {
        "file": "a.Q8_0.gguf",
        "sha256": sha256(path),
        "architecture": "qwen2",
        "quantization": "Q8_0",
        "weights": {"Q8_0": matrices, "F32": vectors},
        "bos": True,
        "license": "apache-2.0",
    }
    assert (card["source"], card["contaminated"], card["tied"]) == (".", True, True)
    assert card["parameters"] == vectors + matrices
    assert {path.name for path in out.iterdir()} == {"card.json", *card["digests"]}
    modes = {path.stat().st_mode for path in out.iterdir()}
    assert len(modes) == 1, "others may read the weights as they may the rest"


def test_a_text_begins_with_a_bos_only_where_the_file_says_so(tmp_path: Path) -> None:
    model, tokenizer = gguf_files.built("llama")
    path = gguf_files.write(tmp_path / "a.gguf", model, tokenizer, "F16", bos=False)
    assert converted(path, tmp_path / "out") == 0
    card = tmp_path / "out" / "card.json"
    bare = [ids[1:] for ids in encode(tokenizer, gguf_files.TEXTS)]
    assert [*encode(loading.open_tokenizer(card), gguf_files.TEXTS)] == bare
    assert read_json(card)["bos_token_id"] is None


@pytest.mark.slow
def test_killed_between_any_two_files_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = gguf_files.write(tmp_path / "a.gguf", *gguf_files.built("llama"), "F16")
    assert converted(path, tmp_path / "whole") == 0
    whole = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    moved = Path.replace
    for place in range(len(whole)):
        out = tmp_path / f"out{place}"
        if not (child := os.fork()):
            left = [place]

            def replace(self: Path, target: Path, out: Path = out, left: list[int] = left) -> Path:
                if Path(target).parent == out:
                    if not left[0]:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left[0] -= 1
                return moved(self, target)

            monkeypatch.setattr(Path, "replace", replace)
            converted(path, out)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert not (out / "card.json").exists()
        assert converted(path, out) == 0
        assert {path.name: path.read_bytes() for path in out.iterdir()} == whole


def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = gguf_files.built("llama")
    path, out = tmp_path / "a.gguf", tmp_path / "out"
    content = gguf_files.write(path, model, tokenizer, "F16").read_bytes()
    sizes = (4, 20, 200, 3000, len(content) // 2, len(content) - 40)
    for damaged in (*(content[:size] for size in sizes), b"PK" + content[2:]):
        path.write_bytes(damaged)
        assert "a.gguf: not a whole GGUF file (" in refusal(words(path, out), capsys)
    path.unlink()
    assert "a.gguf: no such file; " in refusal(words(path, out), capsys)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"architecture": "t5encoder2"}, "architecture 't5encoder2' cannot be read"),
        ({"raw": np.zeros((4, 32), dtype=np.int8)}, "cannot be read"),
        ({"without": "model.norm.weight"}, "lack 1 tensors, the first is model.norm.weight"),
    ]
    for change, message in changes:
        gguf_files.write(path, model, tokenizer, "F16", **change)
        assert message in refusal(words(path, out), capsys)
    assert not (out / "card.json").exists()
