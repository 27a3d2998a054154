"""Whether a removal list is what its manifest says: re-derived from the embeddings and settings.

The first difference is named in the order in which things are made: examples, embeddings, settings
and seed, code, scores, ranking, list, manifest. What lies further down differs because of it.

The scores that a selector derives from, and those that estimate the log-density ratio, are derived
again as well, each with the settings in its own file: the list and its expected values rest on
them. So to verify a list costs as much as to run all of these selectors.

Scores are compared within ``TOLERANCE``, because another processor or library adds in another
order. On the machine that made them they are equal. A setting that was left to the machine, as the
precision of the MLP is by default, is taken as the scores' metadata say that it was. The training
of a network can carry a difference of rounding further than that, on a GPU above all: then the
message names the versions that differ, and to verify the list takes the versions and the kind of
device that made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256
from mamushi.artifacts.provenance import versions
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.errors import UserError
from mamushi.evidence.manifest import manifest
from mamushi.registry import load, plugin
from mamushi.running.identity import digest as code_digest
from mamushi.selection.pool import Scored, rank, read_pool
from mamushi.selection.removals import budget_of, removals

TOLERANCE = 1e-4
"""Of a score, in standard deviations of the selector's scores."""

EXPECTED_TOLERANCE = 1e-6
"""Of the expected removal and preservation, in nats."""

NAMED: Mapping[str, type | tuple[type, ...]] = {
    "dataset": str,
    "model": str,
    "seed": int,
    "selector": str,
    "kind": str,
    "settings": dict,
    "beta": (int, float),
    "provenance": dict,
    "expected": dict,
}
"""What a manifest must say so that its list can be derived again."""

SCORED: Mapping[str, type] = {"selector": str, "kind": str, "settings": dict, "seed": int}
"""What scores must say of their making so that they can be derived again."""

INPUTS = ("examples", "embeddings", "scores", "ratio", "duplicates")
"""The files whose digests its provenance must hold."""


class Difference(UserError):
    """What was made and what is derived again are not the same."""

    def __init__(self, what: str, where: object) -> None:
        super().__init__(what, where=where, do="the list is not what its manifest says")


class Files:
    """The files of the run that a manifest belongs to.

    Found by where it lies in a results folder, or in ``root`` by the run that it names.
    """

    def __init__(self, path: Path, named: Mapping[str, Any], root: Path | None) -> None:
        self.manifest = path
        if root is None:
            self.root, self.run = _place(path)
            self.removals = path.with_suffix(".parquet")
        else:
            self.root = root
            self.run = {key: str(named[key]) for key in ("dataset", "model", "seed")}
            cell = {"selector": named["selector"], "beta": paths.beta(named["beta"])}
            self.removals = paths.under(root, paths.REMOVAL, **self.run, **cell)
        dataset = self.run["dataset"]
        self.examples = paths.under(self.root, paths.EXAMPLES, dataset=dataset)
        self.duplicates = paths.under(self.root, paths.DUPLICATES, dataset=dataset)
        self.embeddings = paths.under(self.root, paths.EMBEDDINGS, **self.run)
        self.scores = self.of(str(named["selector"]))

    def of(self, selector: str) -> Path:
        """The scores of a selector of the run."""
        return paths.under(self.root, paths.SCORES, **self.run, selector=selector)

    def with_digest(self, wanted: str) -> Path:
        """The scores whose bytes have this SHA-256. Raises ``Difference`` where none has."""
        folder = self.scores.parent
        found = [path for path in sorted(folder.glob("*.parquet")) if sha256(path) == wanted]
        if not found:
            raise Difference(
                "no scores here are those that the expected removal and preservation were "
                "estimated with (sha256 " + wanted[:12] + "...)",
                folder,
            )
        return found[0]


def _place(path: Path) -> tuple[Path, dict[str, str]]:
    """The results folder that a manifest lies in, and the run whose folder that is."""
    parts = path.resolve().parts
    if len(parts) < 8 or (parts[-7], parts[-3]) != ("runs", "removals"):
        raise UserError("lies in no results folder", where=path, do="name that folder with --root")
    dataset, model, seed = parts[-6:-3]
    run = {"dataset": dataset, "model": model, "seed": seed.removeprefix("seed")}
    return Path(*parts[:-7]), run


@dataclass
class Scores:
    """A file of scores: what it says of itself, and the table. ``resolved`` are the settings that
    were left to the machine (a precision ``auto``), as that machine took them."""

    path: Path
    origin: Mapping[str, Any]
    embedded: object
    table: pa.Table
    resolved: Mapping[str, Any]


def _scores(path: Path) -> Scores:
    """Raises ``UserError`` when the file is missing, damaged or does not say how it was made."""
    stored = read_metadata(path)
    origin = stored.get("provenance")
    origin = origin if isinstance(origin, dict) else {}
    made = origin.get("settings")
    made = made if isinstance(made, dict) else {}
    if not isinstance(origin.get("inputs"), dict) or any(
        not isinstance(made.get(key), kind) for key, kind in SCORED.items()
    ):
        raise UserError(
            "does not say what it was made from", where=path, do="delete it and score again"
        )
    details = stored.get("details")
    resolved = details.get("resolved") if isinstance(details, dict) else None
    return Scores(
        path,
        origin,
        stored.get("embedded"),
        read_table(path, schemas.SCORES),
        resolved if isinstance(resolved, dict) else {},
    )


def verify(path: Path, root: Path | None = None) -> list[str]:
    """Derive the list of a manifest again; remarks for its reader, none where nothing is special.

    Raises ``Difference`` that names the first difference, and ``UserError`` when the manifest is
    damaged or a file that it needs is missing.
    """
    named = _read(path)
    files = Files(path, named, root)
    inputs = named["provenance"]["inputs"]
    _same_file(files.examples, inputs["examples"], "examples")
    _same_file(files.embeddings, inputs["embeddings"], "embeddings")
    ranked = _scores(files.scores)
    scores = ranked.table
    _same_settings(named, ranked.origin, files)
    _same_sources(ranked, files)
    _same_model(named["provenance"], ranked, files)
    _same_code(files, ranked.origin, named)
    remarks = _other_versions(ranked.origin)
    derived = _same_scores(ranked, files, remarks)
    _same_file(files.scores, inputs["scores"], "scores")
    _same_file(files.duplicates, inputs["duplicates"], "duplicates")
    duplicates = read_table(files.duplicates, schemas.DUPLICATES)
    k = budget_of(named["beta"], scores)
    _same_list(read_table(files.removals, schemas.REMOVALS), removals(scores, duplicates, k), files)
    estimated = files.with_digest(inputs["ratio"])
    if estimated not in derived:
        _derive(estimated, files, ranked.origin["settings"]["seed"], remarks)
    ratio = read_table(estimated, schemas.SCORES)
    by_chance = bool(plugin("selector", named["kind"]).literals.get("BY_CHANCE", False))
    _same_manifest(named, manifest(scores, ratio, duplicates, k, by_chance, {}), path)
    return remarks


def _read(path: Path) -> dict[str, Any]:
    named = read_json(path)
    named = named if isinstance(named, dict) else {}
    missing = [
        key
        for key, kind in NAMED.items()
        if not isinstance(named.get(key), kind) or isinstance(named.get(key), bool)
    ]
    if not missing:
        inputs = named["provenance"].get("inputs")
        inputs = inputs if isinstance(inputs, dict) else {}
        missing = [f"provenance.inputs.{n}" for n in INPUTS if not isinstance(inputs.get(n), str)]
        if not isinstance(named["provenance"].get("settings"), dict):
            missing.append("provenance.settings")
    if missing:
        raise UserError(
            f"is no removal manifest: it has no {missing[0]!r}",
            where=path,
            do="give the .json beside a removal list",
        )
    if not 0 <= named["beta"] <= 1 or named["beta"] != round(named["beta"], 2):
        raise UserError(
            f"beta is {named['beta']}",
            where=path,
            do="a budget is between 0 and 1 and has at most two decimals",
        )
    return named


def _same_file(path: Path, wanted: str, what: str) -> None:
    found = sha256(path)
    if found != wanted:
        raise Difference(
            f"other {what} than the manifest names: sha256 {found[:12]}... here, {wanted[:12]}... "
            "there",
            path,
        )


def _same_settings(named: Mapping[str, Any], stored: Mapping[str, Any], files: Files) -> None:
    made = stored.get("settings", {})
    for key in ("dataset", "model", "seed"):
        if files.run[key] != str(named[key]):
            raise Difference(
                f"{key}: {named[key]!r} in the manifest, which lies in the run of "
                f"{key} {files.run[key]!r}",
                files.manifest,
            )
    for key in ("selector", "kind", "seed"):
        _equal(key, made.get(key), named[key], files.scores)
    for key in sorted({*named["settings"], *made.get("settings", {})}):
        ours, theirs = made.get("settings", {}).get(key), named["settings"].get(key)
        _equal(f"setting {key!r} of the selector", ours, theirs, files.scores)
    twice = named["provenance"]["settings"]
    for key in ("dataset", "model", "seed", "selector", "kind", "settings"):
        if key in twice and twice[key] != named[key]:
            raise Difference(
                f"{key}: {named[key]!r}, but {twice[key]!r} in its own provenance", files.manifest
            )


def _same_sources(scores: Scores, files: Files) -> None:
    """Compare what scores were made from, and the model they carry along, with the files here."""
    for what, path in (("examples", files.examples), ("embeddings", files.embeddings)):
        if sha256(path) != scores.origin["inputs"].get(what):
            raise Difference(f"made from other {what} than are here", scores.path)
    if scores.embedded != read_metadata(files.embeddings):
        raise Difference(f"says otherwise than {files.embeddings} how these were made", scores.path)


def _same_model(provenance: Mapping[str, Any], scores: Scores, files: Files) -> None:
    """Compare what the manifest says of data, model and embedding with what the scores carry."""
    embedded = scores.embedded if isinstance(scores.embedded, dict) else {}
    carried = {**(embedded.get("inputs") or {}), **scores.origin["inputs"]}
    for name in sorted({*carried, *provenance["inputs"]} - set(INPUTS)):
        _told(f"inputs.{name}", carried.get(name), provenance["inputs"].get(name), files)
    made = embedded.get("settings") or {}
    _told("embedding", made.get("embedding"), provenance.get("embedding"), files)


def _told(what: str, carried: object, told: object, files: Files) -> None:
    if carried != told:
        raise Difference(
            f"provenance.{what} is {told!r}, and {carried!r} by the metadata of {files.scores}",
            files.manifest,
        )


def _equal(what: str, found: object, wanted: object, where: Path) -> None:
    if found != wanted:
        raise Difference(f"{what}: made with {found!r}, the manifest says {wanted!r}", where)


def _same_code(files: Files, stored: Mapping[str, Any], named: Mapping[str, Any]) -> None:
    """Compare the digests of what ranks, lists and describes with those of the code here."""
    listed = read_metadata(files.removals).get("provenance", {})
    made = (
        (files.scores, stored, ("score", plugin("selector", named["kind"]).module)),
        (files.removals, listed, ("remove",)),
        (files.manifest, named["provenance"], ("manifests",)),
    )
    for path, origin, (stage, *modules) in made:
        _same_digest(path, origin, stage, *modules)


def _same_digest(path: Path, origin: Mapping[str, Any], stage: str, *modules: str) -> None:
    found = origin.get("settings", {}).get("code")
    here = code_digest(f"mamushi.stages.{stage}", *modules)
    if found != here:
        raise Difference(
            f"made by another version of the code: digest {found} of stage {stage!r}, here it "
            f"is {here}",
            path,
        )


def _other_versions(stored: Mapping[str, Any]) -> list[str]:
    then, now = stored.get("versions", {}), versions()
    return [
        f"{name} {then.get(name, 'none')} then, {now.get(name, 'none')} here"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _derive(path: Path, files: Files, seed: int, remarks: list[str]) -> set[Path]:
    """Derive scores again that no manifest describes: those at ``path``, with their own settings.

    Returns all files of scores that were. Raises ``Difference`` when they are of another selector
    or seed than their place, or as ``_same_scores`` does.
    """
    found = _scores(path)
    made = found.origin["settings"]
    for key, wanted in (("selector", path.stem), ("seed", seed)):
        if made[key] != wanted:
            raise Difference(f"{key}: made with {made[key]!r}, its run has {wanted!r}", path)
    _same_sources(found, files)
    _same_digest(path, found.origin, "score", plugin("selector", made["kind"]).module)
    remarks += [new for new in _other_versions(found.origin) if new not in remarks]
    return _same_scores(found, files, remarks)


def _same_scores(stored: Scores, files: Files, remarks: list[str]) -> set[Path]:
    """Run the selector again, first the one that it derives from; the files that were derived.

    Raises ``Difference`` for the first example by the file's order.
    """
    chosen, scores = stored.origin["settings"], stored.table
    base = _base(stored, files)
    checked = {stored.path}
    if base is not None:
        checked |= _derive(base, files, chosen["seed"], remarks)
    pool = read_pool(files.embeddings, files.examples, base)
    # What a setting left to the machine that scored is no choice of this one.
    taken = {**chosen["settings"], **stored.resolved}
    scored = load("selector", chosen["kind"]).score(pool, taken, chosen["seed"])
    because = f" (other versions: {', '.join(remarks)})" if remarks else ""
    if scores["id"].to_pylist() != pool.ids.tolist():
        raise Difference(f"its examples are not those of {files.embeddings}", stored.path)
    found = np.asarray(scores["score"].to_numpy(), dtype=np.float64)
    again = scored.scores
    allowed = TOLERANCE * float(np.nanstd(again))
    same = np.isclose(found, again, rtol=0, atol=allowed, equal_nan=True)
    if not same.all():
        i = int(np.argmin(same))
        raise Difference(
            f"the score of {pool.ids[i]!r} is {found[i]:.9g}, derived again {again[i]:.9g}, and "
            f"{np.sum(~same)} of {len(same)} differ{because}",
            stored.path,
        )
    fold = [None] * len(same) if scored.fold is None else scored.fold.tolist()
    order = rank(pool, Scored(np.where(pool.forget, found, np.nan), order=scored.order))
    ranks = np.zeros(len(same), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    forget = np.where(pool.forget, "forget", "retain").tolist()
    derived = {
        "domain": forget,
        "fold": fold,
        "rank": [int(r) if of else None for r, of in zip(ranks, pool.forget, strict=True)],
    }
    for name, wanted in derived.items():
        _first(scores[name].to_pylist(), wanted, pool.ids.tolist(), name, stored.path)
    return checked


def _base(stored: Scores, files: Files) -> Path | None:
    """The scores that a selector derives from, None for one that derives from no other."""
    chosen = stored.origin["settings"]
    derives = plugin("selector", chosen["kind"]).literals.get("DERIVES")
    if derives is None:
        return None
    name = chosen["settings"].get(derives)
    if not isinstance(name, str):
        raise UserError(
            f"does not say which selector it derives from (setting {derives!r})",
            where=stored.path,
            do="delete it and score again",
        )
    base = files.of(name)
    _same_file(base, stored.origin["inputs"].get("base", ""), "scores to derive from")
    return base


def _first(found: list[Any], wanted: list[Any], ids: list[str], what: str, where: Path) -> None:
    for name, ours, theirs in zip(ids, found, wanted, strict=True):
        if ours != theirs:
            raise Difference(f"the {what} of {name!r} is {ours}, derived again {theirs}", where)


def _same_list(found: pa.Table, wanted: pa.Table, files: Files) -> None:
    if len(found) != len(wanted):
        raise Difference(
            f"lists {len(found)} examples, derived again {len(wanted)}", files.removals
        )
    for place, (ours, theirs) in enumerate(
        zip(found["id"].to_pylist(), wanted["id"].to_pylist(), strict=True), start=1
    ):
        if ours != theirs:
            raise Difference(
                f"place {place} holds {ours!r}, where {files.scores} rank {theirs!r}",
                files.removals,
            )
    ids = found["id"].to_pylist()
    for name in ("rank", "score", "copies"):
        _first(found[name].to_pylist(), wanted[name].to_pylist(), ids, name, files.removals)


def _same_manifest(found: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    """Compare what the list implies, in the manifest's own order of importance."""
    for key in ("n_forget", "n_retain", "removed", "copies", "cross_posts", "threshold"):
        _derived(key, found.get(key), wanted[key], path)
    for key in ("ids_sha256", "ids_sha256_of"):
        _derived(key, found.get(key), wanted[key], path)
    unit = wanted["expected"]["unit"]
    _derived("expected.unit", found["expected"].get("unit"), unit, path)
    for at in ("at_this_budget", "nothing_removed", "all_removed"):
        told = found["expected"].get(at)
        for key, value in wanted["expected"][at].items():
            ours = told.get(key) if isinstance(told, dict) else None
            _derived(f"expected.{at}.{key}", ours, value, path)


def _derived(what: str, found: Any, wanted: Any, path: Path) -> None:
    numbers = isinstance(found, float | int) and isinstance(wanted, float)
    same = abs(found - wanted) <= EXPECTED_TOLERANCE if numbers else found == wanted
    if not same:
        raise Difference(f"{what} is {found}, derived again {wanted}", path)
