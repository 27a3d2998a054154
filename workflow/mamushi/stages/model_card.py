"""Check a model from a folder or the hub, and write the card by which later stages find it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from mamushi.configuration import grid
from mamushi.configuration.sources import MODEL_FILES, contents
from mamushi.errors import UserError
from mamushi.running.identity import digest
from mamushi.running.stage import Job, writes
from mamushi.stages._settings import Config, Settings


class ModelCard(Settings):
    """Settings of the stage ``model_card``: where the model is."""

    name: str
    source: str
    revision: str | None
    contaminated: bool
    inputs: dict[str, str] = field(default_factory=dict)


def settings(config: Config, model: str) -> ModelCard:
    definition = config["models"][model]
    keys = ("source", "revision", "contaminated")
    return ModelCard(
        name=model,
        **{key: definition[key] for key in keys},
        inputs=contents(model_files(config, model)),
        code=digest(__name__),
    )


def model_files(config: Config, model: str) -> list[str]:
    """The files of a model in a folder; none of the hub's.

    Raises ``UserError`` for what is no language model.
    """
    if reason := grid.no_language_model(config, model):
        raise UserError(reason)
    definition = config["models"][model]
    folder = os.path.expanduser(definition["source"] or "")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(MODEL_FILES)]


@dataclass(frozen=True, kw_only=True)
class Files:
    out: Path = writes("card to write")


def run(files: Files, settings: ModelCard, job: Job) -> None:
    """Inspect the model and write its card; the files of a hub model come into the hub's cache."""
    import os

    from mamushi.artifacts.files import write_json
    from mamushi.lm import loading

    card = loading.inspect(
        settings.name,
        settings.source,
        revision=settings.revision,
        contaminated=settings.contaminated,
    )
    source = card["source"]
    if card["revision"] is None and not os.path.isabs(source):
        # As seen from the card, so that a project can be moved or copied.
        source = os.path.relpath(source, files.out.parent)
    write_json(files.out, {**card, "source": source, "provenance": job.origin})
