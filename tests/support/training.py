"""Fine-tuning of tiny models as tests begin it."""

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from mamushi.lm import device, loading, sharding
from mamushi.lm.parameters import freeze
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import minimize_nll
from tests.support.models import TRAINING, training_of


def train(
    language_model: PreTrainedModel,
    texts: TokenSet,
    state: Path | None = None,
    fingerprint: str = "",
    total: int | None = None,
    **changes: Any,
) -> tuple[PreTrainedModel, dict[str, list[float]]]:
    settings: dict[str, Any] = TRAINING | changes
    training = training_of(settings)
    freeze(language_model, training)
    accelerator = device.accelerator(training.precision)
    loading.place_model(language_model, training.precision, accelerator.device)
    sharding.shard(language_model, accelerator)
    # So many that they make so many steps.
    examples = (total + 0.5) * training.batch_size / training.epochs if total else len(texts)
    how: dict[str, Any] = {"micro_batch_size": settings["micro_batch_size"], "examples": examples}
    how |= {"seed": 1, "checkpoint": state and Checkpoint(state, fingerprint)}
    log = minimize_nll(language_model, texts, training, accelerator=accelerator, **how)
    return language_model, log
