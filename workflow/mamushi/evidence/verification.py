"""Whether a removal list is what its manifest says: re-derived from the embeddings and settings.

The first difference is named in the order in which things are made: examples, embeddings, settings
and seed, code, scores, ranking, list, stability, manifest. What lies further down differs because
of it.

The scores that a selector derives from, and those that estimate the log-density ratio, are derived
again as well, each with the settings in its own file: the list and its expected values rest on
them. So to verify a list costs as much as to run all of these selectors.

Derived under the conditions that the scores record (processor, a CPU as the device, versions), they
have to be equal to the last bit, whatever the number of threads or cores. A setting that was left
to the machine, as the precision of the MLP is by default, is taken as it was then, and what a CPU
scored is derived on a CPU. Under other conditions sums round otherwise, and the training of a
network carries that into the ranking. Scores that differ there are compared statistically: with
what the scores' own refits say of a ranking made again with another seed, which differs by more.
All else stays exact: ids, digests, ranks by the scores, list, budget, manifest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256
from mamushi.artifacts.provenance import versions
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.errors import UserError
from mamushi.evidence.manifest import Calibrated, manifest, read_calibrated
from mamushi.evidence.ratio import read_ratio
from mamushi.evidence.stability import rankings, stability
from mamushi.registry import load, plugin
from mamushi.running.identity import digest as code_digest
from mamushi.running.machine import conditions
from mamushi.selection.metrics import spearman
from mamushi.selection.pool import Pool, Scored, rank, read_pool
from mamushi.selection.refits import WHOLE, of_table
from mamushi.selection.removals import budget_of, removals

Doubles = NDArray[np.float64]

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
    "conditions": dict,
    "stability": dict,
    "expected": dict,
}
"""What a manifest must say so that its list can be derived again."""

SCORED: Mapping[str, type] = {"selector": str, "kind": str, "settings": dict, "seed": int}
"""What scores must say of their making so that they can be derived again."""

INPUTS = ("examples", "embeddings", "scores", "calibrated", "stability", "duplicates")
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
        self.layers = paths.under(self.root, paths.LAYERS, **self.run)
        self.scores = self.of(str(named["selector"]))
        self.calibrated = paths.under(self.root, paths.CALIBRATED, **self.run)
        self.stability = self.stability_of(str(named["selector"]))

    def stability_of(self, selector: str) -> Path:
        """How stable the list of a selector of the run is."""
        return paths.under(self.root, paths.STABILITY, **self.run, selector=selector)

    def refits_of(self, selector: str) -> Path:
        """The refits of a selector of the run."""
        return paths.under(self.root, paths.REFITS, **self.run, selector=selector)

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
    were left to the machine (a precision ``auto``), as that machine took them; ``conditions`` are
    what that machine was."""

    path: Path
    origin: Mapping[str, Any]
    embedded: object
    table: pa.Table
    resolved: Mapping[str, Any]
    conditions: Mapping[str, Any]


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
        stored.get("conditions") or {},
    )


@dataclass
class Findings:
    """What was found of a list without a difference. ``notes`` are the conditions that are other
    ones here than then; ``statistics`` what was compared statistically, and so could not be said to
    be the same bits: nothing where all of it is."""

    notes: list[str] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)


def verify(path: Path, root: Path | None = None) -> Findings:
    """Derive the list of a manifest again.

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
    _told("conditions", ranked.conditions, named["conditions"], files)
    _same_code(files, ranked.origin, named)
    if ranked.conditions.get("device") == "cpu":
        # Read when torch looks for a GPU for the first time.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    findings = Findings()
    derived = _same_scores(ranked, files, named["beta"], findings)
    _same_file(files.scores, inputs["scores"], "scores")
    _same_file(files.duplicates, inputs["duplicates"], "duplicates")
    duplicates = read_table(files.duplicates, schemas.DUPLICATES)
    k = budget_of(named["beta"], scores)
    _same_list(read_table(files.removals, schemas.REMOVALS), removals(scores, duplicates, k), files)
    _same_stability(named, scores, files)
    _same_file(files.calibrated, inputs["calibrated"], "calibrated ratios")
    made = _inputs(files.calibrated)
    estimated = files.with_digest(made["scores"])
    if estimated not in derived:
        _derive(estimated, files, ranked.origin["settings"]["seed"], named["beta"], findings)
    refits = files.refits_of(estimated.stem)
    _same_file(refits, made["refits"], "refits")
    ratio = read_calibrated(files.calibrated)
    _same_ratio(ratio, estimated, refits, files)
    by_chance = bool(plugin("selector", named["kind"]).literals.get("BY_CHANCE", False))
    _same_manifest(named, manifest(scores, ratio, duplicates, k, by_chance, {}), path)
    return findings


def _inputs(path: Path) -> Mapping[str, str]:
    """Raises ``UserError`` when a file does not say what it was made from."""
    try:
        inputs = read_metadata(path)["provenance"]["inputs"]
        return {name: inputs[name] for name in ("scores", "refits")}
    except KeyError:
        raise UserError(
            "does not say what it was made from", where=path, do="delete it and run again"
        ) from None


def _same_ratio(ratio: Calibrated, scores: Path, refits: Path, files: Files) -> None:
    """Calibrate again. Raises ``Difference`` for the first example whose log ratio differs."""
    again = read_ratio(scores, refits)[0].estimate()
    found = ratio.table["log_ratio"].to_numpy()
    same = np.isclose(found, again.log_ratio, rtol=0, atol=EXPECTED_TOLERANCE)
    if not same.all():
        i = int(np.argmin(same))
        raise Difference(
            f"the log ratio of {ratio.table['id'][i].as_py()!r} is {found[i]:.9g}, derived again "
            f"{again.log_ratio[i]:.9g}",
            files.calibrated,
        )


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
    made_from = {"examples": files.examples, "embeddings": files.embeddings}
    if "layers" in scores.origin["inputs"]:
        made_from["layers"] = files.layers
    for what, path in made_from.items():
        if sha256(path) != scores.origin["inputs"].get(what):
            raise Difference(f"made from other {what} than are here", scores.path)
    if scores.embedded != read_metadata(files.embeddings):
        raise Difference(f"says otherwise than {files.embeddings} how these were made", scores.path)


def _same_model(provenance: Mapping[str, Any], scores: Scores, files: Files) -> None:
    """Compare what the manifest says of data, model and embedding with what the scores carry."""
    embedded = scores.embedded if isinstance(scores.embedded, dict) else {}
    carried = {**(embedded.get("inputs") or {}), **scores.origin["inputs"]}
    for name in sorted({*carried, *provenance["inputs"]} - set(INPUTS)):
        _told(f"provenance.inputs.{name}", carried.get(name), provenance["inputs"].get(name), files)
    made = embedded.get("settings") or {}
    _told("provenance.embedding", made.get("embedding"), provenance.get("embedding"), files)


def _told(what: str, carried: object, told: object, files: Files) -> None:
    if carried != told:
        raise Difference(
            f"{what} is {told!r}, and {carried!r} by the metadata of {files.scores}",
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


def _other_conditions(stored: Scores) -> list[str]:
    """What of versions, processor and device is another one here than it was then."""
    then = {**stored.origin.get("versions", {}), **stored.conditions}
    now = {**versions(), **conditions()}
    return [
        f"{name} {then.get(name, 'none')} then, {now.get(name, 'none')} here"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _derive(path: Path, files: Files, seed: int, beta: float, findings: Findings) -> set[Path]:
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
    return _same_scores(found, files, beta, findings)


def _same_scores(stored: Scores, files: Files, beta: float, findings: Findings) -> set[Path]:
    """Run the selector again, first the one that it derives from; the files that were derived.

    Raises ``Difference`` for the first example by the file's order.
    """
    chosen, scores = stored.origin["settings"], stored.table
    base = _base(stored, files)
    checked = {stored.path}
    if base is not None:
        checked |= _derive(base, files, chosen["seed"], beta, findings)
    pool = read_pool(
        files.embeddings,
        files.examples,
        base,
        layers=files.layers if "layers" in stored.origin["inputs"] else None,
        texts=plugin("selector", chosen["kind"]).literals.get("READS_TEXTS", False),
    )
    # What a setting left to the machine that scored is no choice of this one.
    taken = {**chosen["settings"], **stored.resolved}
    scored = load("selector", chosen["kind"]).score(pool, taken, chosen["seed"])
    others = _other_conditions(stored)
    findings.notes += [new for new in others if new not in findings.notes]
    if scores["id"].to_pylist() != pool.ids.tolist():
        raise Difference(f"its examples are not those of {files.embeddings}", stored.path)
    found = np.asarray(scores["score"].to_numpy(), dtype=np.float64)
    again, order = scored.scores, scored.order
    if not np.array_equal(found, again, equal_nan=True):
        told = _differing(pool.ids, found, again)
        # On a GPU not even the same machine promises the same bits.
        if not others and stored.conditions.get("device") == "cpu":
            raise Difference(told, stored.path)
        if np.array_equal(np.isnan(found), np.isnan(again)):
            findings.statistics.append(_alike(stored, scored, pool, files, beta, told))
        else:
            raise Difference(told, stored.path)
        order = None
    fold = [None] * len(found) if scored.fold is None else scored.fold.tolist()
    order = rank(pool, Scored(np.where(pool.forget, found, np.nan), order=order))
    ranks = np.zeros(len(found), dtype=np.int64)
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


def _differing(ids: NDArray[np.object_], found: Doubles, again: Doubles) -> str:
    same = (found == again) | (np.isnan(found) & np.isnan(again))
    i = int(np.argmin(same))
    return (
        f"the score of {ids[i]!r} is {found[i]:.9g}, derived again {again[i]:.9g}, and "
        f"{np.sum(~same)} of {len(same)} differ"
    )


def _alike(stored: Scores, scored: Scored, pool: Pool, files: Files, beta: float, told: str) -> str:
    """Compare a ranking with the one derived again under other conditions; what was found.

    The rank correlation over the forget examples, and the overlap of the two lists at ``beta``,
    have to be no further below the means of the scores' refits than twice as far as the least of
    these is; a thousandth and one text more are allowed, since refits may not differ at all. Raises
    ``Difference``.
    """
    path = files.stability_of(stored.path.stem)
    about = read_metadata(path) if path.is_file() else {}
    expected, correlation = about.get("budgets", {}).get(paths.beta(beta)), about.get("spearman")
    if expected is None or correlation is None:
        because = f"{told}, and no refits say how far another ranking may differ"
        raise Difference(because, stored.path)
    _, ranks = rankings(stored.table, [(WHOLE, 0, scored)])
    k = budget_of(beta, stored.table)
    alike, slack = spearman(*ranks) or 0.0, 1e-3
    measures = [("rank correlation", alike, correlation["mean"], correlation["least"], slack)]
    if k:
        both = float((ranks <= k).all(axis=0).sum()) / k
        overlaps = expected["expected_overlap"], expected["least_overlap"], 1 / k
        measures.append(("overlap of the list", both, *overlaps))
    parts = []
    for name, value, mean, least, slack in measures:
        bound = mean - 2 * (mean - least) - slack
        parts.append(f"{name} {value:.4f} (with another seed {mean:.4f}, allowed from {bound:.4f})")
        if value < bound:
            raise Difference(f"{told}; {', '.join(parts)}", stored.path)
    return f"{stored.path.stem}: {told}; {', '.join(parts)}"


def _same_stability(named: Mapping[str, Any], scores: pa.Table, files: Files) -> None:
    """Compare the table of stability, and what the manifest says of it, with what follows from the
    scores and the refits that it was made from."""
    _same_file(files.stability, named["provenance"]["inputs"]["stability"], "stability")
    refits = paths.under(files.root, paths.REFITS, **files.run, selector=files.scores.stem)
    made = read_metadata(files.stability).get("provenance", {})
    _same_file(refits, made["inputs"]["refits"], "refits")
    again = of_table(read_table(refits, schemas.REFITS))
    _, told = stability(*rankings(scores, again), [named["beta"]])
    wanted = {"rankings": told["rankings"], **told["budgets"][paths.beta(named["beta"])]}
    for key, value in wanted.items():
        _derived(f"stability.{key}", named["stability"].get(key), value, files.manifest)


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
    _derived("verdict", found.get("verdict"), wanted["verdict"], path)
    for name in ("also_retain", "expected"):
        _nested(name, found.get(name), wanted[name], path)


def _nested(what: str, found: Any, wanted: Any, path: Path) -> None:
    """Compare a value, or those of a mapping one by one. What is withheld is null."""
    if not isinstance(wanted, dict):
        _derived(what, found, wanted, path)
        return
    for key, value in wanted.items():
        _nested(f"{what}.{key}", found.get(key) if isinstance(found, dict) else None, value, path)


def _derived(what: str, found: Any, wanted: Any, path: Path) -> None:
    numbers = isinstance(found, float | int) and isinstance(wanted, float)
    same = abs(found - wanted) <= EXPECTED_TOLERANCE if numbers else found == wanted
    if not same:
        raise Difference(f"{what} is {found}, derived again {wanted}", path)
