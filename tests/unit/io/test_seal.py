"""One flipped bit anywhere in an artifact, and what else is not what was written."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.seal import MARK
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.io.tensors import drop_others, trained_metadata
from mamushi.lm import storage, tiny
from mamushi.unlearning.removal import read_ids

ROWS = 200
REMOVAL = "results/runs/d/m/seed0/removals/s/beta0.10.parquet"


def _vectors() -> pa.Array:
    values = np.random.default_rng(0).standard_normal(ROWS * 16).astype(np.float16)
    item = pa.field("item", pa.float16(), nullable=False)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), type=pa.list_(item, 16))


def _columns(name: str) -> dict[str, Any]:
    """Some plausible values for each column of a table."""
    values: dict[pa.DataType, Callable[[int], Any]] = {
        pa.string(): lambda row: f"{name} {row}",
        pa.float64(): lambda row: row / 7,
        pa.int64(): lambda row: row,
        pa.int16(): lambda row: row % 5,
        pa.list_(pa.int32()): lambda row: list(range(row % 9)),
        pa.list_(pa.string()): lambda row: [str(copy) for copy in range(row % 3)],
    }
    schema = getattr(schemas, name.upper()).schema
    made = {f.name: pa.array([values[f.type](r) for r in range(ROWS)], f.type) for f in schema}
    return made | ({"embedding": _vectors()} if name == "embeddings" else {})


@pytest.mark.parametrize("name", ["embeddings", "tokens", "examples", "scores", "removals"])
def test_no_flipped_bit_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / (REMOVAL if name == "removals" else f"{name}.parquet")
    write_table(
        path, getattr(schemas, name.upper()), _columns(name), metadata={"settings": {"a": 1}}
    )
    readers: list[Callable[[], Any]] = [
        lambda: read_table(path, getattr(schemas, name.upper())),
        lambda: read_table(path, getattr(schemas, name.upper()), ["id"]),
        lambda: read_metadata(path),
        *([lambda: read_ids(path)] if name == "removals" else []),
    ]
    for read in readers:
        read()
    _flip_bits(path, readers)


def _flip_bits(path: Path, readers: list[Callable[[], Any]]) -> None:
    """60 bits anywhere in the file, one after the other: each reader notices each of them."""
    whole = path.read_bytes()
    places = random.Random(0).sample(range(8 * len(whole)), 60)
    # And in what says that there is a checksum.
    places += [8 * whole.rindex(MARK) + 3, 8 * (whole.rindex(MARK) + len(MARK)) + 1]
    for place in places:
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        for read in readers:
            with pytest.raises(UserError, match="damaged"):
                read()
    path.write_bytes(whole)
    for read in readers:
        read()


def _model(seed: int) -> PreTrainedModel:
    sizes = {"hidden_size": 8, "layers": 1, "heads": 2, "key_value_heads": 1}
    sizes |= {"intermediate_size": 16, "vocabulary_size": 280, "max_positions": 8}
    return tiny.build({"family": "llama", **sizes}, ["the cat sat"], seed)[0].requires_grad_(True)


def test_no_flipped_bit_of_trained_tensors_is_read(tmp_path: Path) -> None:
    path, model = tmp_path / "trained.safetensors", _model(0)
    storage.save_trained(path, model, {"settings": {"a": 1}})
    _flip_bits(
        path,
        [
            lambda: trained_metadata(path),
            lambda: storage.load_trained(path, model),
            lambda: storage.overlay(path, model),
        ],
    )


def test_texts_may_hold_what_marks_a_checksum(tmp_path: Path) -> None:
    texts = [f"{MARK.decode()}{row:08}" for row in range(ROWS)]
    write_table(tmp_path / "a.parquet", schemas.EXAMPLES, {**_columns("examples"), "text": texts})
    assert read_table(tmp_path / "a.parquet", schemas.EXAMPLES)["text"].to_pylist() == texts


def test_tensors_beside_a_card_stay_only_where_the_card_made_them(tmp_path: Path) -> None:
    card, tensors = tmp_path / "card.json", tmp_path / "trained.safetensors"
    mine: dict[str, Any] = {"settings": {"seed": 0, "domains": ("a", "b")}}
    drop_others(card, mine)
    storage.save_trained(tensors, _model(0), mine)
    drop_others(card, mine)
    assert tensors.exists()
    drop_others(card, {"settings": {"seed": 1}})
    assert not tensors.exists()
    tensors.write_bytes(b"half")
    drop_others(card, mine)
    assert not tensors.exists()
