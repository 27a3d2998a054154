"""The token cache: the BOS rule of each family, truncation, and reading sections back."""

import json
from pathlib import Path

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import write_json
from mamushi.io.tables import read_metadata, read_table
from mamushi.lm import loading, tiny
from mamushi.lm.tokens import encode, read_tokens
from tests.support.models import SIZES
from tests.support.stage_files import write_examples

TEXTS = [
    "a",
    "the cat sat on the mat",
    "<bos>the cat",
    "<|begin_of_text|>the cat",
    "the <|endoftext|> end",
    "Grüße, 世界 🐍",
    "the the the the the the the the the the the the the the the",
    "on the mat",
]
DOMAINS = ["forget", "retain"] * 4
SECTIONS = ["contamination"] * 2 + ["inference"] * 4 + ["evaluation"] * 2
IDS = [f"t{i}" for i in range(len(TEXTS))]


@pytest.fixture(scope="module")
def examples(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "examples.parquet"
    write_examples(path, TEXTS, SECTIONS)
    return path


@pytest.fixture(scope="module")
def cards(tmp_path_factory) -> dict[str, Path]:
    """A card of each family, made from a folder on disk."""
    made = {}
    for family in tiny.FAMILIES:
        folder = tmp_path_factory.mktemp(family)
        model, tokenizer = tiny.build(
            {"family": family, **SIZES, "layers": 1}, ["the cat sat on the mat"], 0
        )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        card = loading.inspect(
            family,
            str(folder),
            revision=None,
            contaminated=False,
        )
        made[family] = folder / "card.json"
        write_json(made[family], {**card, "source": "."})
    return made


def make(examples: Path, card: Path, out: Path, max_length: int = 12) -> int:
    settings = json.dumps({"max_length": max_length, "code": "digest"})
    given = ["--examples", str(examples), "--model-card", str(card), "--out", str(out)]
    return main(["tokens", *given, "--settings", settings])


@pytest.fixture(scope="module", params=list(tiny.FAMILIES))
def cache(request, examples, cards, tmp_path_factory):
    out = tmp_path_factory.mktemp("tokens") / "tokens.parquet"
    assert make(examples, cards[request.param], out) == 0
    return request.param, out, loading.open_tokenizer(cards[request.param])


def test_one_bos_where_the_family_has_one_and_the_text_as_it_is(cache):
    family, path, tokenizer = cache
    table = read_table(path, schemas.TOKENS)
    assert table["id"].to_pylist() == IDS
    bos = {"llama": ["<|begin_of_text|>"], "qwen2": [], "gemma2": ["<bos>"]}[family]
    first = tokenizer.convert_tokens_to_ids(bos)
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = True
    for text, ids in zip(TEXTS, table["tokens"].to_pylist(), strict=True):
        # What a text spells is never a special token, so no BOS is doubled and none is missing.
        body = backend.encode(text, add_special_tokens=False).ids
        assert not set(body) & set(tokenizer.all_special_ids)
        assert tokenizer.decode(body) == text
        assert ids == (first + body)[:12]
    stored = read_metadata(path)
    lengths = [min(len(ids), 12) for ids in encode(tokenizer, TEXTS)]
    assert (stored["texts"], stored["tokens"]) == (len(TEXTS), sum(lengths))
    assert (stored["max_length"], stored["bos_token_id"]) == (12, tokenizer.bos_token_id)
    assert set(stored["provenance"]["inputs"]) == {"examples", "model_card"}


@pytest.mark.parametrize("section", ["contamination", "inference", "evaluation"])
@pytest.mark.parametrize("domains", [("forget", "retain"), ("retain",), ("forget",)])
@pytest.mark.parametrize("max_length", [12, 4])
def test_reading_a_section(cache, examples, section, domains, max_length):
    _, path, _ = cache
    rows = read_table(path, schemas.TOKENS)["tokens"].to_pylist()
    wanted = [i for i in range(len(IDS)) if SECTIONS[i] == section and DOMAINS[i] in domains]
    found = read_tokens(path, examples, section, max_length, domains=domains)
    assert len(found) == len(wanted)
    assert found.ids.tolist() == [IDS[i] for i in wanted]
    assert found.domains.tolist() == [DOMAINS[i] for i in wanted]
    assert [row.tolist() for row in map(found.__getitem__, range(len(found)))] == [
        rows[i][:max_length] for i in wanted
    ]
    assert found.lengths.tolist() == [min(len(rows[i]), max_length) for i in wanted]
    assert (found.tokens.dtype, found.offsets.dtype) == (np.int32, np.int64)
