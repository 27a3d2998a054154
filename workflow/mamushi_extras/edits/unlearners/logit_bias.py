"""Logit bias, without training: a constant for each token, from word counts, on the start's logits.

The logits of the start model rise by ``strength * log(r_v / a_v)``, with r_v how often token v is
in remaining texts and a_v how often in these and in those to forget, both with ``prior`` added: the
log of the chance that a token v is of a text that remains. A baseline: what it closes of a gap is
word frequency. How far it may go, see ``editing.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import NotNegative, Positive, Section, key
from mamushi_extras.edits import lay_over

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi_extras.edits.editing import Edited, Places
    from mamushi_extras.edits.head import HeadEdit

__all__ = ["Settings", "edit", "lay_over"]
TRAINS = False


class Settings(Section):
    """Settings of this unlearner."""

    strength: NotNegative = key(1.0, "Factor on it: 1 is Bayes' rule; bounds may lower it.")
    harm: NotNegative = key(0.005, "Most nats that the NLL of remaining training texts may rise.")
    prior: Positive = key(0.2, "Added to the count of every token of the vocabulary.")


def edit(
    model: PreTrainedModel,
    selected: TokenSet,
    retain: TokenSet,
    settings: Mapping[str, Any],
    **options: Any,
) -> Edited:
    """Return the edit of the logits that unlearns ``selected`` texts, and what it does."""
    import numpy as np
    import torch

    from mamushi_extras.edits.editing import CHOOSING, FOLDS, fold_counts, make_edit
    from mamushi_extras.edits.head import HeadEdit

    vocabulary = len(model.get_output_embeddings().weight)

    def fit(texts: Sequence[TokenSet], _: Sequence[Places]) -> list[HeadEdit]:
        counts = [fold_counts(of, options["seed"], vocabulary) for of in texts]
        edits = []
        for fold in (*range(FOLDS), None):
            remaining, gone = (c.sum(0) - (0 if fold is None else c[fold]) for c in counts)
            raised = remaining + settings["prior"]
            ratio = torch.from_numpy(np.log(raised / (raised + gone))).float()
            edits.append(HeadEdit({"bias": ratio.to(options["accelerator"].device)}))
        return edits

    return make_edit(model, selected, retain, settings, fit, CHOOSING, **options)
