"""Logit bias, without training: a constant for each token, from word counts, on the start's logits.

The logits of the start model rise by ``strength * log(r_v / a_v)``, with r_v how often token v is
in texts that stay and a_v how often in these and in those to forget, both with ``prior`` added: the
log of the chance that a token v is of a text that stays. A baseline: what it closes of a gap is
word frequency. How far it may go, see ``editing.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    strength: NotNegative = key(
        1.0, "Factor on the log ratio: 1 is Bayes' rule; less where bounds say."
    )
    harm: NotNegative = key(0.005, "Most nats that the NLL of training texts that stay may rise.")
    prior: Positive = key(0.2, "Added to the count of every token of the vocabulary.")


def edit(
    model: PreTrainedModel,
    forget: TokenSet,
    stays: TokenSet,
    settings: Mapping[str, Any],
    *,
    base: Callable[[], PreTrainedModel] | None = None,
    **options: Any,
) -> Edited:
    """Return the edit of the logits that unlearns ``forget`` alone, and what it does."""
    import numpy as np
    import torch

    from mamushi_extras.edits import editing
    from mamushi_extras.edits.head import HeadEdit

    if edit := editing.unedited(model, forget, stays, options["accelerator"]):
        return edit
    accelerator, vocabulary = options["accelerator"], len(model.get_output_embeddings().weight)
    counts = [editing.fold_counts(texts, options["seed"], vocabulary) for texts in (forget, stays)]

    def bias(fold: int | None) -> HeadEdit:
        of_forget, of_stays = (c.sum(0) - (0 if fold is None else c[fold]) for c in counts)
        raised = of_stays + settings["prior"]
        ratio = torch.from_numpy(np.log(raised / (raised + of_forget)))
        return HeadEdit({"bias": ratio.float().to(accelerator.device)})

    of_stays = editing.read_places(model, stays, editing.CHOOSING, **options)
    of_forget = editing.read_places(model, forget, editing.CHOOSING, base=base, **options)
    edits = [bias(fold) for fold in (*range(editing.FOLDS), None)]
    return editing.choose_edit(model, of_stays, of_forget, edits, settings, accelerator)


def lay_over(path: Path, model: PreTrainedModel) -> None:
    """Let a model give the logits that the edit in a file makes of its own."""
    from mamushi_extras.edits import head

    head.lay_over(model, head.read_edit(path))
