"""The one change made to a text: white space around it goes. What is then empty goes too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError


def clean(
    texts: Sequence[str], places: Sequence[str], max_characters: int
) -> tuple[list[str], NDArray[np.bool_]]:
    """Texts without the white space around them, and which of them have anything left.

    Nothing inside a text changes (no Unicode normalization, no folding): a model was or will be
    trained on it as it is. Raises ``UserError`` for a text of more than ``max_characters``
    characters, and when no text has anything left.
    """
    stripped = [text.strip() for text in texts]
    for text, place in zip(stripped, places, strict=True):
        if len(text) > max_characters:
            raise UserError(
                f"a text of {len(text):,} characters",
                where=place,
                do=f"allowed are {max_characters:,} (data.max_characters); split or remove it",
            )
    kept = np.array([bool(text) for text in stripped], dtype=bool)
    if not kept.any():
        raise UserError(
            f"all {len(stripped)} texts are empty or white space",
            do="check that the right column is read",
        )
    return stripped, kept
