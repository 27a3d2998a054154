"""Models that exist, and the token ids of the texts for each."""

from __future__ import annotations

import os
from pathlib import Path

from mamushi.config import grid
from mamushi.config.sources import MODEL_FILES, contents
from mamushi.errors import UserError
from mamushi.running.stage import Files, Job, reads, writes
from mamushi.stages._settings import Config, Settings, setting


def model_files(config: Config, model: str) -> list[str]:
    """Return the files of a model in a folder; none of the hub's.

    Raises ``UserError`` for what is no language model.
    """
    if reason := grid.no_language_model(config, model):
        raise UserError(reason)
    definition = config["models"][model]
    folder = os.path.expanduser(definition["source"] or "")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(MODEL_FILES)]


class ModelCard(Settings):
    """Where the model is."""

    name: str = setting(lambda model: model)
    source: str | None = setting("models.{model}.source")
    revision: str | None = setting("models.{model}.revision")
    contaminated: bool = setting("models.{model}.contaminated")
    inputs: dict[str, str] = setting(
        lambda config, model: contents(model_files(config, model)), default_factory=dict
    )


class CardFiles(Files):
    out: Path = writes("card to write")


def model_card(files: CardFiles, settings: ModelCard, job: Job) -> None:
    """Check a model from a folder or the hub, and write the card by which later stages find it.

    The files of a hub model come into the hub's cache.
    """
    from mamushi.io.files import write_json
    from mamushi.lm import loading

    card = loading.inspect(
        settings.name,
        # A path that is not set stops a run before its first job.
        settings.source or "",
        revision=settings.revision,
        contaminated=settings.contaminated,
    )
    source = card["source"]
    if card["revision"] is None and not os.path.isabs(source):
        # As seen from the card, so that a project can be moved or copied.
        source = os.path.relpath(source, files.out.parent)
    write_json(files.out, {**card, "source": source, "provenance": job.origin})


class Convert(Settings):
    """The model of a GGUF file."""

    name: str = setting(lambda model: model)
    contaminated: bool = setting("models.{model}.contaminated")
    inputs: dict[str, str] = setting(
        lambda config, model: contents([config["models"][model]["source"]])
    )


class ConvertFiles(Files):
    gguf: Path = reads("the GGUF file")
    out: Path = writes("the model's folder")


def convert(files: ConvertFiles, settings: Convert, job: Job) -> None:
    """Make a model's folder of a GGUF file: its weights as plain numbers, its tokenizer, its card.

    The card, written when all is there, says under ``gguf`` what it was made from.
    """
    from mamushi.io.files import write_json
    from mamushi.lm import dequantize, loading

    model, tokenizer, about = dequantize.open_gguf(files.gguf)
    card = loading.save_base(
        files.out, settings.name, model, tokenizer, contaminated=settings.contaminated
    )
    write_json(files.out / "card.json", {**card, "gguf": about, "provenance": job.origin})


class Tokens(Settings):
    """Longest text in tokens."""

    max_length: int = setting("tokens.max_length")


class TokensFiles(Files):
    examples: Path = reads("examples table")
    model_card: Path = reads("card of the model")
    out: Path = writes("token cache to write")


def tokens(files: TokensFiles, settings: Tokens, job: Job) -> None:
    """Turn the texts of a dataset into a model's token ids, once for all later jobs."""
    from mamushi.io import schemas
    from mamushi.io.tables import read_table
    from mamushi.lm import loading
    from mamushi.lm.tokens import write_tokens

    card = loading.read_card(files.model_card)
    loading.check_length(settings.max_length, card["max_positions"], str(files.model_card))
    write_tokens(
        files.out,
        read_table(files.examples, schemas.EXAMPLES, ["id", "text"]),
        loading.open_tokenizer(files.model_card),
        max_length=settings.max_length,
        vocabulary_size=card["vocabulary_size"],
        provenance=job.origin,
    )
