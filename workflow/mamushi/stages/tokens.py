"""Turn the texts of a dataset into a model's token ids, once for all later jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, Settings


class Tokens(Settings):
    """Settings of the stage ``tokens``."""

    max_length: int


def settings(config: Config) -> Tokens:
    return Tokens(**config["tokens"], code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("examples table")
    model_card: Path = reads("card of the model")
    out: Path = writes("token cache to write")


def run(files: Files, settings: Tokens, job: Job) -> None:
    """Tokenize every text of every section and write the table ``tokens``."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table
    from mamushi.lm import loading, tokens

    card = loading.read_card(files.model_card)
    loading.check_length(settings.max_length, card["max_positions"], str(files.model_card))
    tokens.write_tokens(
        files.out,
        read_table(files.examples, schemas.EXAMPLES, ["id", "text"]),
        loading.open_tokenizer(files.model_card),
        max_length=settings.max_length,
        vocabulary_size=card["vocabulary_size"],
        provenance=job.origin,
    )
