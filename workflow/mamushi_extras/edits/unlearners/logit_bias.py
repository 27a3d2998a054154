"""Logit bias, without training: a constant for each token, from word counts, on the start's logits.

The logits of the start model rise by ``strength * log(r_v / a_v)``, with r_v the share of token v
among the tokens of retain texts and a_v that among retain texts and those to forget, both with
``prior`` added to the count of every token of the vocabulary. The strength is the largest at which
the mean NLL of retain training texts rises by at most ``harm`` above the start's; each of them is
read with counts of other texts. A baseline: what it closes of a gap is word frequency.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import NotNegative, Positive, Section, key

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi_extras.edits.editing import Edited

TRAINS = False


class Settings(Section):
    """Settings of this unlearner."""

    strength: NotNegative | None = key(None, "Factor on the log ratio; null chooses it by `harm`.")
    harm: NotNegative = key(0.005, "Most nats that the NLL of retain training texts may rise.")
    prior: Positive = key(0.2, "Added to the count of every token of the vocabulary.")


def edit(
    model: PreTrainedModel,
    forget: TokenSet,
    retain: TokenSet,
    settings: Mapping[str, Any],
    **options: Any,
) -> Edited:
    """Return the edit of the logits that unlearns ``forget``, and its harm."""
    import numpy as np
    import torch

    from mamushi_extras.edits.editing import (
        CHOOSING,
        choose_edit,
        fold_counts,
        read_places,
        unedited,
    )
    from mamushi_extras.edits.head import HeadEdit

    if edit := unedited(model, forget, retain, options["accelerator"]):
        return edit
    accelerator, vocabulary = options["accelerator"], len(model.get_output_embeddings().weight)
    counts = [fold_counts(texts, options["seed"], vocabulary) for texts in (forget, retain)]

    def bias(fold: int | None) -> HeadEdit:
        in_forget, in_retain = (c.sum(0) - (0 if fold is None else c[fold]) for c in counts)
        raised = [of + settings["prior"] for of in (in_retain, in_retain + in_forget)]
        retained, either = (of / of.sum() for of in raised)
        ratio = torch.from_numpy(np.log(retained / either))
        return HeadEdit({"bias": ratio.float().to(accelerator.device)})

    places = read_places(model, retain, CHOOSING, **options)
    grid = [step / 20 for step in range(1, 21)]
    return choose_edit(model, places, bias, settings, (grid, [1.0]), accelerator)


def lay_over(path: Path, model: PreTrainedModel) -> None:
    """Let a model give the logits that the edit in a file makes of its own."""
    from mamushi_extras.edits import head

    head.lay_over(model, head.read_edit(path))
