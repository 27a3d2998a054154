"""What brings a deleted domain back: a little fine-tuning, on whatever texts.

What was only suppressed by small steps of a few weights comes back by other small steps, also of
texts that have nothing to do with it (Hu et al. 2025, Unlearning or Obfuscating?). A model that
never saw the domain has nothing to come back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.lm.sharding import local
from mamushi.lm.tokens import TokenSet, encode, offsets_of, subset
from mamushi.unlearning.relearning import choose, relearn
from mamushi.unlearning.unrelated import TEXTS


def unrelated(tokenizer: PreTrainedTokenizerBase, max_length: int) -> TokenSet:
    """Tokenize the texts of ``unlearning.unrelated``, at most ``max_length`` of each."""
    rows = [np.array(row, dtype=np.int32) for row in encode(tokenizer, TEXTS, max_length)]
    ids = np.array([f"unrelated {place}" for place in range(len(rows))], dtype=object)
    offsets = offsets_of(np.array([len(row) for row in rows]))
    domains = np.full(len(rows), "unrelated", dtype=object)
    return TokenSet(ids, domains, np.concatenate(rows), offsets)


def relapse(
    model: PreTrainedModel,
    texts: Mapping[str, TokenSet],
    held_out: TokenSet,
    settings: Mapping[str, Any],
    *,
    seed: int,
    accelerator: Accelerator,
    batch_tokens: int,
) -> dict[str, list[Any]]:
    """Return columns of the table ``relapses``: mean NLL of ``held_out`` by domain after each
    treatment.

    Relearning on ``settings["examples"]`` of each of ``texts``, by its name, as ``relearn`` does,
    each from the model as it came. ``model`` is afterwards as it was before. Raises ``UserError``
    as ``relearn`` does.
    """
    rows: list[tuple[str, int, float, float]] = []
    start = [(p, local(p.detach()).clone()) for p in model.parameters() if p.requires_grad]
    for name, those in texts.items():
        few = subset(those, choose(those, int(settings["examples"]), seed))
        curve = relearn(
            model,
            few,
            held_out,
            settings,
            seed=seed,
            accelerator=accelerator,
            batch_tokens=batch_tokens,
        )
        for step, *ends in zip(
            curve["step"], curve["ppl_forget"], curve["ppl_retain"], strict=True
        ):
            rows.append((f"relearn {name}", step, *map(math.log, ends)))
        with torch.no_grad():
            for parameter, value in start:
                local(parameter.detach()).copy_(value)
    names = ("treatment", "amount", "nll_forget", "nll_retain")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
