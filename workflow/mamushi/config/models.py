# ruff: noqa: F403, F405
"""The keys of ``training`` and of what stands under ``models``; see ``sections``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from mamushi.config.kinds import *


class Lora(Section):
    """The adapters of the method lora."""

    rank: Count = 16  #: Rank of each adapter.
    alpha: Positive = 32.0  #: Alpha over rank is what an adapter's product counts.
    dropout: Below = 0.0  #: Share of an adapter's inputs that training leaves out.
    #: Layers that get one, such as q_proj; null for all linear ones but the head.
    target_modules: Annotated[list[str], SOME, DISTINCT] | None = None


class Method(Section):
    """How parameters are trained."""

    #: partial trains what the keys below say, as the paper does; lora low-rank adapters; full all.
    #: Unlearning takes the same method.
    method: Literal["partial", "lora", "full"] = "partial"
    lora: Lora = Lora()


class Trained(Method):
    """Which parameters are trained."""

    trained_blocks: Natural = 3  #: Last blocks to train.
    train_input_embedding: bool = True  #: Train the embedding.
    train_output_head: bool = True  #: Train the output head.


class AdamW(Section):
    """What all trainings have of their optimizer."""

    epsilon: Positive = 1.0e-8  #: AdamW's epsilon.
    weight_decay: NotNegative = 0.01  #: AdamW's weight decay.


class Shortened(Section):
    """How much of a text is read."""

    max_length: Length = 128  #: Tokens kept of a text.


class Training(Trained, AdamW, Shortened):
    """Fine-tuning of all models, in floor(epochs * texts / batch_size) steps."""

    epochs: Positive = 5.0  #: Passes over the texts.
    batch_size: Count = 32  #: Texts a step.
    learning_rate: Positive = 5.0e-5  #: AdamW's peak learning rate.
    betas: Decays = listed(0.9, 0.999)  #: AdamW's decay rates of the two moments.
    #: Learning rate after the warm-up; linear and cosine end at 0.
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: Natural = 0  #: Steps of linear warm-up.
    gradient_clip: Positive | None = None  #: Largest gradient norm; null for no clipping.
    #: Of the forward pass. What is trained keeps fp32 weights and optimizer states either way.
    precision: Precision = "bf16"
    #: by_data counts steps from the texts that remain, as the paper does; matched trains every
    #: budget for as many steps as beta 0; aligned also reads each text in the same step as beta 0.
    steps: Literal["by_data", "matched", "aligned"] = "by_data"


class TrainedOtherwise(Section):
    """A model that is trained in a way of its own."""

    #: Settings of `training` that differ for this model.
    training: Training = Training()


class HubModel(TrainedOtherwise):
    """A causal language model from a local folder or the hub."""

    source: PlaceOrNull  #: Local folder, or an id on the hub such as google/gemma-2-2b.
    #: Commit on the hub. A hub model must have one; a local folder needs none.
    revision: Commit | None = None
    #: The model has already been trained on the data; it is the embedder as it is.
    contaminated: bool = False
    #: For a contaminated model, the clean one, by its name, from which retraining starts.
    base: Name | None = None


class Pretraining(Section):
    """What the model reads before it is contaminated."""

    datasets: Names  #: Datasets of this configuration; the tokenizer is trained on them as well.
    section: SectionName = "contamination"  #: Section of these datasets.
    #: Domains of this section.
    domains: Annotated[list[Literal["forget", "retain"]], SOME, DISTINCT] = listed(
        "forget", "retain"
    )
    epochs: Positive = 4.0  #: Passes over the texts.
    batch_size: Count = 8  #: Rows a step.
    learning_rate: Positive = 0.002  #: Peak; after the warm-up it falls to 0 along a cosine.
    max_length: Length = 128  #: Tokens in a row, into which texts are packed.
    seed: Seed = 0  #: Seed of the weights and of the order of the texts.


class TinyModel(TrainedOtherwise):
    """A small model that the workflow builds, gives a tokenizer and pretrains."""

    family: Literal["llama", "qwen2", "gemma2"]  #: Architecture.
    contaminated: Literal[False] = False  #: Never; the workflow contaminates it itself.
    hidden_size: Count = 64  #: Width of the model.
    layers: Count = 4  #: Transformer blocks.
    heads: Count = 4  #: Query heads.
    key_value_heads: Count = 2  #: Key-value heads; divides heads.
    intermediate_size: Count = 192  #: Width of the MLP.
    vocabulary_size: Annotated[int, Ge(260)] = 2048  #: Of the byte-level BPE tokenizer.
    max_positions: Length = 256  #: Longest input.
    pretraining: Pretraining


class Vectors(Section):
    """A vector for each text of the inference section, under its id."""

    id: str = "id"  #: Column with the texts' ids.
    vector: str = "vector"  #: Column with the vectors, lists; of safetensors, the tensor's name.
    #: A Parquet file; or shards, a folder or a pattern of .parquet or of .safetensors, with the ids
    #: of X.safetensors, one a line, in X.txt.
    path: Annotated[
        Annotated[str, StringConstraints(pattern=r"\.(parquet|pq|safetensors)$|^(.*/)?[^/.]+$")]
        | None,
        RESOLVED,
    ] = None
    #: In place of a file: vectors of so many numbers by the words alone, the leading components of
    #: the ranked texts' tf-idf. 128 are enough.
    words: Count | None = None

    def __post_init__(self) -> None:
        if self.path is not None and self.words is not None:
            raise ValueError("path and words exclude each other")


class EmbeddingsModel(Section):
    """Embeddings that were made elsewhere, in place of a model."""

    contaminated: Literal[True] = True  #: Always; nothing is trained.
    embeddings: Vectors


def sort_of(model: Mapping[str, Any]) -> type[Section]:
    """Return the section that a model's definition is one of, by the keys that it has."""
    sorts: dict[str, type[Section]]
    sorts = {"family": TinyModel, "embeddings": EmbeddingsModel}
    return next((sort for key, sort in sorts.items() if key in model), HubModel)
