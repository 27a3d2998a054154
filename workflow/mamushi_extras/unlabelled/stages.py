"""A corpus in which nobody marked the domain: its ranking, and what to expect of its lists."""

from typing import Any

from mamushi.config.kinds import Settings, setting
from mamushi.config.selectors import selector_settings, why_baseline
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
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
    """Rank a corpus in which nobody marked the domain: each text by its probability to be of it.
    The file's metadata say what share of the corpus is."""
    from mamushi_extras.unlabelled.corpus import read_corpus
    from mamushi_extras.unlabelled.schemas import POSTERIOR

    table = parquet.read_table(scores, schemas.SCORES)
    corpus = read_corpus(table, examples, **settings.model_dump())
    metadata = {"provenance": job.origin, "share": corpus.share(), "likely": corpus.likely}
    parquet.write_table(out, POSTERIOR, corpus.table(table), metadata=metadata)


class CorpusManifest(Cell):
    """A selector, why it is there for comparison alone, if so, and the budget."""

    selector: str
    kind: str = setting("selectors.{selector}.kind")
    settings: dict[str, Any] = setting(selector_settings)
    compared: str | None = setting(why_baseline)
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
    """Write the manifest of a list from an unlabelled corpus: which share of the list is of the
    domain, and which share of the domain is on the list."""
    from mamushi.data.labels import read_texts
    from mamushi.evidence.calibration import read_scores
    from mamushi.evidence.ranking import refit_ranks, stability_columns
    from mamushi.evidence.verdict import separation, unit_of
    from mamushi.io import paths
    from mamushi.io.files import write_json
    from mamushi.selection.removals import budget_of, digest_of_ids, removal_list, text_digests
    from mamushi_extras.unlabelled.corpus import cell_notes, manifest_of_corpus, read_corpus
    from mamushi_extras.unlabelled.schemas import POSTERIOR

    about, beta = parquet.read_metadata(scores), settings.beta
    scored = parquet.read_table(scores, schemas.SCORES)
    ranking = parquet.read_table(posterior, POSTERIOR)
    refitted = read_scores(scores, refits)
    _, summary = stability_columns(*refit_ranks(ranking, refitted.refits), [beta])
    stable = {"rankings": summary["rankings"], **summary["budgets"][paths.beta(beta)]}
    texts = read_texts(examples, scored["id"].to_pylist(), duplicates)
    known = parquet.read_metadata(posterior)["provenance"]["settings"]
    corpus = read_corpus(scored, examples, hits=known["hits"], fair=known["fair"])
    copies = parquet.read_table(duplicates, schemas.DUPLICATES)
    listed = removal_list(ranking, copies, budget_of(beta, ranking))
    digests = text_digests(examples, listed["id"].to_pylist())
    embedded, separates = about["embedded"], separation(refitted, texts)
    inputs = {**embedded["inputs"], **about["provenance"]["inputs"], **job.origin["inputs"]}
    origin = {**job.origin, "inputs": inputs, "embedding": embedded["settings"]["embedding"]}
    manifest = {
        **settings.model_dump(exclude={"compared"}),
        **({"windows": about["windows"]} if about.get("windows") else {}),
        "provenance": origin,
        **manifest_of_corpus(corpus, listed, separates, stable, settings.compared, unit_of(about)),
        "rows": parquet.read_metadata(duplicates)["rows"],
        "texts_sha256": digest_of_ids(digests),
    }
    write_json(out, {**manifest, "shown": [*cell_notes(manifest).items()]})
