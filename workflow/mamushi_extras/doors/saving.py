"""What ranked a list, as a file that scores other texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from mamushi.errors import UserError
from mamushi.io import digests, paths, seal
from mamushi.io.files import atomic, read_json
from mamushi.io.provenance import provenance
from mamushi.io.tables import read_metadata
from mamushi.io.tensors import header
from mamushi.lm.chats import CHATS
from mamushi.registry import plugin
from mamushi.selection.pool import column_of, read_pool
from mamushi.selection.word_vectors import fit_components
from mamushi_extras.doors.fits import AffineWeights, fit_whole, of_words_alone
from mamushi_extras.doors.scorers import VECTORS

_POOLING = ("pooling", "skip_bos", "max_length", "precision")
"""Settings that make a vector of the states of a layer."""


def write_scorer(listed: Path, out: Path) -> None:
    """Fit the selector of a list to all texts of its cell, and write it for ``read_scorer``.
    Raises ``UserError`` for a list that is no run's or is of an earlier one, for documents that
    were ranked by windows, for vectors that nothing here makes of other texts, and as
    ``fit_whole``."""
    where = paths.wildcards(paths.REMOVAL, listed.absolute())
    if where is None:
        do = "give results/runs/.../removals/SELECTOR/betaB.parquet"
        raise UserError("is no list of a run", where=listed, do=do)
    listing, ranked = (
        read_metadata(listed),
        read_metadata(paths.under(pattern=paths.SCORES, **where)),
    )
    origin = ranked["provenance"]
    files = {
        name: paths.under(pattern=pattern, **where)
        for name, pattern in (
            ("examples", paths.EXAMPLES),
            ("embeddings", paths.EMBEDDINGS),
            ("layers", paths.LAYERS),
        )
        if name in origin["inputs"]
    }
    expected = {**origin["inputs"], "examples": listing["provenance"]["inputs"]["examples"]}
    for name, path in files.items():
        if digests.of(path) != expected[name]:
            do = "put the file of this run back, or rank again"
            raise UserError(f"is of another run than {listed}", where=path, do=do)
    if ranked.get("windows"):
        raise UserError("ranks documents by windows", where=listed, do="rank them as a whole")
    weights = _fitted(files, origin["settings"], ranked["embedded"], listed)
    vectors = None
    if VECTORS in weights.parts:
        card = paths.under(pattern=paths.MODEL_CARD, **where)
        vectors = _described(files, origin["settings"], ranked["embedded"], card)
    rows = listing["rows"]
    scorer = {
        "selector": where["selector"],
        **{name: rows.get(name) or default for name, default in _READ.items()},
        **{"parts": [*weights.parts], "joint": weights.joint, "vectors": vectors},
    }
    made_from = provenance(origin["settings"], **files)
    _write(out, weights, {"scorer": scorer, "provenance": made_from})


_READ = {"text": "text", "part": "whole"}
"""What is read of a row, where nothing else is known."""


def _fitted(
    files: Mapping[str, Path],
    settings: Mapping[str, Any],
    embedded: Mapping[str, Any],
    listed: Path,
) -> AffineWeights:
    embedding = embedded["settings"]["embedding"]
    pool = read_pool(
        files["embeddings"],
        files["examples"],
        layers=files.get("layers"),
        texts=plugin("selector", settings["kind"]).reads_texts or "words" in embedding,
    )
    components = None
    if "words" in embedding:
        assert pool.texts is not None
        components, vectors = fit_components(pool.texts.tolist(), embedding["words"])
        pool = replace(pool, embeddings=vectors)
    try:
        weights = fit_whole(pool, settings["kind"], settings["settings"], settings["seed"])
    except UserError as error:
        raise UserError(error.problem, where=listed, do=error.do) from None
    return weights if components is None else of_words_alone(weights, components)


def _described(
    files: Mapping[str, Path],
    settings: Mapping[str, Any],
    embedded: Mapping[str, Any],
    model_card: Path,
) -> dict[str, Any]:
    """Return how texts become the vectors that are weighed. Raises ``UserError`` where that cannot
    be done again with a model and texts alone."""
    of_run, embedding = embedded["settings"], embedded["settings"]["embedding"]
    problem = None
    if "pooling" not in embedding:
        problem = "its vectors were made elsewhere"
    elif of_run["training"] is not None:
        problem = "its vectors are of a model that the run has trained"
    elif CHATS in pq.read_schema(files["examples"]).names:
        problem = "its vectors are of conversations"
    elif digests.of(model_card) != embedded["inputs"]["model_card"]:
        problem = f"{model_card} is of another run"
    if problem:
        do = "rank by words alone, or by a model as it is"
        raise UserError(
            f"{problem}: of other texts there are none", where=files["embeddings"], do=do
        )
    card, depths = read_json(model_card), settings["settings"].get("depths", [1])
    of_depths = read_metadata(files["layers"])["layers"] if "layers" in files else {}
    layers = [embedding["layer"] if d == 1 else of_depths[column_of(d)] for d in depths]
    source = card["source"]
    if card["revision"] is None:
        source = str((model_card.parent / source).resolve())
    return {
        **{name: embedding[name] for name in _POOLING},
        **{"layers": layers, "source": source},
        **{name: card[name] for name in ("revision", "digests")},
    }


def _write(out: Path, weights: AffineWeights, metadata: Mapping[str, Any]) -> None:
    tensors = {"intercept": np.array([weights.intercept])}
    for name, arrays in weights.parts.items():
        kinds = zip(("weights", "columns", "rarity"), arrays, strict=False)
        tensors |= {f"{name}.{kind}": np.ascontiguousarray(array) for kind, array in kinds}
    with atomic(out) as part:
        save_file(tensors, part, metadata=header(metadata))
        seal.seal(part)
