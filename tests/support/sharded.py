"""What a model does that may be cut over processes, to compare with one that is whole."""

from functools import partial
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.lm import device, loading, sharding
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.training import finetune
from mamushi.unlearning.relearning import relearn
from tests.support.models import ADAPTERS, TRAINING, model, token_set
from tests.support.training import train


def trained_nll(folder: Path, accelerator: Accelerator) -> NDArray[np.float64]:
    """NLL of texts under the model of a folder after two steps of training, opened from its
    files."""
    settings = TRAINING | {"trained_blocks": 1, "learning_rate": 1e-3}
    card = folder / "card.json"
    opened = loading.open_placed(card, [], "bf16", accelerator, partial(freeze, settings=settings))
    finetune(opened, token_set(8), settings, total=2, seed=0, accelerator=accelerator)
    return text_nll(opened, token_set(9), 20, accelerator).nll


def halves() -> dict[str, list[float]]:
    """Losses in bf16, where frozen and trained tensors of one unit differ in their dtype."""
    _, lora = train(
        *(model("llama"), token_set()), total=3, precision="bf16", method="lora", lora=ADAPTERS
    )
    _, last = train(model("gemma2"), token_set(), total=3, precision="bf16")
    return {"lora": lora["loss"], "partial": last["loss"]}


def relearned(language_model: PreTrainedModel) -> list[float]:
    """Perplexities while it is tuned on a few texts, by each process for itself."""
    settings = {"learning_rate": 1e-3, "batch_size": 2, "steps": [1, 3]}
    curve = relearn(
        *(language_model, token_set(4), token_set(8), settings),
        seed=0,
        accelerator=device.accelerator("fp32"),
        batch_tokens=20,
    ).curve
    return [*curve["ppl_forget"], *curve["ppl_retain"]]


def spoken(language_model: PreTrainedModel) -> list[int]:
    """Four tokens, greedily."""
    given = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    ids = torch.tensor([[1, 2, 3]])
    passes = partial(language_model.generate, ids, attention_mask=torch.ones_like(ids), **given)
    found: list[int] = sharding.call_gathered(language_model, passes)[0].tolist()
    return found
