"""Verify that a removal list is what its manifest says: derive it again from the embeddings.

The first difference is named in the order in which things are made: examples, embeddings, settings
and seed, code, scores, ranking, list, stability, manifest. Scores that a selector derives from, and
those that estimate the log-density ratio, are derived again as well.

Derived under the conditions that the scores record (processor, a CPU as the device, versions), they
have to be equal to the last bit. A setting that was left to the machine is taken as it was then,
and what a CPU scored is derived on a CPU. Under other conditions sums round otherwise, and the
training of a network carries that into the ranking: such scores are compared statistically, with
what their own refits say of a ranking with another seed. All else stays exact.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.evidence.calibration import read_ratio
from mamushi.evidence.confounds import read_texts
from mamushi.evidence.judgement import separation
from mamushi.evidence.manifest import Ranked, manifest, read_calibrated
from mamushi.evidence.stability import rankings, stability_columns
from mamushi.io import paths, schemas
from mamushi.io.files import read_json, sha256
from mamushi.io.provenance import versions
from mamushi.io.tables import read_groups, read_metadata, read_table
from mamushi.registry import plugin
from mamushi.running.identity import of_stage
from mamushi.running.machine import conditions
from mamushi.running.stage import stages
from mamushi.selection.arrays import Doubles
from mamushi.selection.metrics import spearman
from mamushi.selection.pool import Scored, read_pool, scored_by, table_of
from mamushi.selection.refits import WHOLE_REFIT, read_refits
from mamushi.selection.removals import budget_of, removal_list, text_digests
from mamushi_extras.influence.pooling import pooled_influence
from mamushi_extras.unlabelled.corpus import manifest_of, read_corpus
from mamushi_extras.unlabelled.schemas import POSTERIOR
from mamushi_extras.verify.records import (
    Difference,
    RecordedManifest,
    RecordedScores,
    Stored,
)

_TOLERANCE = 1e-6
"""Of the expected removal and preservation, in nats."""
OWN = ("scores", "calibrated", "stability", "duplicates", "posterior", "refits")
"""Files that a manifest is made from; its other inputs are those that the scores carry along."""


@dataclass(frozen=True)
class Run:
    """The run of a manifest: the results folder ``root``, and ``cell``, the values of wildcards.

    ``notes`` are the conditions that are other ones here than then; ``statistics`` what could be
    compared statistically alone.
    """

    manifest: Path
    root: Path
    cell: Mapping[str, str]
    beta: float
    notes: list[str] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)

    def at(self, pattern: str, **wildcards: str) -> Path:
        """Return the path of an artifact of the run, by default of the manifest's own selector."""
        return paths.under(self.root, pattern, **{**self.cell, **wildcards})


def verify(path: Path) -> Run:
    """Derive the list of a manifest again, and say what was found without a difference.

    Raises ``Difference`` that names the first difference, and ``UserError`` when the manifest is
    damaged or a file that it needs is missing.
    """
    content = read_json(path)
    named = _read(content, path)
    place = paths.wildcards(paths.MANIFEST, path.resolve())
    if place is None:
        raise UserError("lies in no results folder", where=path, do="put it back beside its list")
    own_wildcards = {"selector": named.selector, "beta": paths.beta(named.beta)}
    run = Run(path, Path(place.pop("root")), {**place, **own_wildcards}, named.beta)
    inputs = named.provenance.inputs
    _check_file(run.at(paths.EXAMPLES), inputs.get("examples"), "examples")
    _check_file(run.at(paths.EMBEDDINGS), inputs.get("embeddings"), "embeddings")
    ranked = _read_scores(run.at(paths.SCORES))
    _check_sources(ranked, run)
    _check_settings(named, ranked, run)
    _check_code(ranked.path, ranked.recorded.code, _stage(ranked), _modules(ranked))
    removed = run.at(paths.REMOVAL)
    listed = read_metadata(removed).get("provenance", {}).get("settings", {})
    _check_code(removed, listed.get("code"), "remove")
    corpus = "posterior" in inputs
    written = named.provenance.settings
    _check_code(path, written.get("code"), "corpus_manifest" if corpus else "manifests")
    if ranked.stored.conditions.get("device") == "cpu":
        # Read when torch looks for a GPU for the first time.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    derived = _derive(ranked, run)
    _check_file(ranked.path, inputs.get("scores"), "scores")
    _check_file(run.at(paths.DUPLICATES), inputs.get("duplicates"), "duplicates")
    duplicates = read_table(run.at(paths.DUPLICATES), schemas.DUPLICATES)
    table = _posterior(ranked.table, run, inputs["posterior"]) if corpus else ranked.table
    k = budget_of(named.beta, table)
    listed_rows, expected = (
        read_table(removed, schemas.REMOVALS),
        removal_list(table, duplicates, k),
    )
    _check("number of examples", len(listed_rows), len(expected), removed)
    for name in ("id", "rank", "score", "copies", "copies_sha256"):
        _check_column(name, listed_rows, expected[name].to_pylist(), removed)
    examples = read_groups(run.at(paths.EXAMPLES), schemas.EXAMPLES, ["id", "text"])
    _check_column(
        "text_sha256", listed_rows, text_digests(examples, listed_rows["id"].to_pylist()), removed
    )
    if corpus:
        refits = _refits(run, content, run.cell["selector"])
        derived_manifest = manifest_of(run.at, refits, run.beta, written.get("compared"))
    else:
        derived_manifest = _of_labelled(named, ranked, duplicates, k, run, derived)
    for key, value in derived_manifest.items():
        _check(key, content.get(key), value, path)
    return run


def _posterior(scores: pa.Table, run: Run, expected: object) -> pa.Table:
    """Return the ranking of a corpus, once it is found to be what follows from the scores."""
    path = run.at(paths.POSTERIOR)
    _check_file(path, expected, "posterior")
    recorded, stored = read_metadata(path)["provenance"]["settings"], read_table(path, POSTERIOR)
    _check_code(path, recorded["code"], "posterior")
    derived = read_corpus(
        scores, run.at(paths.EXAMPLES), hits=recorded["hits"], fair=recorded["fair"]
    ).table(scores)
    _check_column("rank", stored, derived["rank"].to_pylist(), path)
    return stored


def _of_labelled(
    named: RecordedManifest,
    ranked: RecordedScores,
    duplicates: pa.Table,
    k: int,
    run: Run,
    derived: set[Path],
) -> dict[str, Any]:
    """Return what the manifest of a list of forget texts has to say."""
    separates = _check_stability(named, ranked.table, run)
    calibrated = named.provenance.inputs.get("calibrated")
    _check_file(run.at(paths.CALIBRATED), calibrated, "calibrated ratios")
    _check_ratio(run, derived, ranked.recorded.seed)
    ratio = read_calibrated(run.at(paths.CALIBRATED))
    by_chance = ranked.kind.by_chance
    compared = named.provenance.settings.get("compared")
    top = Ranked(named.selector, separates, named.stability, compared, by_chance)
    return manifest(ranked.table, ratio, duplicates, k, top, {})


def _read(content: Any, path: Path) -> RecordedManifest:
    try:
        named = msgspec.convert(content, RecordedManifest)
    except msgspec.ValidationError as error:
        problem, do = f"is no removal manifest: {error}", "give the .json beside a list"
        raise UserError(problem, where=path, do=do) from None
    if named.beta != round(named.beta, 6):
        do = "a budget has at most six decimals"
        raise UserError(f"beta is {named.beta}", where=path, do=do)
    return named


def _read_scores(path: Path) -> RecordedScores:
    """Raises ``UserError`` when the file is missing, damaged or does not say how it was made."""
    try:
        stored = msgspec.convert(read_metadata(path), Stored)
    except msgspec.ValidationError:
        problem, do = "does not say what it was made from", "delete it and score again"
        raise UserError(problem, where=path, do=do) from None
    kind = plugin("selector", stored.provenance.settings.kind)
    return RecordedScores(path, stored, read_table(path, schemas.SCORES), kind)


def _check(
    name: str, actual: Any, expected: Any, where: Path, source: str = "derived again"
) -> None:
    """Raise ``Difference`` where a value, or one in a mapping, is not what it is by ``source``."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        for key in sorted({*actual, *expected}):
            inner = f"{name}.{key}" if name else key
            _check(inner, actual.get(key), expected.get(key), where, source)
        return
    numbers = isinstance(actual, float | int) and isinstance(expected, float)
    is_rounded = numbers and source == "derived again"
    if not (abs(actual - expected) <= _TOLERANCE if is_rounded else actual == expected):
        raise Difference(f"{name} is {actual!r}, but {expected!r} {source}", where)


def _check_column(name: str, table: pa.Table, expected: Iterable[Any], where: Path) -> None:
    for key, ours, theirs in zip(
        table["id"].to_pylist(), table[name].to_pylist(), expected, strict=True
    ):
        if ours != theirs:
            problem = f"the {name} of {key!r} is {ours!r}, but {theirs!r} derived again"
            raise Difference(problem, where)


def _check_file(path: Path, expected: object, name: str) -> None:
    actual = sha256(path)
    if actual != expected:
        seen = f"sha256 {actual[:12]}... here, {str(expected)[:12]}... there"
        raise Difference(f"other {name} than the manifest names: {seen}", path)


def _check_settings(named: RecordedManifest, scores: RecordedScores, run: Run) -> None:
    """Compare what the manifest says of run, settings, data and model with what the scores do."""
    cell = {"dataset": named.dataset, "model": named.model, "seed": str(named.seed)}
    lies = {key: run.cell[key] for key in cell}
    _check("", cell, lies, run.manifest, "by the folder that it lies in")
    keys = ("selector", "kind", "seed", "settings")
    actual, expected = (
        {key: getattr(fields, key) for key in keys} for fields in (scores.recorded, named)
    )
    _check("", actual, expected, scores.path, "by the manifest")
    origin = named.provenance
    twice = {key: origin.settings.get(key) for key in ("dataset", "model", *keys)}
    whole = {key: getattr(named, key) for key in twice}
    _check("", whole, twice, run.manifest, "by its own provenance")
    embedded = scores.stored.embedded or {}
    # Vectors made elsewhere are read with the duplicates, as the manifest is.
    by_manifest, carried = (
        {name: value for name, value in inputs.items() if name not in OWN}
        for inputs in (origin.inputs, {**embedded.get("inputs", {}), **scores.inputs})
    )
    by_scores = f"by the metadata of {scores.path}"
    _check("provenance.inputs", by_manifest, carried, run.manifest, by_scores)
    embedding = embedded.get("settings", {}).get("embedding")
    _check("provenance.embedding", origin.embedding, embedding, run.manifest, by_scores)
    _check("conditions", named.conditions, scores.stored.conditions, run.manifest, by_scores)


def _check_sources(scores: RecordedScores, run: Run) -> None:
    """Compare what scores were made from, and the model they carry along, with the files here."""
    made_from = {"examples": paths.EXAMPLES, "embeddings": paths.EMBEDDINGS}
    if "layers" in scores.inputs:
        made_from["layers"] = paths.LAYERS
    if "influence" in scores.inputs:
        made_from["influence"] = paths.INFLUENCE
    for name, pattern in made_from.items():
        if sha256(run.at(pattern)) != scores.inputs.get(name):
            raise Difference(f"made from other {name} than are here", scores.path)
    embeddings = run.at(paths.EMBEDDINGS)
    if scores.stored.embedded != read_metadata(embeddings):
        raise Difference(f"says otherwise than {embeddings} how these were made", scores.path)


def _stage(scores: RecordedScores) -> str:
    """Return the stage that made some scores."""
    return "influence_scores" if "influence" in scores.inputs else "score"


def _modules(scores: RecordedScores) -> list[str]:
    """Return the modules that made some scores beside their stage."""
    return [plugin("selector", scores.recorded.kind).module, *scores.recorded.rooms]


def _check_code(path: Path, recorded: object, stage: str, modules: Sequence[str] = ()) -> None:
    """Compare the digest of the code of a stage, and of other modules, with that of the code
    here."""
    here = of_stage(stages()[stage.replace("_", "-")].entry, *modules)
    if recorded != here:
        seen = f"digest {recorded} of stage {stage!r}, here it is {here}"
        raise Difference(f"made by another version of the code: {seen}", path)


def _other_conditions(stored: Stored) -> list[str]:
    """Return which of versions, processor and device are others here than they were then."""
    then = {**stored.provenance.versions, **stored.conditions}
    now = {**versions(), **conditions()}
    return [
        f"{name} {then.get(name, 'none')} then, {now.get(name, 'none')} here"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _derive_at(path: Path, run: Run, seed: int) -> set[Path]:
    """Derive scores again that no manifest describes: those at ``path``, with their own settings.

    Raises ``Difference`` when they are of another selector or seed, or as ``_derive`` does.
    """
    scores = _read_scores(path)
    _check("selector", scores.recorded.selector, path.stem, path, "by its run")
    _check("seed", scores.recorded.seed, seed, path, "by its run")
    _check_sources(scores, run)
    _check_code(path, scores.recorded.code, _stage(scores), _modules(scores))
    return _derive(scores, run)


def _derive(scores: RecordedScores, run: Run) -> set[Path]:
    """Run the selector again, first the one that it derives from; the files that were derived.

    Raises ``Difference`` for the first example by the file's order.
    """
    recorded, table, stored = scores.recorded, scores.table, scores.stored
    checked = {scores.path}
    base = _base(scores, run)
    if base is not None:
        checked |= _derive_at(base, run, recorded.seed)
    pool = read_pool(
        run.at(paths.EMBEDDINGS),
        run.at(paths.EXAMPLES),
        base,
        layers=run.at(paths.LAYERS) if "layers" in scores.inputs else None,
        texts=scores.kind.reads_texts,
    )
    if "influence" in scores.inputs:
        # Taken as it is, as the embeddings are: no training is done again.
        measured = pooled_influence(run.at(paths.INFLUENCE), pool.ids.tolist())
        pool = pool.with_columns(**measured)
    # What a setting left to the machine that scored is no choice of this one.
    settings = {**recorded.settings, **((stored.details or {}).get("resolved") or {})}
    scored = scored_by(recorded.kind, pool, settings, recorded.seed)
    differing = _other_conditions(stored)
    run.notes.extend(new for new in differing if new not in run.notes)
    _check("examples", table["id"].to_pylist() == pool.ids.tolist(), True, scores.path)
    stored_scores = np.asarray(table["score"].to_numpy(), dtype=np.float64)
    order = scored.order
    if not np.array_equal(stored_scores, scored.scores, equal_nan=True):
        difference = _differing(pool.ids, stored_scores, scored.scores)
        # On a GPU not even the same machine promises the same bits.
        exact = not differing and stored.conditions.get("device") == "cpu"
        if exact or not np.array_equal(np.isnan(stored_scores), np.isnan(scored.scores)):
            raise Difference(difference, scores.path)
        run.statistics.append(_compare(scores, scored, run, difference))
        order = None
    expected = table_of(
        pool, Scored(np.where(pool.forget, stored_scores, np.nan), scored.fold, order)
    )
    for name in ("domain", "fold", "rank"):
        _check_column(name, table, expected[name].to_pylist(), scores.path)
    return checked


def _differing(ids: NDArray[np.object_], stored: Doubles, derived: Doubles) -> str:
    same = (stored == derived) | (np.isnan(stored) & np.isnan(derived))
    i = int(np.argmin(same))
    return (
        f"the score of {ids[i]!r} is {stored[i]:.9g}, derived again {derived[i]:.9g}, and "
        f"{np.sum(~same)} of {len(same)} differ"
    )


def _compare(scores: RecordedScores, scored: Scored, run: Run, difference: str) -> str:
    """Compare a ranking with the one derived again under other conditions, and say what was found.

    The rank correlation over the forget examples, and the overlap of the two lists at the budget,
    have to be no further below the means of the scores' refits than twice as far as the least of
    these is; a thousandth and one text more are allowed, since refits may not differ at all. Raises
    ``Difference``.
    """
    path = run.at(paths.STABILITY, selector=scores.path.stem)
    measured = read_metadata(path) if path.is_file() else {}
    expected = measured.get("budgets", {}).get(paths.beta(run.beta))
    correlation = measured.get("spearman")
    if expected is None or correlation is None:
        because = f"{difference}, and no refits say how far another ranking may differ"
        raise Difference(because, scores.path)
    _, ranks = rankings(scores.table, [(WHOLE_REFIT, 0, scored)])
    k = budget_of(run.beta, scores.table)
    alike = spearman(*ranks) or 0.0
    measures = [("rank correlation", alike, correlation["mean"], correlation["least"], 1e-3)]
    if k:
        both = float((ranks <= k).all(axis=0).sum()) / k
        overlaps = expected["expected_overlap"], expected["least_overlap"], 1 / k
        measures.append(("overlap of the list", both, *overlaps))
    for name, value, mean, least, slack in measures:
        bound = mean - 2 * (mean - least) - slack
        difference += (
            f"; {name} {value:.4f} (with another seed {mean:.4f}, allowed from {bound:.4f})"
        )
        if value < bound:
            raise Difference(difference, scores.path)
    return f"{scores.path.stem}: {difference}"


def _base(scores: RecordedScores, run: Run) -> Path | None:
    """Return the scores that a selector derives from, None for one that derives from no other."""
    derives = scores.kind.derives
    if derives is None:
        return None
    base = run.at(paths.SCORES, selector=str(scores.recorded.settings.get(derives)))
    _check_file(base, scores.inputs.get("base"), "scores to derive from")
    return base


def _check_stability(named: RecordedManifest, scores: pa.Table, run: Run) -> dict[str, Any]:
    """Compare the table of stability, and what the manifest says of it, with what follows from the
    scores and the refits that it was made from. Return how well these separate the domains."""
    path = run.at(paths.STABILITY)
    _check_file(path, named.provenance.inputs.get("stability"), "stability")
    refitted = read_refits(_refits(run, read_metadata(path), run.cell["selector"]))
    _, stable = stability_columns(*rankings(scores, refitted), [named.beta])
    expected = {"rankings": stable["rankings"], **stable["budgets"][paths.beta(named.beta)]}
    _check("stability", named.stability, expected, run.manifest)
    texts = read_texts(run.at(paths.EXAMPLES), run.at(paths.DUPLICATES), scores["id"].to_pylist())
    return separation(scores, refitted, texts)


def _refits(run: Run, metadata: Mapping[str, Any], selector: str) -> Path | None:
    """Return the refits of a selector that something was made from by its metadata, once they are
    found to be these; None where nothing was refitted."""
    inputs, path = metadata["provenance"]["inputs"], run.at(paths.REFITS, selector=selector)
    if "refits" not in inputs:
        return None
    _check_file(path, inputs["refits"], "refits")
    return path


def _check_ratio(run: Run, derived: set[Path], seed: int) -> None:
    """Calibrate again, after the scores that this was done with are derived, too.

    Raises ``Difference`` for the first example whose log ratio differs.
    """
    path = run.at(paths.CALIBRATED)
    inputs = read_metadata(path)["provenance"]["inputs"]
    expected = inputs["scores"]
    folder = run.at(paths.SCORES).parent
    scores = next((p for p in sorted(folder.glob("*.parquet")) if sha256(p) == expected), None)
    if scores is None:
        problem = "no scores here are those that the expected values were estimated with"
        raise Difference(f"{problem} (sha256 {expected[:12]}...)", folder)
    if scores not in derived:
        _derive_at(scores, run, seed)
    refits = _refits(run, read_metadata(path), scores.stem)
    log_ratios = read_ratio(scores, refits)[0].estimate().log_ratio
    table = read_calibrated(path).table
    rows = zip(
        table["id"].to_pylist(), table["log_ratio"].to_pylist(), log_ratios.tolist(), strict=True
    )
    for key, ours, theirs in rows:
        _check(f"the log ratio of {key!r}", ours, theirs, path)
