"""Fine-tuning of tiny models as tests begin it."""

from pathlib import Path

from transformers import PreTrainedModel

from mamushi.lm import device, sharding
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import finetune
from tests.support.models import TRAINING


def train(
    language_model: PreTrainedModel,
    texts: TokenSet,
    state: Path | None = None,
    fingerprint: str = "",
    total: int | None = None,
    **changes: object,
) -> tuple[PreTrainedModel, dict[str, list[float]]]:
    settings = TRAINING | changes
    freeze(language_model, settings)
    accelerator = device.accelerator(str(settings["precision"]))
    device.place(language_model, str(settings["precision"]), accelerator.device)
    if accelerator.num_processes > 1:
        sharding.shard(language_model, accelerator)
    log = finetune(
        language_model,
        texts,
        settings,
        total=total,
        seed=1,
        accelerator=accelerator,
        state=state,
        fingerprint=fingerprint,
    )
    return language_model, log
