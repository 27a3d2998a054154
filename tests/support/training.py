"""Fine-tuning of tiny models as tests begin it."""

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from mamushi.lm import device, sharding
from mamushi.lm.batches import steps
from mamushi.lm.parameters import freeze
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import minimize_nll
from tests.support.models import TRAINING


def train(
    language_model: PreTrainedModel,
    texts: TokenSet,
    state: Path | None = None,
    fingerprint: str = "",
    total: int | None = None,
    **changes: Any,
) -> tuple[PreTrainedModel, dict[str, list[float]]]:
    settings: dict[str, Any] = TRAINING | changes
    freeze(language_model, settings)
    accelerator = device.accelerator(str(settings["precision"]))
    device.place_model(language_model, str(settings["precision"]), accelerator.device)
    sharding.shard(language_model, accelerator)
    if total is None:
        total = steps(len(texts), settings["batch_size"], settings["epochs"])
    how: dict[str, Any] = {"micro_batch_size": settings["micro_batch_size"], "total": total}
    how |= {"seed": 1, "checkpoint": state and Checkpoint(state, fingerprint)}
    log = minimize_nll(language_model, texts, settings, accelerator=accelerator, **how)
    return language_model, log
