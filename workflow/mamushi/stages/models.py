"""Models that exist, the token ids of the texts for a model, and the texts as its vectors."""

import os
import shutil
from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import NO_PATH, Config, Settings, setting
from mamushi.config.sections import Embedding
from mamushi.errors import UserError
from mamushi.io.digests import content_digests, fingerprint
from mamushi.io.domains import INFERENCE
from mamushi.io.files import atomic, read_json, write_json
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages._models import open_arm

GPU = ("embed",)
MODEL_FILES = (".json", ".model", ".txt", ".jinja", ".safetensors")
"""Endings of the files in a model's folder that are looked at."""
BLOCK = 131072
"""Texts: eight row groups of a table of vectors, 1 GiB at a width of 4,096."""


def model_files(config: Config, model: str) -> list[str]:
    """Return the files of a model in a folder; none of the hub's."""
    if reason := grid.no_language_model(config, model):
        raise UserError(reason)
    folder = os.path.expanduser(config["models"][model]["source"] or "")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(MODEL_FILES)]


class ModelCard(Settings):
    """Where the model is."""

    name: str = setting(lambda config, model: model)
    source: str | None = setting("models.{model}.source")
    revision: str | None = setting("models.{model}.revision")
    contaminated: bool = setting("models.{model}.contaminated")
    inputs: dict[str, str] = setting(
        lambda config, model: content_digests(model_files(config, model))
    )


def model_card(*, out: Output, settings: ModelCard, job: Job) -> None:
    """Check a model from a folder or the hub, whose files come into the hub's cache, and write the
    card by which later stages find it."""
    from mamushi.lm import loading

    if settings.source is None:
        raise UserError(NO_PATH, where=f"models.{settings.name}.source")
    how: Any = settings.model_dump(include={"name", "source", "revision", "contaminated"})
    card = loading.inspect(**how)
    source = card["source"]
    if card["revision"] is None and not os.path.isabs(source):
        # As seen from the card, so that a project can be moved or copied.
        source = os.path.relpath(source, out.parent)
    write_json(out, {**card, "source": source, "provenance": job.origin})


class TokensSettings(Settings):
    """Longest text in tokens."""

    max_length: int = setting("tokens.max_length")


def tokens(
    *, examples: Input, model_card: Input, out: Output, settings: TokensSettings, job: Job
) -> None:
    """Turn the texts of a dataset into a model's token ids, of each no more than the model has
    positions for. Where the dataset says so, of conversations what the assistant says is marked,
    which alone is then predicted."""
    from mamushi.lm import loading
    from mamushi.lm.tokens import CHATS, write_tokens

    card = read_json(model_card)
    write_tokens(
        out,
        parquet.read_table(examples, schemas.EXAMPLES, ["id", "text", CHATS]),
        loading.open_tokenizer(model_card),
        max_length=settings.max_length,
        positions=card["max_positions"],
        vocabulary_size=card["vocabulary_size"],
        provenance=job.origin,
        answers=parquet.read_metadata(examples).get("assistant_only_loss", False),
    )


class Embed(Settings):
    """How the contaminated model embeds."""

    embedding: Embedding = setting("embedding")


def embed(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    out: Output,
    settings: Embed,
    job: Job,
) -> None:
    """Embed the inference section with the contaminated model. A killed job goes on behind the last
    block of texts that it has finished."""
    import numpy as np

    from mamushi.io.tables import ranked_columns, write_vectors
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens, subset

    how = settings.embedding
    model, accelerator = open_arm(model_card, trained, None, how.precision)
    texts = read_tokens(tokens, examples, INFERENCE, how.max_length)
    has_bos = parquet.read_metadata(tokens)["bos_token_id"] is not None
    options: Any = {"batch_tokens": job.execution.batch_tokens, "accelerator": accelerator}
    options |= how.model_dump(include={"pooling", "layer"}) | {
        "skip_first": how.skip_bos and has_bos
    }
    folder = out.with_name(f"{out.name}.blocks")
    finished, name = {*folder.glob("*.npy")}, fingerprint(job.origin)

    def block(start: int) -> Any:
        path = folder / f"{name}-{start}.npy"
        if path in finished:
            return np.load(path)
        rows = np.arange(start, min(start + BLOCK, len(texts)))
        vectors = embed(model, subset(texts, rows), **options)
        if len(texts) > BLOCK:
            with atomic(path) as draft, draft.open("wb") as file:
                np.save(file, vectors)
        return vectors

    blocks = map(block, range(0, len(texts), BLOCK))
    write_vectors(out, blocks, ranked_columns(examples), job.origin)
    accelerator.wait_for_everyone()
    shutil.rmtree(folder, ignore_errors=True)
