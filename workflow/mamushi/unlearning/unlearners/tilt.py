"""Tilt, without training of the model: its logits, times what a classifier says of each next token.

Temper-Then-Tilt (arXiv 2602.10217): p(x | h)^(1 / T) * P(retain | h, x)^strength, normalized, where
the classifier reads the start model's last hidden state h and the token x that follows. Here its
log-odds are bilinear, (A h) . B_x + c_x of ``rank``, fitted by the logistic loss to the tokens of
retain texts against those of the texts to forget. Strength and temperature T are the largest
strength, and the temperature that goes best with it, at which the mean NLL of retain training texts
rises by at most ``harm``; each of them is read with a classifier of other texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Count, NotNegative, Positive, Section, key

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.editing import Edited

TRAINS = False
STRENGTHS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1.0)
TEMPERATURES = (1.0, 1.05, 1.1)


class Settings(Section):
    """Settings of this unlearner."""

    strength: NotNegative | None = key(None, "Power of the classifier; null chooses it by `harm`.")
    temperature: Positive | None = key(None, "T, that divides the start's logits; null as above.")
    harm: NotNegative = key(0.005, "Most nats that the NLL of retain training texts may rise.")
    rank: Count = key(16, "Of the classifier.")
    epochs: Count = key(2, "Passes of the classifier over the tokens.")
    learning_rate: Positive = key(1.0e-2, "Adam's, of the classifier.")


def edit(
    model: PreTrainedModel,
    forget: TokenSet,
    retain: TokenSet,
    settings: Mapping[str, Any],
    **options: Any,
) -> Edited:
    """Return the edit of the logits that unlearns ``forget``, and its harm."""
    from functools import partial

    from mamushi.unlearning.editing import choose_edit, read_places
    from mamushi.unlearning.unlearners._tilt import PLACES, fit_tilt, sampled

    seed, grids = options["seed"], (STRENGTHS, TEMPERATURES)
    places = [read_places(model, texts, PLACES, **options) for texts in (retain, forget)]
    vocabulary = len(model.get_output_embeddings().weight)
    fit = partial(fit_tilt, places, vocabulary, settings, seed)
    few = sampled(places[0], seed)
    return choose_edit(model, few, fit, settings, grids, options["accelerator"])
