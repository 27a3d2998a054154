"""Sentence encoders: models that give a text one vector, as the package sentence-transformers has
them. It is installed by choice. Code that comes with a model is never run, and weights are read
from safetensors alone.
"""

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
from mamushi.lm import device, loading
from mamushi.lm.batches import batches
from mamushi.running.progress import Progress

MODULES = "modules.json"
OWN = "sentence_transformers."
"""How the name of a module begins that the package itself has."""
ROWS = 16384
"""Texts that are cut into tokens at once."""


def open_encoder(source: str, revision: str | None, known: Mapping[str, str]) -> Any:
    """The ``SentenceTransformer`` of a folder, or of a hub id and its commit, in fp32 on a GPU
    where there is one, else on the CPU.

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
    folder, _ = loading._fetch(source, revision, False, "models.NAME.source", whole=True)
    _check(folder)
    for name, digest in known.items():
        if digests.of(folder / name) != digest:
            raise UserError("has changed since this run began", where=folder / name, do="run again")
    device.reproducible(0)
    where = device.accelerator("fp32").device
    try:
        return SentenceTransformer(
            str(folder),
            device=str(where),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        ).eval()
    except (OSError, RuntimeError, ValueError, ImportError, KeyError, TypeError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise UserError(
            f"the encoder cannot be read ({loading._brief(error)})",
            where=folder,
            do="save it again with sentence-transformers",
        ) from error


def _check(folder: Path) -> None:
    listed = folder / MODULES
    if not listed.is_file():
        raise UserError(
            f"no {MODULES}, so this is no folder of sentence-transformers",
            where=folder,
            do="give the folder that SentenceTransformer.save wrote",
        )
    modules = read_json(listed)
    for module in modules:
        kind, place = str(module.get("type", "")), folder / str(module.get("path", ""))
        if not kind.startswith(OWN):
            raise UserError(
                f"names the module {kind!r}, whose code is not run",
                where=listed,
                do="use an encoder of modules that sentence-transformers has",
            )
        weights = list(place.glob("*.safetensors"))
        for path in weights:
            loading.check_safetensors(path)
        pickled = [path for pattern in loading.PICKLES for path in place.glob(pattern)]
        if pickled and not weights:
            raise UserError(
                "only pickle weights, which can run code when they are opened",
                where=place,
                do="save the encoder as safetensors (save_pretrained does)",
            )


@torch.inference_mode()
def encode(
    encoder: Any, ids: Sequence[str], texts: Sequence[str], batch_tokens: int
) -> NDArray[np.float16]:
    """Embeddings (texts, width) of the texts, in their order, as ``SentenceTransformer.encode``
    gives them one at a time; texts of similar length share a batch of so many tokens with padding.

    Raises ``UserError`` for values that float16 cannot hold, and names the id.
    """
    lengths = lengths_of(encoder, texts)
    vectors: NDArray[np.float16] | None = None
    with Progress(len(texts), "encode", "text") as progress:
        for rows in batches(lengths, batch_tokens, shared=False):
            found = encoder.encode(
                [texts[row] for row in rows],
                batch_size=len(rows),
                convert_to_numpy=True,
                show_progress_bar=False,
            )
            if vectors is None:
                vectors = np.empty((len(texts), found.shape[1]), dtype=np.float16)
            vectors[rows] = found
            progress.advance(len(rows))
    assert vectors is not None
    if (odd := np.flatnonzero(~np.isfinite(vectors).all(axis=1))).size:
        raise UserError(
            "its embedding has values that are not finite in float16",
            where=f"example {ids[odd[0]]}",
            do="look for weights of the encoder that are not finite",
        )
    return vectors


def lengths_of(encoder: Any, texts: Sequence[str] | pa.Array) -> NDArray[np.int64]:
    """Tokens of each text, cut as the encoder does (texts,)."""
    lengths = np.empty(len(texts), np.int64)
    for start in range(0, len(texts), ROWS):
        part = texts[start : start + ROWS]
        rows = part.to_pylist() if isinstance(part, pa.Array) else list(part)
        found = encoder.tokenizer(rows, add_special_tokens=True, verbose=False)["input_ids"]
        lengths[start : start + ROWS] = np.fromiter(map(len, found), np.int64, len(rows))
    most = encoder.max_seq_length
    return np.maximum(lengths if most is None else np.minimum(lengths, int(most)), 1)
