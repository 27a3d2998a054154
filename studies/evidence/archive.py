"""The archive of a run: all from which its evidence is computed, without a text or a weight.

    python -m studies.evidence.archive results

Of each dataset and model there are three files: ``{dataset}-{model}.json``, the card, with what
each model was trained on and as, versions, and the digests of the other two;
``{dataset}-{model}-held-out.parquet``, a row per held-out text with its NLL in each arm, and
without word frequencies where that was measured; and ``{dataset}-{model}-ranked.parquet``, a row
per ranked text with its score by each selector, and whether each list has it.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.evaluation.sad import read_perplexity
from mamushi.io import paths, schemas
from mamushi.io.digests import fingerprint
from mamushi.io.files import atomic, read_json, sha256, write_json
from mamushi.io.tables import FORGET, read_table

Doubles = NDArray[np.float64]
Columns = dict[str, Any]
FILES = ("held-out", "ranked")
TOLD = ("settings", "versions")
"""What many models share, and a card has once."""
DEEP = "deep/"
"""What a column's name begins with that has the NLL without word frequencies."""
KEPT = ("steps", "texts", "removed", "stopped_at")
"""What is kept of a model's card beside its settings and its identity."""


@dataclass(frozen=True)
class Texts:
    """Texts by id: which are ``forget`` (n,), and the ``groups`` (n,) that are not independent,
    as integer codes; a text without a group is one of its own."""

    ids: list[str]
    forget: NDArray[np.bool_]
    groups: NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """What the archive has of one dataset and model.

    ``tokens`` (held-out texts,); ``nll``, by seed and arm, the NLL of each held-out text summed
    over its tokens, in nats; ``deep`` the same without word frequencies, NaN for texts that are not
    sampled for it, and empty where a run has not measured it; ``scores``, by seed and selector, and
    ``lists``, by seed, selector and budget, of the ranked texts. ``cards`` are by seed and arm;
    each has the mean ``nll`` per token of forget and of retain texts, also of arms whose texts were
    not kept one by one.
    """

    dataset: str
    model: str
    held_out: Texts
    tokens: Doubles
    nll: dict[tuple[int, str], Doubles]
    deep: dict[tuple[int, str], Doubles]
    ranked: Texts
    scores: dict[tuple[int, str], Doubles]
    lists: dict[tuple[int, str, str], NDArray[np.bool_]]
    cards: dict[tuple[int, str], dict[str, Any]]
    versions: list[dict[str, str]]


def pack(results: Path, out: Path) -> list[Path]:
    """Put into ``out`` all that a folder of results has measured; return the cards.

    Raises ``UserError`` where two models of a dataset were measured on other texts.
    """
    cells = sorted({path.parent for path in results.glob("runs/*/*/seed*")})
    return [card for cell in cells if (card := _pack(results, cell, out)) is not None]


def _pack(results: Path, folder: Path, out: Path) -> Path | None:
    dataset, model = folder.parts[-2:]
    cards, nll = _arms(folder)
    if not nll:
        return None
    name = f"{dataset}-{model}"
    examples = results / "data" / dataset / "examples.parquet"
    tables = _table(nll, examples, ("tokens",)), _table(_ranked(folder), examples, ())
    files = {}
    for suffix, table in zip(FILES, tables, strict=True):
        path = out / f"{name}-{suffix}.parquet"
        with atomic(path) as part:
            _write(part, table)
        files[path.name] = sha256(path)
    content = {"dataset": dataset, "model": model, "files": files, **_deduplicated(cards)}
    card = out / f"{name}.json"
    write_json(card, {**content, "digest": fingerprint(content)})
    return card


def _write(path: Path, table: pa.Table) -> None:
    floats = [f.name for f in table.schema if pa.types.is_floating(f.type)]
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=[f.name for f in table.schema if f.name not in floats],
        use_byte_stream_split=floats,
        write_statistics=False,
    )


def _arms(folder: Path) -> tuple[dict[str, Any], dict[str, Columns]]:
    """Return the cards and the NLL tables of a dataset and model, by ``seed0/gold``."""
    cards, tables = {}, {}
    for path in sorted(folder.glob("seed*/arms/**/perplexity.parquet")):
        at = paths.wildcards(paths.PERPLEXITY, path)
        assert at is not None
        name = f"seed{at['seed']}/{at['arm']}"
        mean = read_perplexity(path)
        cards[name] = {"nll": [mean["nll_forget"], mean["nll_retain"]], **_card(path.parent)}
        if (texts := path.with_name("nll.parquet")).is_file():
            table = read_table(texts, schemas.NLL)
            of = {"id": table["id"].to_pylist(), "tokens": table["tokens"].to_numpy()}
            for prefix, column in (("", "nll"), (DEEP, "deep")):
                value = table[column].to_numpy().astype(np.float32)
                if not np.isnan(value).all():
                    tables[f"{prefix}{name}"] = {**of, "value": value, "where": texts}
    return cards, tables


def _card(folder: Path) -> dict[str, Any]:
    if not (path := folder / "card.json").is_file():
        return {}  # The base model is no model of the run's own.
    card = read_json(path)
    settings = {key: value for key, value in card["settings"].items() if key != "seed"}
    identity = {name: card[name] for name in ("settings", "inputs", "versions")}
    kept = {name: card[name] for name in KEPT if card.get(name) is not None}
    kept |= {"identity": fingerprint(identity), "settings": settings}
    return {**kept, "versions": card["versions"]}


def _deduplicated(cards: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cards, with each distinct settings and versions once."""
    distinct_by_kind: dict[str, dict[str, Any]] = {kind: {} for kind in TOLD}
    arms = {}
    for name, card in cards.items():
        arms[name] = entry = dict(card)
        for kind, distinct in distinct_by_kind.items():
            if kind in entry:
                digest = fingerprint(entry[kind])[:12]
                distinct[digest], entry[kind] = entry[kind], digest
    return {"arms": arms, **distinct_by_kind}


def _ranked(folder: Path) -> dict[str, Columns]:
    """Return scores, by ``seed0/mamushi``, and lists, by ``seed0/mamushi/beta0.50``."""
    columns: dict[str, Columns] = {}
    for path in sorted(folder.glob("seed*/scores/*.parquet")):
        table = read_table(path, schemas.SCORES)
        score = table["score"].to_numpy(zero_copy_only=False).astype(np.float64)
        name = f"{path.parts[-3]}/{path.stem}"
        columns[name] = {"id": table["id"].to_pylist(), "value": score, "where": path}
    for path in sorted(folder.glob("seed*/removals/*/*.parquet")):
        seed, _, selector, listed = path.with_suffix("").parts[-4:]
        if (scored := columns.get(f"{seed}/{selector}")) is None:
            continue
        ids = set(read_table(path, schemas.REMOVALS, ["id"])["id"].to_pylist())
        value = np.array([name_ in ids for name_ in scored["id"]])
        name = f"{seed}/{selector}/{listed}"
        columns[name] = {"id": scored["id"], "value": value, "where": path}
    return columns


def _table(columns: Mapping[str, Columns], examples: Path, shared: Iterable[str]) -> pa.Table:
    """Return columns that have one order of ids side by side, with what the texts are."""
    if not columns:
        return pa.table({"id": [], "domain": [], "group": []})
    first = next(iter(columns.values()))
    for column in columns.values():
        if column["id"] != first["id"] or any(
            not np.array_equal(column[name], first[name]) for name in shared
        ):
            do = "run again what is older"
            raise UserError("is of other texts than its neighbours", where=column["where"], do=do)
    # Without its schema: a run of before there were groups has no such column.
    table = pq.ParquetFile(examples, page_checksum_verification=True)
    names = [name for name in ("id", "domain", "group") if name in table.schema_arrow.names]
    rows = {row["id"]: row for row in table.read(names).to_pylist()}
    texts = [rows[text] for text in first["id"]]
    return pa.table(
        {
            "id": first["id"],
            "domain": [row["domain"] for row in texts],
            "group": pa.array([row.get("group") for row in texts], pa.string()),
            **{name: first[name] for name in shared},
            **{name: column["value"] for name, column in columns.items()},
        }
    )


def read(archive: Path) -> dict[tuple[str, str], Run]:
    """Return what an archive has, by dataset and model."""
    runs = map(_read, sorted(archive.glob("*.json")))
    return {(run.dataset, run.model): run for run in runs}


def _whole(path: Path) -> tuple[dict[str, Any], list[pa.Table]]:
    """Return a card, whose arms have all that is told of them, and its tables."""
    card = read_json(path)
    card["arms"] = {
        name: {key: card[key][value] if key in TOLD else value for key, value in entry.items()}
        for name, entry in card["arms"].items()
    }
    return card, [pq.read_table(path.with_name(name)) for name in card["files"]]


def _read(path: Path) -> Run:
    card, (held_out, ranked) = _whole(path)
    cards = {_key(name): entry for name, entry in card["arms"].items()}
    columns = [(_key(name), column) for name, column in _columns(ranked)]
    return Run(
        card["dataset"],
        card["model"],
        _texts(held_out),
        held_out["tokens"].to_numpy().astype(np.float64),
        *(
            {_key(name): column.astype(np.float64) for name, column in _columns(held_out, prefix)}
            for prefix in ("", DEEP)
        ),
        _texts(ranked),
        {key: column for key, column in columns if "/beta" not in key[1]},
        {
            (seed, *name.split("/beta")): column
            for (seed, name), column in columns
            if "/beta" in name
        },
        cards,
        list(card["versions"].values()),
    )


def _key(name: str) -> tuple[int, str]:
    seed, _, rest = name.partition("/")
    return int(seed.removeprefix("seed")), rest


def _columns(table: pa.Table, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the columns whose name is a prefix and ``seed0/...``, by that."""
    for name in table.column_names:
        if name.startswith(f"{prefix}seed"):
            yield name.removeprefix(prefix), table[name].to_numpy(zero_copy_only=False)


def _texts(table: pa.Table) -> Texts:
    codes: dict[str | int, int] = {}
    groups = [
        codes.setdefault(place if group is None else group, len(codes))
        for place, group in enumerate(table["group"].to_pylist())
    ]
    forget = np.array([domain == FORGET for domain in table["domain"].to_pylist()], dtype=bool)
    return Texts(table["id"].to_pylist(), forget, np.array(groups, dtype=np.int64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of results of a run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "archive")
    args = parser.parse_args()
    print(*pack(args.results, args.out), sep="\n")


if __name__ == "__main__":
    main()
