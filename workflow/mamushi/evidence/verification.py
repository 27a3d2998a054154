"""Verify that a removal list is what its manifest says: derive it again from the embeddings.

The first difference is named in the order in which things are made: examples, embeddings, settings
and seed, code, scores, ranking, list, stability, manifest. What lies further down differs because
of it. Scores that a selector derives from, and those that estimate the log-density ratio, are
derived again as well. So to verify a list costs as much as to run all of these selectors.

Derived under the conditions that the scores record (processor, a CPU as the device, versions), they
have to be equal to the last bit, whatever the number of threads or cores. A setting that was left
to the machine, as the precision of the MLP is by default, is taken as it was then, and what a CPU
scored is derived on a CPU. Under other conditions sums round otherwise, and the training of a
network carries that into the ranking. Scores that differ there are compared statistically, with
what their own refits say of a ranking with another seed. All else stays exact: ids, digests, ranks
by the scores, list, budget, manifest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256
from mamushi.artifacts.provenance import versions
from mamushi.artifacts.tables import FORGET, RETAIN, read_metadata, read_table
from mamushi.errors import UserError
from mamushi.evidence.calibration import read_ratio
from mamushi.evidence.manifest import manifest, read_calibrated
from mamushi.evidence.stability import rankings, stability
from mamushi.registry import load, plugin
from mamushi.running.identity import digest as code_digest
from mamushi.running.machine import conditions
from mamushi.selection.metrics import spearman
from mamushi.selection.pool import Scored, rank, read_pool
from mamushi.selection.refits import WHOLE, of_table
from mamushi.selection.removals import budget_of, removals

Doubles = NDArray[np.float64]

TOLERANCE = 1e-6
"""Of the expected removal and preservation, in nats."""


class Difference(UserError):
    """Something that was made and what is derived again are not the same."""

    def __init__(self, what: str, where: object) -> None:
        super().__init__(what, where=where, do="the list is not what its manifest says")


class Inputs(msgspec.Struct):
    """The digests of files that a manifest was made from."""

    examples: str
    embeddings: str
    scores: str
    calibrated: str
    stability: str
    duplicates: str


class Provenance(msgspec.Struct):
    """The origin of a manifest."""

    inputs: Inputs
    settings: dict[str, Any]


class Manifest(msgspec.Struct):
    """The fields of a manifest without which its list cannot be derived again."""

    dataset: str
    model: str
    seed: int
    selector: str
    kind: str
    settings: dict[str, Any]
    beta: Annotated[float, msgspec.Meta(ge=0, le=1)]
    provenance: Provenance
    conditions: dict[str, Any]
    stability: dict[str, Any]
    expected: dict[str, Any]


class Settings(msgspec.Struct):
    """The settings of scores without which they cannot be derived again."""

    selector: str
    kind: str
    settings: dict[str, Any]
    seed: int
    code: Any = None


class Origin(msgspec.Struct):
    """The origin of scores."""

    settings: Settings
    inputs: dict[str, Any]
    versions: dict[str, Any] = {}


@dataclass
class Scores:
    """A file of scores. ``resolved`` are the settings that were left to the machine (a precision
    ``auto``), as that machine took them; ``conditions`` are what that machine was; ``literals`` is
    what the module of the selector says of itself."""

    path: Path
    origin: Origin
    embedded: object
    table: pa.Table
    resolved: Mapping[str, Any]
    conditions: Mapping[str, Any]
    literals: Mapping[str, Any]


@dataclass
class Findings:
    """Findings about a list without a difference. ``notes`` are the conditions that are other
    ones here than then; ``statistics`` what could be compared statistically alone."""

    notes: list[str] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """The run of a manifest: the results folder ``root``, and ``cell``, the values of wildcards."""

    manifest: Path
    removals: Path
    root: Path
    cell: Mapping[str, str]
    beta: float
    findings: Findings = field(default_factory=Findings)

    def at(self, pattern: str, **other: str) -> Path:
        """Return the path of an artifact of the run, by default of the manifest's own selector."""
        return paths.under(self.root, pattern, **{**self.cell, **other})


def _run_of(path: Path, named: Manifest, root: Path | None) -> Run:
    """Find the run of a manifest by where it lies in a results folder, or by its names in ``root``.
    Raises ``UserError`` where it lies in none, and there is no ``root``."""
    own = {"selector": named.selector, "beta": paths.beta(named.beta)}
    if root is not None:
        cell = {"dataset": named.dataset, "model": named.model, "seed": str(named.seed), **own}
        listed = paths.under(root, paths.REMOVAL, **cell)
        return Run(path, listed, root, cell, named.beta)
    place = paths.wildcards(paths.MANIFEST, path.resolve())
    if place is None:
        raise UserError("lies in no results folder", where=path, do="name that folder with --root")
    found = Path(place.pop("root"))
    return Run(path, path.with_suffix(".parquet"), found, {**place, **own}, named.beta)


def verify(path: Path, root: Path | None = None) -> Findings:
    """Derive the list of a manifest again.

    Raises ``Difference`` that names the first difference, and ``UserError`` when the manifest is
    damaged or a file that it needs is missing.
    """
    content = read_json(path)
    named = _read(content, path)
    run = _run_of(path, named, root)
    inputs = named.provenance.inputs
    _check_file(run.at(paths.EXAMPLES), inputs.examples, "examples")
    _check_file(run.at(paths.EMBEDDINGS), inputs.embeddings, "embeddings")
    ranked = _read_scores(run.at(paths.SCORES))
    scores = ranked.table
    _check_settings(named, ranked, run)
    _check_sources(ranked, run)
    _check_model(content["provenance"], ranked, run)
    by_scores = f"by the metadata of {ranked.path}"
    _check("conditions", named.conditions, ranked.conditions, path, by_scores)
    _check_code(ranked.path, ranked.origin.settings.code, "score", named.kind)
    listed = read_metadata(run.removals).get("provenance", {}).get("settings", {})
    _check_code(run.removals, listed.get("code"), "remove")
    _check_code(path, named.provenance.settings.get("code"), "manifests")
    if ranked.conditions.get("device") == "cpu":
        # Read when torch looks for a GPU for the first time.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    derived = _derive(ranked, run)
    _check_file(ranked.path, inputs.scores, "scores")
    _check_file(run.at(paths.DUPLICATES), inputs.duplicates, "duplicates")
    duplicates = read_table(run.at(paths.DUPLICATES), schemas.DUPLICATES)
    k = budget_of(named.beta, scores)
    _check_list(read_table(run.removals, schemas.REMOVALS), removals(scores, duplicates, k), run)
    _check_stability(named, scores, run)
    _check_file(run.at(paths.CALIBRATED), inputs.calibrated, "calibrated ratios")
    _check_ratio(run, derived, ranked.origin.settings.seed)
    ratio = read_calibrated(run.at(paths.CALIBRATED))
    by_chance = bool(ranked.literals.get("BY_CHANCE", False))
    again = manifest(scores, ratio, duplicates, k, by_chance, {})
    for key, value in again.items():
        _check(key, content.get(key), value, path, tolerance=TOLERANCE)
    return run.findings


def _read(content: Any, path: Path) -> Manifest:
    try:
        named = msgspec.convert(content, Manifest)
    except msgspec.ValidationError as error:
        raise UserError(
            f"is no removal manifest: {error}", where=path, do="give the .json beside a list"
        ) from None
    if named.beta != round(named.beta, 2):
        do = "a budget has at most two decimals"
        raise UserError(f"beta is {named.beta}", where=path, do=do)
    return named


def _read_scores(path: Path) -> Scores:
    """Raises ``UserError`` when the file is missing, damaged or does not say how it was made."""
    stored = read_metadata(path)
    try:
        origin = msgspec.convert(stored.get("provenance"), Origin)
    except msgspec.ValidationError:
        raise UserError(
            "does not say what it was made from", where=path, do="delete it and score again"
        ) from None
    return Scores(
        path,
        origin,
        stored.get("embedded"),
        read_table(path, schemas.SCORES),
        (stored.get("details") or {}).get("resolved") or {},
        stored.get("conditions") or {},
        plugin("selector", origin.settings.kind).literals,
    )


def _check(
    what: str,
    found: Any,
    wanted: Any,
    where: Path,
    source: str = "derived again",
    tolerance: float = 0.0,
) -> None:
    """Raise ``Difference`` where a value, or one in a mapping, is not what it is by ``source``."""
    if isinstance(wanted, dict) and source == "derived again":
        for key, value in wanted.items():
            inner = found.get(key) if isinstance(found, dict) else None
            _check(f"{what}.{key}", inner, value, where, source, tolerance)
        return
    numbers = isinstance(found, float | int) and isinstance(wanted, float)
    if not (abs(found - wanted) <= tolerance if numbers else found == wanted):
        raise Difference(f"{what} is {found!r}, but {wanted!r} {source}", where)


def _check_column(name: str, found: pa.Table, wanted: Iterable[Any], where: Path) -> None:
    rows = zip(found["id"].to_pylist(), found[name].to_pylist(), wanted, strict=True)
    for key, ours, theirs in rows:
        _check(f"the {name} of {key!r}", ours, theirs, where)


def _check_file(path: Path, wanted: object, what: str) -> None:
    found = sha256(path)
    if found != wanted:
        seen = f"sha256 {found[:12]}... here, {str(wanted)[:12]}... there"
        raise Difference(f"other {what} than the manifest names: {seen}", path)


def _check_settings(named: Manifest, scores: Scores, run: Run) -> None:
    made = scores.origin.settings
    for key in ("dataset", "model", "seed"):
        own = str(getattr(named, key))
        _check(key, own, run.cell[key], run.manifest, "by the folder that it lies in")
    for key in ("selector", "kind", "seed"):
        _check(key, getattr(made, key), getattr(named, key), scores.path, "by the manifest")
    for key in sorted({*named.settings, *made.settings}):
        what, wanted = f"setting {key!r} of the selector", named.settings.get(key)
        _check(what, made.settings.get(key), wanted, scores.path, "by the manifest")
    twice = named.provenance.settings
    for key in ("dataset", "model", "seed", "selector", "kind", "settings"):
        own = getattr(named, key)
        _check(key, own, twice.get(key, own), run.manifest, "by its own provenance")


def _check_sources(scores: Scores, run: Run) -> None:
    """Compare what scores were made from, and the model they carry along, with the files here."""
    made_from = {"examples": paths.EXAMPLES, "embeddings": paths.EMBEDDINGS}
    if "layers" in scores.origin.inputs:
        made_from["layers"] = paths.LAYERS
    for what, pattern in made_from.items():
        if sha256(run.at(pattern)) != scores.origin.inputs.get(what):
            raise Difference(f"made from other {what} than are here", scores.path)
    embeddings = run.at(paths.EMBEDDINGS)
    if scores.embedded != read_metadata(embeddings):
        raise Difference(f"says otherwise than {embeddings} how these were made", scores.path)


def _check_model(provenance: Mapping[str, Any], scores: Scores, run: Run) -> None:
    """Compare what the manifest says of data, model and embedding with what the scores carry."""
    embedded = scores.embedded if isinstance(scores.embedded, dict) else {}
    carried = {**(embedded.get("inputs") or {}), **scores.origin.inputs}
    given = provenance["inputs"]
    names = sorted({*carried, *given} - {*Inputs.__struct_fields__})
    pairs = {f"inputs.{name}": (given.get(name), carried.get(name)) for name in names}
    embedding = (embedded.get("settings") or {}).get("embedding")
    pairs["embedding"] = (provenance.get("embedding"), embedding)
    for name, (ours, theirs) in pairs.items():
        source = f"by the metadata of {scores.path}"
        _check(f"provenance.{name}", ours, theirs, run.manifest, source)


def _check_code(path: Path, found: object, stage: str, kind: str | None = None) -> None:
    """Compare the digest of the code of a stage, and of a selector, with that of the code here."""
    modules = [] if kind is None else [plugin("selector", kind).module]
    here = code_digest(f"mamushi.stages.{stage}", *modules)
    if found != here:
        seen = f"digest {found} of stage {stage!r}, here it is {here}"
        raise Difference(f"made by another version of the code: {seen}", path)


def _other_conditions(stored: Scores) -> list[str]:
    """Return which of versions, processor and device are others here than they were then."""
    then = {**stored.origin.versions, **stored.conditions}
    now = {**versions(), **conditions()}
    return [
        f"{name} {then.get(name, 'none')} then, {now.get(name, 'none')} here"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _derive_at(path: Path, run: Run, seed: int) -> set[Path]:
    """Derive scores again that no manifest describes: those at ``path``, with their own settings.

    Returns all files of scores that were. Raises ``Difference`` when they are of another selector
    or seed than their place, or as ``_derive`` does.
    """
    found = _read_scores(path)
    made = found.origin.settings
    _check("selector", made.selector, path.stem, path, "by its run")
    _check("seed", made.seed, seed, path, "by its run")
    _check_sources(found, run)
    _check_code(path, made.code, "score", made.kind)
    return _derive(found, run)


def _derive(stored: Scores, run: Run) -> set[Path]:
    """Run the selector again, first the one that it derives from; the files that were derived.

    Raises ``Difference`` for the first example by the file's order.
    """
    made, table = stored.origin.settings, stored.table
    checked = {stored.path}
    base = _base(stored, run)
    if base is not None:
        checked |= _derive_at(base, run, made.seed)
    embeddings = run.at(paths.EMBEDDINGS)
    pool = read_pool(
        embeddings,
        run.at(paths.EXAMPLES),
        base,
        layers=run.at(paths.LAYERS) if "layers" in stored.origin.inputs else None,
        texts=stored.literals.get("READS_TEXTS", False),
    )
    # What a setting left to the machine that scored is no choice of this one.
    settings = {**made.settings, **stored.resolved}
    scored = load("selector", made.kind).score(pool, settings, made.seed)
    others = _other_conditions(stored)
    run.findings.notes += [new for new in others if new not in run.findings.notes]
    if table["id"].to_pylist() != pool.ids.tolist():
        raise Difference(f"its examples are not those of {embeddings}", stored.path)
    found = np.asarray(table["score"].to_numpy(), dtype=np.float64)
    order = scored.order
    if not np.array_equal(found, scored.scores, equal_nan=True):
        what = _differing(pool.ids, found, scored.scores)
        # On a GPU not even the same machine promises the same bits.
        exact = not others and stored.conditions.get("device") == "cpu"
        if exact or not np.array_equal(np.isnan(found), np.isnan(scored.scores)):
            raise Difference(what, stored.path)
        run.findings.statistics.append(_compare(stored, scored, run, what))
        order = None
    order = rank(pool, Scored(np.where(pool.forget, found, np.nan), order=order))
    ranks = np.full(len(found), None, dtype=object)
    ranks[order] = range(1, len(order) + 1)
    fold = [None] * len(found) if scored.fold is None else scored.fold.tolist()
    domain = np.where(pool.forget, FORGET, RETAIN).tolist()
    for name, wanted in (("domain", domain), ("fold", fold), ("rank", ranks.tolist())):
        _check_column(name, table, wanted, stored.path)
    return checked


def _differing(ids: NDArray[np.object_], found: Doubles, again: Doubles) -> str:
    same = (found == again) | (np.isnan(found) & np.isnan(again))
    i = int(np.argmin(same))
    return (
        f"the score of {ids[i]!r} is {found[i]:.9g}, derived again {again[i]:.9g}, and "
        f"{np.sum(~same)} of {len(same)} differ"
    )


def _compare(stored: Scores, scored: Scored, run: Run, what: str) -> str:
    """Compare a ranking with the one derived again under other conditions, and say what was found.

    The rank correlation over the forget examples, and the overlap of the two lists at the budget,
    have to be no further below the means of the scores' refits than twice as far as the least of
    these is; a thousandth and one text more are allowed, since refits may not differ at all. Raises
    ``Difference``.
    """
    path = run.at(paths.STABILITY, selector=stored.path.stem)
    about = read_metadata(path) if path.is_file() else {}
    expected = about.get("budgets", {}).get(paths.beta(run.beta))
    correlation = about.get("spearman")
    if expected is None or correlation is None:
        because = f"{what}, and no refits say how far another ranking may differ"
        raise Difference(because, stored.path)
    _, ranks = rankings(stored.table, [(WHOLE, 0, scored)])
    k = budget_of(run.beta, stored.table)
    alike = spearman(*ranks) or 0.0
    measures = [("rank correlation", alike, correlation["mean"], correlation["least"], 1e-3)]
    if k:
        both = float((ranks <= k).all(axis=0).sum()) / k
        overlaps = expected["expected_overlap"], expected["least_overlap"], 1 / k
        measures.append(("overlap of the list", both, *overlaps))
    for name, value, mean, least, slack in measures:
        bound = mean - 2 * (mean - least) - slack
        what += f"; {name} {value:.4f} (with another seed {mean:.4f}, allowed from {bound:.4f})"
        if value < bound:
            raise Difference(what, stored.path)
    return f"{stored.path.stem}: {what}"


def _base(stored: Scores, run: Run) -> Path | None:
    """Return the scores that a selector derives from, None for one that derives from no other."""
    derives = stored.literals.get("DERIVES")
    if derives is None:
        return None
    name = stored.origin.settings.settings.get(derives)
    if not isinstance(name, str):
        what = f"does not say which selector it derives from (setting {derives!r})"
        raise UserError(what, where=stored.path, do="delete it and score again")
    base = run.at(paths.SCORES, selector=name)
    _check_file(base, stored.origin.inputs.get("base"), "scores to derive from")
    return base


def _check_list(found: pa.Table, wanted: pa.Table, run: Run) -> None:
    _check("number of examples", len(found), len(wanted), run.removals)
    both = zip(found["id"].to_pylist(), wanted["id"].to_pylist(), strict=True)
    for place, (ours, theirs) in enumerate(both, start=1):
        _check(f"place {place}", ours, theirs, run.removals, f"by {run.at(paths.SCORES)}")
    for name in ("rank", "score", "copies"):
        _check_column(name, found, wanted[name].to_pylist(), run.removals)


def _check_stability(named: Manifest, scores: pa.Table, run: Run) -> None:
    """Compare the table of stability, and what the manifest says of it, with what follows from the
    scores and the refits that it was made from."""
    path, refits = run.at(paths.STABILITY), run.at(paths.REFITS)
    _check_file(path, named.provenance.inputs.stability, "stability")
    _check_file(refits, read_metadata(path)["provenance"]["inputs"]["refits"], "refits")
    again = rankings(scores, of_table(read_table(refits, schemas.REFITS)))
    _, about = stability(*again, [named.beta])
    wanted = {"rankings": about["rankings"], **about["budgets"][paths.beta(named.beta)]}
    _check("stability", named.stability, wanted, run.manifest, tolerance=TOLERANCE)


def _check_ratio(run: Run, derived: set[Path], seed: int) -> None:
    """Calibrate again, after the scores that this was done with are derived, too.

    Raises ``Difference`` for the first example whose log ratio differs.
    """
    path = run.at(paths.CALIBRATED)
    inputs = read_metadata(path)["provenance"]["inputs"]
    wanted = inputs["scores"]
    folder = run.at(paths.SCORES).parent
    scores = next((p for p in sorted(folder.glob("*.parquet")) if sha256(p) == wanted), None)
    if scores is None:
        what = "no scores here are those that the expected values were estimated with"
        raise Difference(f"{what} (sha256 {wanted[:12]}...)", folder)
    if scores not in derived:
        _derive_at(scores, run, seed)
    refits = run.at(paths.REFITS, selector=scores.stem)
    _check_file(refits, inputs["refits"], "refits")
    again = read_ratio(scores, refits)[0].estimate().log_ratio
    table = read_calibrated(path).table
    same = np.isclose(table["log_ratio"].to_numpy(), again, rtol=0, atol=TOLERANCE)
    if not same.all():
        i = int(np.argmin(same))
        what = f"the log ratio of {table['id'][i].as_py()!r}"
        _check(what, table["log_ratio"][i].as_py(), float(again[i]), path)
