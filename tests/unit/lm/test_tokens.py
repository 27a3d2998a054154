"""The token cache: what stands around a text, truncation, and reading sections back."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, processors
from transformers import AutoTokenizer

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import write_json
from mamushi.io.tables import read_metadata, read_table
from mamushi.lm import folders, loading, tiny
from mamushi.lm.generate import prompt_tokens
from mamushi.lm.tokens import encode, frame_tokens, read_tokens
from tests.support.models import SIZES
from tests.support.score_files import write_examples

# --- what stands before and behind a text -----------------------------------------------------

TEXTS = ["the cat sat", "<s>the cat</s>", "a", "on the mat the cat sat on"]
FAMILY = tiny.Family(False, "</s>", bos="<s>")
EOS, BOS = 0, 1
NAMED = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}


def template(single: str) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single=single, pair=f"{single} $B:1", special_tokens=[("</s>", EOS), ("<s>", BOS)]
    )


def folder_of(path: Path, post: Any, settings: dict[str, Any] | None) -> Path:
    """A folder with a ``tokenizer.json`` of this post-processor, and settings beside it."""
    trained = tiny.train_tokenizer(FAMILY, TEXTS, 280).backend_tokenizer
    backend = Tokenizer.from_str(trained.to_str())
    if post is not None:
        backend.post_processor = post
    stored = json.loads(backend.to_str()) | ({"post_processor": None} if post is None else {})
    (path / "tokenizer.json").write_text(json.dumps(stored))
    if settings is not None:
        (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path


TEMPLATES: dict[str, tuple[Any, list[int], list[int]]] = {
    "BOS": (template("<s> $A"), [BOS], []),
    "BOS and EOS": (template("<s> $A </s>"), [BOS], [EOS]),
    "EOS": (template("$A </s>"), [], [EOS]),
    "two": (template("</s> <s> $A"), [EOS, BOS], []),
    "of RoBERTa": (processors.RobertaProcessing(("</s>", EOS), ("<s>", BOS)), [BOS], [EOS]),
    "in a sequence": (processors.Sequence([processors.ByteLevel(), template("<s> $A")]), [BOS], []),
}
SETTINGS: dict[str, dict[str, Any] | None] = {
    "nothing": None,
    "flag on": NAMED | {"add_bos_token": True},
    "flag off": NAMED | {"add_bos_token": False},
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_text_is_what_the_tokenizer_itself_makes_of_it(
    kind: str, settings: str, tmp_path: Path
) -> None:
    post, before, behind = TEMPLATES[kind]
    folder = folder_of(tmp_path, post, SETTINGS[settings])
    tokenizer = folders.read_tokenizer(folder)
    assert frame_tokens(tokenizer) == (before, behind)
    every = list(encode(tokenizer, TEXTS))
    plain = AutoTokenizer.from_pretrained(folder)
    assert every == plain(TEXTS, split_special_tokens=True)["input_ids"]
    # Nothing that a text spells is doubled, and nothing is special.
    assert [ids.count(BOS) for ids in every] == [before.count(BOS)] * len(TEXTS)
    assert [ids[:4] for ids in every] == list(encode(tokenizer, TEXTS, 4))
    # A model speaks on after a prompt, and not after its end.
    assert prompt_tokens(tokenizer, TEXTS[0]) == every[0][: len(every[0]) - len(behind)]


@pytest.mark.parametrize(
    ("settings", "before"), [(None, []), (NAMED, [BOS]), (NAMED | {"add_bos_token": False}, [])]
)
def test_a_bos_that_is_named_alone_is_put_unless_a_setting_declines_it(
    settings: dict[str, Any] | None, before: list[int], tmp_path: Path
) -> None:
    tokenizer = folders.read_tokenizer(folder_of(tmp_path, None, settings))
    assert frame_tokens(tokenizer) == (before, [])
    body = tokenizer(TEXTS, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert list(encode(tokenizer, TEXTS)) == [before + ids for ids in body]


# --- the stage, and what is read of it --------------------------------------------------------

ROWS = [
    ("a", "contamination"),
    ("the cat sat on the mat", "contamination"),
    ("<bos>the cat", "inference"),
    ("<|begin_of_text|>the <|endoftext|> end", "inference"),
    ("Grüße, 世界 🐍", "inference"),
    ("the the the the the the the the the the the the the the the", "inference"),
    ("on the mat", "evaluation"),
]
DOMAINS = [("forget", "retain")[row % 2] for row in range(len(ROWS))]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_cache_has_one_bos_where_the_family_has_one_and_is_read_by_sections(
    family: str, tmp_path: Path
) -> None:
    texts, sections = zip(*ROWS, strict=True)
    examples, out = tmp_path / "examples.parquet", tmp_path / "tokens.parquet"
    names = [f"t{i}" for i in range(len(texts))]
    write_examples(examples, names, DOMAINS, text=texts, section=sections)
    sizes = {"family": family, **SIZES, "layers": 1}
    built, tokenizer = tiny.build(sizes, ["the cat sat on the mat"], 0)
    for each in (built, tokenizer):
        each.save_pretrained(tmp_path)
    card = loading.inspect(family, str(tmp_path), revision=None, contaminated=False)
    write_json(tmp_path / "card.json", {**card, "source": "."})
    files = ["--examples", examples, "--model-card", tmp_path / "card.json", "--out", out]
    settings = json.dumps({"max_length": 12, "code": "digest"})
    assert main(["tokens", *map(str, files), "--settings", settings]) == 0

    bos = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = True
    rows = read_table(out, schemas.TOKENS)["tokens"].to_pylist()
    for text, ids in zip(texts, rows, strict=True):
        # What a text spells is never a special token, so no BOS is doubled and none is missing.
        body = backend.encode(text, add_special_tokens=False).ids
        assert not set(body) & set(tokenizer.all_special_ids)
        assert tokenizer.decode(body) == text
        assert ids == (bos + body)[:12]
    stored = read_metadata(out)
    assert (stored["max_length"], stored["bos_token_id"]) == (12, tokenizer.bos_token_id)
    assert set(stored["provenance"]["inputs"]) == {"examples", "model_card"}

    for section, domains in product({*sections}, (("forget", "retain"), ("retain",))):
        read = read_tokens(out, examples, section, 4, domains=domains)
        chosen = [
            row
            for row, of_row in enumerate(zip(sections, DOMAINS, strict=True))
            if of_row[0] == section and of_row[1] in domains
        ]
        assert read.ids.tolist() == [f"t{row}" for row in chosen]
        assert read.domains.tolist() == [DOMAINS[row] for row in chosen]
        assert [read[at].tolist() for at in range(len(read))] == [rows[row][:4] for row in chosen]
