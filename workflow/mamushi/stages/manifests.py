"""What to expect of each removal list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config import grid
from mamushi.config.kinds import setting
from mamushi.config.selectors import comparison, kind_of, selector_settings
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import Cell

if TYPE_CHECKING:
    import pyarrow as pa


class Manifests(Cell):
    """A selector, why it is there for comparison alone, if so, whether it ranks by chance, and the
    budgets."""

    selector: str
    kind: str = setting("selectors.{selector}.kind")
    settings: dict[str, Any] = setting(selector_settings)
    compared: str | None = setting(comparison)
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
    """Write the manifest of a selector's removal list at every budget, one file a budget.

    It says what the list was made from (digests of data, model, embeddings and scores; settings;
    versions), the digest of the list itself, the removal and preservation to expect of it by the
    scores of the selector that estimates the log-density ratio, how much of it a second run would
    list, and what follows for this list. It is apart from the list, because these estimates change
    no list: another one must not retrain anything.
    """
    from mamushi.evidence.manifest import manifest, read_calibrated
    from mamushi.io import paths, schemas
    from mamushi.io.files import write_json
    from mamushi.io.tables import read_metadata, read_table
    from mamushi.selection.removals import budget_of, digest_of_ids

    ranking, ranked = read_table(scores, schemas.SCORES), read_metadata(scores)
    sizes = [budget_of(beta, ranking) for beta in settings.budgets]
    texts = text_digests_of(examples, ranking, max(sizes))
    ratio, stable = read_calibrated(calibrated), read_metadata(stability)
    copies = read_table(duplicates, schemas.DUPLICATES)
    inputs = {**ranked["embedded"]["inputs"], **ranked["provenance"]["inputs"]}
    head = {
        **settings.cell,
        **{"selector": settings.selector, "kind": settings.kind, "settings": settings.settings},
        "provenance": {
            **job.origin,
            "inputs": {**inputs, **job.origin["inputs"]},
            "embedding": ranked["embedded"]["settings"]["embedding"],
        },
        "conditions": ranked["conditions"],
        **({"windows": ranked["windows"]} if ranked.get("windows") else {}),
        "rows": read_metadata(duplicates)["rows"],
    }
    is_for: Any = {"compared": settings.compared, "by_chance": settings.by_chance}
    for path, beta, k in zip(out, settings.budgets, sizes, strict=True):
        listed = {"rankings": stable["rankings"], **stable["budgets"][paths.beta(beta)]}
        named = {**head, "beta": beta, "stability": listed}
        named["texts_sha256"] = digest_of_ids(texts[:k])
        write_json(path, manifest(ranking, ratio, copies, k, named, stable["separation"], **is_for))


def text_digests_of(examples: Path, ranking: pa.Table, k: int) -> list[str]:
    """Return the digests of the first ``k`` texts of a ranking, by rank."""
    import pyarrow.compute as pc

    from mamushi.io import schemas
    from mamushi.io.tables import read_groups
    from mamushi.selection.removals import text_digests

    first = ranking.filter(pc.less_equal(ranking["rank"], k)).sort_by("rank")
    groups = read_groups(examples, schemas.EXAMPLES, ["id", "text"])
    return text_digests(groups, first["id"].to_pylist())
