"""What to expect of each removal list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mamushi.config import grid
from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running.stage import Files, Job, reads, writes
from mamushi.stages._settings import Cell, SelectorSettings, comparison, setting
from mamushi.stages.select import share_asked

if TYPE_CHECKING:
    import pyarrow as pa


class Manifests(SelectorSettings, Cell):
    """A selector, why it is there for comparison alone, if so, and the budgets."""

    compared: str | None = setting(comparison, default=None)
    budgets: list[float] = setting(grid.budgets)


class ManifestsFiles(Files):
    examples: Path = reads("the examples table")
    scores: Path = reads("scores to rank by")
    calibrated: Path = reads("the calibrated log-density ratio")
    stability: Path = reads("how often each text is listed by the scores' refits")
    duplicates: Path = reads("the dataset's duplicates table")
    out: list[Path] = writes("manifests (JSON), one a budget")


def manifests(files: ManifestsFiles, settings: Manifests, job: Job) -> None:
    """Write the manifest of a selector's removal list at every budget.

    A manifest says what the list was made from (digests of data, model, embeddings and scores,
    which the scores carry along; settings; versions), the digest of the list itself, and the
    removal and preservation to expect of it, predicted from the scores of a selector that estimates
    the log-density ratio, how much of it a second run would list, and what follows for this list.
    It is apart from the list, because these estimates change no list: another one must not retrain
    anything.
    """
    from mamushi.evidence.manifest import Ranked, manifest, read_calibrated
    from mamushi.io import schemas
    from mamushi.io.files import write_json
    from mamushi.io.tables import read_metadata, read_table
    from mamushi.selection.removals import budget_of, digest

    scores = read_table(files.scores, schemas.SCORES)
    k = max(budget_of(beta, scores) for beta in settings.budgets)
    texts = _digests_of(files.examples, scores, k)
    ratio = read_calibrated(files.calibrated)
    duplicates = read_table(files.duplicates, schemas.DUPLICATES)
    stable = read_metadata(files.stability)
    ranked, estimated = read_metadata(files.scores), read_metadata(files.calibrated)
    sources = ranked["provenance"]["inputs"]
    for name in ("examples", "embeddings"):
        if estimated["sources"][name] != sources[name]:
            raise UserError(
                f"was made from other {name} than {files.scores}",
                where=files.calibrated,
                do="delete both and score again",
            )
    embedded = ranked["embedded"]
    origin = {
        **job.origin,
        "inputs": {**embedded["inputs"], **sources, **job.origin["inputs"]},
        "embedding": embedded["settings"]["embedding"],
    }
    by_chance = bool(plugin("selector", settings.kind).literals.get("BY_CHANCE", False))
    selector = {"selector": settings.selector, "kind": settings.kind, "settings": settings.settings}
    for path, beta in zip(files.out, settings.budgets, strict=True):
        top = Ranked.at(beta, settings.selector, stable, settings.compared, by_chance)
        about = {**settings.cell, **selector, "beta": beta, "provenance": origin}
        about |= {"conditions": ranked["conditions"], "stability": top.listed}
        about |= {"windows": ranked["windows"]} if ranked.get("windows") else {}
        k = budget_of(beta, scores)
        rows = read_metadata(files.duplicates)["rows"]
        about |= {"rows": rows, "texts_sha256": digest(texts[:k])}
        write_json(path, manifest(scores, ratio, duplicates, k, top, about))


def _digests_of(examples: Path, ranking: pa.Table, k: int) -> list[str]:
    """Return the digests of the first ``k`` texts of a ranking, by rank."""
    import pyarrow.compute as pc

    from mamushi.io import schemas
    from mamushi.io.tables import read_groups
    from mamushi.selection.removals import text_digests

    first = ranking.filter(pc.less_equal(ranking["rank"], k)).sort_by("rank")
    groups = read_groups(examples, schemas.EXAMPLES, ["id", "text"])
    return text_digests(groups, first["id"].to_pylist())


class CorpusManifest(SelectorSettings, Cell):
    """A selector, why it is there for comparison alone, if so, and the budget."""

    beta: float = setting(share_asked)
    compared: str | None = setting(comparison, default=None)


class CorpusManifestFiles(Files):
    examples: Path = reads("the examples table")
    duplicates: Path = reads("the dataset's duplicates table")
    scores: Path = reads("scores of the examples and of the corpus")
    refits: Path | None = reads("their refits, if there are any", default=None)
    posterior: Path = reads("the ranking of the corpus")
    out: Path = writes("the manifest (JSON) to write")


def corpus_manifest(files: CorpusManifestFiles, settings: CorpusManifest, job: Job) -> None:
    """Write the manifest of a list of a corpus in which nobody marked the domain.

    It says what `manifests` does of other lists; in the place of what a removal is expected to do
    stands what share of the list is of the domain, and what share of the domain the list has.
    """
    from mamushi.io import paths, schemas
    from mamushi.io.files import write_json
    from mamushi.io.tables import read_metadata, read_table
    from mamushi.selection.removals import budget_of, digest
    from mamushi_extras.unlabelled.corpus import manifest_of

    ranked, made = read_metadata(files.scores), read_metadata(files.posterior)
    if made["provenance"]["inputs"]["scores"] != job.origin["inputs"]["scores"]:
        do = "delete both and rank again"
        what = f"was made from other scores than {files.scores}"
        raise UserError(what, where=files.posterior, do=do)
    embedded = ranked["embedded"]
    sources = {**embedded["inputs"], **ranked["provenance"]["inputs"], **job.origin["inputs"]}
    embedding = embedded["settings"]["embedding"]
    named = {
        **settings.cell,
        **{"selector": settings.selector, "kind": settings.kind, "settings": settings.settings},
        **{"beta": settings.beta, "conditions": ranked["conditions"]},
        **({"windows": ranked["windows"]} if ranked.get("windows") else {}),
        "provenance": {**job.origin, "inputs": sources, "embedding": embedding},
    }
    at = {
        **{paths.EXAMPLES: files.examples, paths.DUPLICATES: files.duplicates},
        **{paths.SCORES: files.scores, paths.POSTERIOR: files.posterior},
    }
    known = manifest_of(at.__getitem__, files.refits, settings.beta, settings.compared)
    ranking = read_table(files.posterior, schemas.POSTERIOR)
    texts = _digests_of(files.examples, ranking, budget_of(settings.beta, ranking))
    rows = read_metadata(files.duplicates)["rows"]
    write_json(files.out, {**named, **known, "rows": rows, "texts_sha256": digest(texts)})
