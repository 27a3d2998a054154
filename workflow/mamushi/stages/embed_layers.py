"""Embed the inference section at other depths of the contaminated model.

Apart from ``embed``: no ranking by the last layer depends on which other layers one asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mamushi.configuration.models import Trained
from mamushi.configuration.sections import Pooling
from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages import embed
from mamushi.stages._settings import Config, Settings, embedder, part

if TYPE_CHECKING:
    from transformers import PreTrainedModel

GPU = True


class EmbedLayers(Settings):
    """Settings of the stage ``embed_layers``, as those of ``embed``."""

    embedding: Pooling
    training: Trained | None
    depths: list[float]


def settings(config: Config, model: str) -> EmbedLayers:
    return EmbedLayers(
        embedding=part(Pooling, config["embedding"]),
        training=embedder(config, model),
        depths=config["embedding"]["depths"],
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files(embed.Files):
    """A language model, and texts as its tokens."""


def run(files: Files, settings: EmbedLayers, job: Job) -> None:
    """Write ``layers``: a column of vectors for each of ``depths``, or a shard of them."""
    from mamushi.artifacts import schemas
    from mamushi.lm.embed import at_depth
    from mamushi.selection.pool import column_of

    def layers_of(model: PreTrainedModel) -> dict[str, int]:
        blocks = int(model.config.num_hidden_layers)
        return {column_of(depth): at_depth(depth, blocks) for depth in settings.depths}

    embed.embed_at(files, settings, job, schemas.LAYERS, layers_of)
