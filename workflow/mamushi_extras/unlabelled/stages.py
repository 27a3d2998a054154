"""A corpus in which nobody marked the domain: its ranking, and what to expect of its lists."""

from __future__ import annotations

from typing import Any

from mamushi.config.selectors import comparison, selector_settings
from mamushi.errors import UserError
from mamushi.running.stage import Input, Job, Output, Settings, setting
from mamushi.stages._models import Cell


class Posterior(Settings):
    """Whether the examples are hits of a blocklist, and what was drawn at random."""

    hits: bool = setting(lambda config, dataset: "terms" in config["datasets"][dataset]["forget"])
    fair: list[str] = setting(
        lambda config, dataset: config["datasets"][dataset]["forget"].get("fair", [])
    )


def posterior(
    *, examples: Input, scores: Input, out: Output, settings: Posterior, job: Job
) -> None:
    """Rank a corpus in which nobody marked the domain, by the scores of examples against it.

    Each text has the probability to be of the domain. The file's metadata say what share of the
    corpus is, as far as that can be known.
    """
    from mamushi.io import schemas
    from mamushi.io.tables import read_metadata, read_table, write_table
    from mamushi_extras.unlabelled.corpus import read_corpus
    from mamushi_extras.unlabelled.schemas import POSTERIOR

    table = read_table(scores, schemas.SCORES)
    corpus = read_corpus(table, examples, hits=settings.hits, fair=settings.fair)
    metadata = {
        "provenance": job.origin,
        "share": corpus.share(),
        "blocklist": corpus.blocklist(),
        "likely": corpus.likely,
        "conditions": read_metadata(scores)["conditions"],
    }
    write_table(out, POSTERIOR, corpus.table(table), metadata=metadata)


class CorpusManifest(Cell):
    """A selector, why it is there for comparison alone, if so, and the budget."""

    selector: str
    kind: str = setting("selectors.{selector}.kind")
    settings: dict[str, Any] = setting(selector_settings)
    compared: str | None = setting(comparison)
    beta: float = setting(lambda config, beta: float(beta))


def corpus_manifest(
    *,
    examples: Input,
    duplicates: Input,
    scores: Input,
    refits: Input | None = None,
    posterior: Input,
    out: Output,
    settings: CorpusManifest,
    job: Job,
) -> None:
    """Write the manifest of a list of a corpus in which nobody marked the domain.

    It says what `manifests` does of other lists; in the place of what a removal is expected to do
    stands what share of the list is of the domain, and what share of the domain the list has.
    Raises ``UserError`` for a posterior of other scores.
    """
    from mamushi.io import paths
    from mamushi.io.files import write_json
    from mamushi.io.tables import read_metadata, read_table
    from mamushi.selection.removals import budget_of, digest_of_ids
    from mamushi.stages.manifests import text_digests_of
    from mamushi_extras.unlabelled.corpus import manifest_of
    from mamushi_extras.unlabelled.schemas import POSTERIOR

    ranked, origin = read_metadata(scores), read_metadata(posterior)["provenance"]
    if origin["inputs"]["scores"] != job.origin["inputs"]["scores"]:
        do = "delete both and rank again"
        raise UserError(f"was made from other scores than {scores}", where=posterior, do=do)
    embedded = ranked["embedded"]
    inputs = {**embedded["inputs"], **ranked["provenance"]["inputs"], **job.origin["inputs"]}
    embedding = embedded["settings"]["embedding"]
    files = {
        **{paths.EXAMPLES: examples, paths.DUPLICATES: duplicates},
        **{paths.SCORES: scores, paths.POSTERIOR: posterior},
    }
    manifest = manifest_of(files.__getitem__, refits, settings.beta, settings.compared)
    ranking = read_table(posterior, POSTERIOR)
    texts = text_digests_of(examples, ranking, budget_of(settings.beta, ranking))
    head = {
        **settings.cell,
        **{"selector": settings.selector, "kind": settings.kind, "settings": settings.settings},
        **{"beta": settings.beta, "conditions": ranked["conditions"]},
        **({"windows": ranked["windows"]} if ranked.get("windows") else {}),
        "provenance": {**job.origin, "inputs": inputs, "embedding": embedding},
    }
    rows = read_metadata(duplicates)["rows"]
    write_json(out, {**head, **manifest, "rows": rows, "texts_sha256": digest_of_ids(texts)})
