"""What one job of a screened corpus writes and another one reads, and which files a job has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load_file, save_file

from mamushi.data.raw import Raw
from mamushi.io import seal
from mamushi.io.files import atomic
from mamushi.io.tables import read_groups, read_metadata, read_table, write_table, writing
from mamushi.io.tensors import header, trained_metadata
from mamushi_extras.shards.schemas import SHARD_PASSED, SHARD_SCORES, SHARD_TEXTS
from mamushi_extras.unlabelled.screen import FEATURES, FOLDS, Screen, rarity_of
from mamushi_extras.unlabelled.screening import ScreenCut, ScreenSample, ScreenScores


def write_sample(path: Path, sample: ScreenSample, origin: Mapping[str, Any]) -> None:
    """Write the sample of a shard."""
    metadata = {"rows": sample.rows, "names": sample.names, "digests": sample.digests}
    columns = {"key": sample.keys, "text": sample.texts}
    write_table(path, SHARD_TEXTS, columns, metadata={**origin, **metadata})


def read_sample(path: Path) -> ScreenSample:
    """Read it. Raises ``UserError`` as ``read_table``."""
    table, metadata = read_table(path, SHARD_TEXTS), read_metadata(path)
    counted = (metadata[name] for name in ("rows", "names", "digests"))
    return ScreenSample(table["key"].to_numpy(), table["text"].to_pylist(), *counted)


def write_screen(
    path: Path, screen: Screen, sample: ScreenSample, origin: Mapping[str, Any]
) -> None:
    """Write a screen: the words that it weighs, how rare words are, and of what it was made."""
    words = np.flatnonzero(screen.weights.any(axis=1))
    tensors = {
        "words": words,
        "weights": screen.weights[words],
        "rarity": screen.rarity.idf_,
        "fold": screen.fold,
    }
    metadata = {"rows": sample.rows, "digests": sample.digests, "windows": screen.windows}
    _write_tensors(path, tensors, {**origin, **metadata})


def read_screen(path: Path) -> tuple[Screen, ScreenSample]:
    """Read a screen, and what is known of the corpus: rows and digests, and no texts. Raises
    ``UserError`` for a missing or damaged file."""
    metadata, tensors = trained_metadata(path), load_file(path)
    weights = np.zeros((FEATURES, 1 + FOLDS), np.float32)
    weights[tensors["words"]] = tensors["weights"]
    screen = Screen(weights, rarity_of(tensors["rarity"]), tensors["fold"], metadata["windows"])
    nothing = np.empty(0, np.int64)
    return screen, ScreenSample(nothing, [], metadata["rows"], digests=metadata["digests"])


def write_screen_scores(
    path: Path, blocks: Iterator[ScreenScores], origin: Mapping[str, Any]
) -> None:
    """Write the scores of a shard, block by block."""
    with writing(path, SHARD_SCORES, metadata=origin) as write:
        write({"key": np.empty(0, np.int64), "scores": pa.array([], pa.list_(pa.float32()))})
        for keys, scores in blocks:
            flat = pa.array(scores.ravel())
            ends = pa.array(np.arange(len(keys) + 1, dtype=np.int32) * (1 + FOLDS))
            write({"key": keys, "scores": pa.ListArray.from_arrays(ends, flat)})


def read_screen_scores(path: Path) -> Iterator[ScreenScores]:
    """Read them block by block."""
    for table in read_groups(path, SHARD_SCORES):
        flat = table["scores"].combine_chunks().flatten().to_numpy()
        yield ScreenScores(table["key"].to_numpy(), flat.reshape(-1, 1 + FOLDS))


def count_scores(path: Path) -> int:
    """Return of how many rows a file has scores."""
    return int(pq.read_metadata(path).num_rows)


def write_cut(path: Path, cut: ScreenCut, rows: Sequence[int], origin: Mapping[str, Any]) -> None:
    """Write where the rows end that pass, and how many ``rows`` each shard has."""
    tensors = {
        "score": np.array([cut.score], np.float32),
        "key": np.array([cut.key], np.int64),
        "lowest": cut.lowest,
        "rows": np.array(rows, np.int64),
    }
    _write_tensors(path, tensors, origin)


def read_cut(path: Path) -> tuple[ScreenCut, list[int]]:
    """Read it. Raises ``UserError`` for a missing or damaged file."""
    trained_metadata(path)
    tensors = load_file(path)
    cut = ScreenCut(tensors["score"][0], tensors["key"][0], tensors["lowest"])
    return cut, tensors["rows"].tolist()


def write_passed(path: Path, raw: Raw, origin: Mapping[str, Any]) -> None:
    """Write the rows of a shard that pass."""
    labels = {f"label_{name}": pa.array(column) for name, column in raw.labels.items()}
    columns = {
        **{"id": raw.ids, "text": raw.texts, "section": raw.section, "place": raw.places},
        "group": raw.group or [None] * len(raw.ids),
    }
    arrays = {name: pa.array(column, pa.string()) for name, column in columns.items()}
    metadata = {"digests": dict(raw.sources), "extra": dict(raw.extra_metadata)}
    write_table(path, SHARD_PASSED, {**arrays, **labels}, metadata={**origin, **metadata})


def read_passed(path: Path) -> Raw:
    """Read them. Raises ``UserError`` as ``read_table``."""
    table, metadata = read_table(path, SHARD_PASSED), read_metadata(path)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return Raw(
        ids=columns["id"],
        texts=columns["text"],
        forget=np.zeros(len(table), dtype=bool),
        section=columns["section"],
        stratum=[""] * len(table),
        places=columns["place"],
        labels={name[6:]: cells for name, cells in columns.items() if name[:6] == "label_"},
        group=columns["group"],
        sources=metadata["digests"],
        extra_metadata=metadata["extra"],
    )


def read_parts(parts: Sequence[str]) -> tuple[list[Raw], ScreenSample, Screen, ScreenCut]:
    """Read what jobs left for ``examples``: a screen, where its rows end, and these by shard.
    Raises ``UserError`` for a missing or damaged file."""
    of_screen, of_cut, *passed = map(Path, parts)
    screen, sample = read_screen(of_screen)
    return [*map(read_passed, passed)], sample, screen, read_cut(of_cut)[0]


def _write_tensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    with atomic(path) as part:
        arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        save_file(arrays, part, metadata=header(metadata))
        seal.seal(part)
