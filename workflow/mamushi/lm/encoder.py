"""Sentence encoders: models that give a text one vector, by the package sentence-transformers,
which is installed by choice. Code that comes with a model is never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from mamushi.artifacts import digests
from mamushi.artifacts.files import read_json
from mamushi.errors import UserError
from mamushi.lm import device, folders
from mamushi.lm.batches import batches
from mamushi.running.progress import Progress

MODULES = "modules.json"
OWN = "sentence_transformers."
"""How the name of a module begins that the package itself has."""
ROWS = 16384
"""Texts that are cut into tokens at once."""


def open_encoder(source: str, revision: str | None, known: Mapping[str, str]) -> Any:
    """Open the ``SentenceTransformer`` of a folder, or of a hub id and its commit, in fp32.

    ``known`` are digests of a folder's files by their names in it. Raises ``UserError`` without the
    package, for a folder that is no encoder's, has pickled weights or modules of its own, and for
    files that are not the ``known`` ones.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise UserError(
            "a model of kind encoder needs the Python package sentence-transformers, and there is "
            "none here",
            do="pip install 'mamushi[encoders]'",
        ) from None
    folder, _ = folders.fetch(source, revision, "models.NAME.source", subfolders=True)
    _check(folder)
    for name, digest in known.items():
        if digests.of(folder / name) != digest:
            raise UserError("has changed since this run began", where=folder / name, do="run again")
    device.reproducible(0)
    with folders.reading("the encoder", folder, "save it again with sentence-transformers"):
        return SentenceTransformer(
            str(folder),
            device=str(device.accelerator("fp32").device),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        ).eval()


def _check(folder: Path) -> None:
    listed = folder / MODULES
    if not listed.is_file():
        raise UserError(
            f"no {MODULES}, so this is no folder of sentence-transformers",
            where=folder,
            do="give the folder that SentenceTransformer.save wrote",
        )
    for module in read_json(listed):
        kind, place = str(module.get("type", "")), folder / str(module.get("path", ""))
        if not kind.startswith(OWN):
            raise UserError(
                f"names the module {kind!r}, whose code is not run",
                where=listed,
                do="use an encoder of modules that sentence-transformers has",
            )
        weights = list(place.glob("*.safetensors"))
        for path in weights:
            folders.check_safetensors(path)
        if not weights:
            folders.check_no_pickles(place)


@torch.inference_mode()
def encode(
    encoder: Any, ids: Sequence[str], texts: Sequence[str], batch_tokens: int
) -> NDArray[np.float16]:
    """Return embeddings (texts, width) of the texts, in their order; texts of similar length share
    a batch of ``batch_tokens`` tokens with padding. Raises ``UserError`` for values that float16
    cannot hold."""
    lengths = lengths_of(encoder, texts)
    vectors = np.empty((0, 0), np.float16)
    with Progress(len(texts), "encode", "text") as progress:
        for rows in batches(lengths, batch_tokens, shared=False):
            given = [texts[row] for row in rows]
            found = encoder.encode(given, batch_size=len(rows), show_progress_bar=False)
            if not vectors.size:
                vectors = np.empty((len(texts), found.shape[1]), np.float16)
            vectors[rows] = found
            progress.advance(len(rows))
    if (odd := np.flatnonzero(~np.isfinite(vectors).all(axis=1))).size:
        raise UserError(
            "its embedding has values that are not finite in float16",
            where=f"example {ids[odd[0]]}",
            do="look for weights of the encoder that are not finite",
        )
    return vectors


def lengths_of(encoder: Any, texts: Sequence[str] | pa.Array) -> NDArray[np.int64]:
    """Return the tokens of each text, cut as the encoder does (texts,)."""
    lengths = np.empty(len(texts), np.int64)
    for start in range(0, len(texts), ROWS):
        part = texts[start : start + ROWS]
        rows = part.to_pylist() if isinstance(part, pa.Array) else list(part)
        found = encoder.tokenizer(rows, add_special_tokens=True, verbose=False)["input_ids"]
        lengths[start : start + ROWS] = np.fromiter(map(len, found), np.int64, len(rows))
    most = encoder.max_seq_length
    return np.maximum(lengths if most is None else np.minimum(lengths, int(most)), 1)
