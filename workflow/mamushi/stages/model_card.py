"""Check a model from a folder or the hub, and write the card by which later stages find it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import ModelCard
from mamushi.running.stage import Job, writes


@dataclass(frozen=True, kw_only=True)
class Files:
    out: Path = writes("card to write")


def run(files: Files, chosen: ModelCard, job: Job) -> None:
    """Inspect the model and write its card; the files of a hub model come into the hub's cache."""
    import os

    from mamushi.artifacts.files import write_json
    from mamushi.lm import loading

    card = loading.inspect(
        chosen.name,
        chosen.source,
        revision=chosen.revision,
        trust_remote_code=chosen.trust_remote_code,
        contaminated=chosen.contaminated,
    )
    source = card["source"]
    if card["revision"] is None and not os.path.isabs(source):
        # As seen from the card, so that a project can be moved or copied.
        source = os.path.relpath(source, files.out.parent)
    write_json(files.out, {**card, "source": source, "provenance": job.origin})
