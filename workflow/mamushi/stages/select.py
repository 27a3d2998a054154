"""From embeddings to a ranking, and to what is removed at each budget."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mamushi.config import grid
from mamushi.config.kinds import Settings, setting
from mamushi.config.selectors import kind_of, selector_settings, why_baseline
from mamushi.errors import other_examples
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi.registry import plugin, reading_modules
from mamushi.running.identity import reachable_modules
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages._models import Cell

if TYPE_CHECKING:
    from mamushi.selection.pool import Pool


class Score(Settings):
    """A selector and the seed; ``rooms`` are modules of rooms that take part in any dataset."""

    PLUGIN = ("selector", "kind")
    selector: str
    kind: str = setting("selectors.{selector}.kind")
    settings: dict[str, Any] = setting(selector_settings)
    seed: int
    rooms: tuple[str, ...] = setting(
        lambda config: reading_modules(*config["datasets"].values()), default=()
    )


def score(
    *,
    examples: Input,
    embeddings: Input,
    base: Input | None = None,
    out: Output,
    settings: Score,
    job: Job,
) -> None:
    """Rank the forget set by one selector, once for all budgets. ``base`` are the scores of the
    selector that this one derives from. The metadata say how well the score separates the domains
    (AUC) and, for synthetic data, follows the truth (Spearman)."""
    from mamushi.selection.scores import read_pool

    selector = plugin("selector", settings.kind)
    pool = read_pool(embeddings, examples, base, texts=selector.reads_texts)
    for module in reachable_modules(selector.code.__name__):
        import_module(module)
    rank_pool(job, pool)


def rank_pool(job: Job, pool: Pool) -> None:
    """Rank a pool by a job's selector, and write its scores; print what the ranking alone took."""
    from mamushi.selection.metrics import score_details
    from mamushi.selection.scores import score_pool, scores_table

    files, settings = job.files, job.settings
    wall, cpu = time.perf_counter(), time.process_time()
    scored = score_pool(settings.kind, pool, settings.settings, settings.seed)
    table = scores_table(pool, scored)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{settings.selector}: ranked in {wall:.4f} s, {cpu:.4f} s of CPU", flush=True)
    metadata = {
        "provenance": job.origin,
        # Carried along, so that a removal list names its model without opening the embeddings.
        "embedded": parquet.read_metadata(files["embeddings"]),
        "details": score_details(pool, scored),
        # How documents were divided, if they were.
        "windows": parquet.read_metadata(files["examples"]).get("windows"),
    }
    parquet.write_table(files["out"], schemas.SCORES, table, metadata=metadata)


class RefitsSettings(Score):
    """Those of the scores, and the numbers of refits."""

    whole: int = setting("evidence.refits.whole")
    halves: int = setting("evidence.refits.halves")


def refits(
    *,
    examples: Input,
    embeddings: Input,
    base: Input | None = None,
    out: Output,
    settings: RefitsSettings,
    job: Job,
) -> None:
    """Score again by one selector, with other seeds and on halves of the examples. This shows how
    far chance decides a ranking, and the estimator's part in intervals. No list rests on it."""
    from mamushi.selection.refits import make_refits, read_refits, refits_table
    from mamushi.selection.scores import read_pool

    texts = plugin("selector", settings.kind).reads_texts
    pool = read_pool(embeddings, examples, texts=texts)
    how = (settings.kind, settings.settings, settings.seed, settings.whole, settings.halves)
    table = refits_table(pool, make_refits(pool, *how, read_refits(base)))
    parquet.write_table(out, schemas.REFITS, table, metadata={"provenance": job.origin})


class Remove(Settings):
    """A list depends on what it reads and the budget alone."""

    beta: float = setting(lambda config, beta: float(beta))


def remove(
    *,
    examples: Input,
    scores: Input,
    duplicates: Input,
    out: Output,
    settings: Remove,
    job: Job,
) -> None:
    """List the examples to remove at one budget: the top of a ranking, with all their copies, what
    the ids are, and the digest of every text that goes."""
    import pyarrow as pa

    from mamushi.selection.removals import budget_of, removal_list, text_digests

    ranking = parquet.read_table(scores, schemas.SCORES)
    copies = parquet.read_table(duplicates, schemas.DUPLICATES)
    about = parquet.read_metadata(duplicates)
    ranked = parquet.read_metadata(scores)["provenance"]["inputs"]["examples"]
    # Duplicates are beside all of which a seed may have drawn some.
    pool = parquet.read_metadata(examples).get("drawn", job.origin)["inputs"]["examples"]
    read = job.origin["inputs"]["examples"]
    for path, digest, of in ((examples, read, ranked), (duplicates, about["examples"], pool)):
        if digest != of:
            raise other_examples(path, scores)
    # Empty where the budget is less than one text, as one between two budgets of a sweep may be.
    table = removal_list(ranking, copies, budget_of(settings.beta, ranking))
    digests = text_digests(examples, table["id"].to_pylist())
    table = table.append_column("text_sha256", pa.array(digests, pa.string()))
    metadata = {"provenance": job.origin, "rows": about["rows"]}
    parquet.write_table(out, schemas.REMOVALS, table, metadata=metadata)


class Stability(Settings):
    """Budgets of all lists."""

    budgets: list[float] = setting(grid.budgets)


def stability(
    *,
    examples: Input,
    duplicates: Input,
    scores: Input,
    ranked: Input | None = None,
    refits: Input | None = None,
    out: Output,
    settings: Stability,
    job: Job,
) -> None:
    """Say how often each forget text is in a selector's list, by its scores and their refits, and
    in the metadata how well these scores tell the domains apart and what else they follow.
    ``ranked`` is another ranking than the scores', where lists are the top of that."""
    from mamushi.data.labels import read_texts
    from mamushi.evidence.calibration import read_scores
    from mamushi.evidence.ranking import refit_ranks, stability_columns
    from mamushi.evidence.verdict import separation

    table, refitted = parquet.read_table(scores, schemas.SCORES), read_scores(scores, refits)
    ranking = parquet.read_table(ranked, schemas.SCORES) if ranked else table
    columns, metadata = stability_columns(*refit_ranks(ranking, refitted.refits), settings.budgets)
    separates = separation(refitted, read_texts(examples, table["id"], duplicates))
    metadata |= {"provenance": job.origin, "separation": separates}
    parquet.write_table(out, schemas.STABILITY, columns, metadata=metadata)


class Manifests(Cell):
    """A selector, why it is there for comparison alone, if so, whether it ranks by chance, and the
    budgets."""

    selector: str
    kind: str = setting("selectors.{selector}.kind")
    settings: dict[str, Any] = setting(selector_settings)
    compared: str | None = setting(why_baseline)
    by_chance: bool = setting(lambda config, selector: kind_of(config, selector).by_chance)
    budgets: list[float] = setting(grid.budgets)


def manifests(
    *,
    examples: Input,
    scores: Input,
    calibrated: Input,
    stability: Input,
    duplicates: Input,
    out: list[Output],
    settings: Manifests,
    job: Job,
) -> None:
    """Write the manifest of a selector's removal list at every budget, one file a budget: what it
    was made from, its digest, the removal and preservation to expect of it by the calibrated ratio,
    how much of it a second run would list, and what follows."""
    import pyarrow.compute as pc

    from mamushi.evidence.manifest import manifest, read_calibrated
    from mamushi.selection.removals import budget_of, digest_of_ids, text_digests

    ranking, ranked = parquet.read_table(scores, schemas.SCORES), parquet.read_metadata(scores)
    sizes = [budget_of(beta, ranking) for beta in settings.budgets]
    first = ranking.filter(pc.less_equal(ranking["rank"], max(sizes))).sort_by("rank")
    texts = text_digests(examples, first["id"].to_pylist())
    ratio, stable = read_calibrated(calibrated), parquet.read_metadata(stability)
    copies = parquet.read_table(duplicates, schemas.DUPLICATES)
    embedded, scored = ranked["embedded"], ranked["provenance"]
    inputs = {**embedded["inputs"], **scored["inputs"], **job.origin["inputs"]}
    origin = {**job.origin, "inputs": inputs, "embedding": embedded["settings"]["embedding"]}
    head = {
        **settings.cell,
        **settings.model_dump(include={"selector", "kind", "settings"}),
        "provenance": origin,
        **({"windows": ranked["windows"]} if ranked.get("windows") else {}),
        "rows": parquet.read_metadata(duplicates)["rows"],
    }
    is_for: Any = settings.model_dump(include={"compared", "by_chance"})
    for path, beta, k in zip(out, settings.budgets, sizes, strict=True):
        listed = {"rankings": stable["rankings"], **stable["budgets"][paths.beta(beta)]}
        named = {**head, "beta": beta, "stability": listed}
        named["texts_sha256"] = digest_of_ids(texts[:k])
        write_json(path, manifest(ranking, ratio, copies, k, named, stable["separation"], **is_for))
