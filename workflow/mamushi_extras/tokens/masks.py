"""Tokens that are left out of a training's loss in the place of whole texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes
from mamushi.data.labels import group_codes
from mamushi.io.domains import CONTAMINATION, INFERENCE
from mamushi.io.tables import ranked_columns
from mamushi.lm.tokens import TokenSet, read_tokens
from mamushi.selection.arrays import Doubles
from mamushi.selection.removals import digest_of_ids

ScoresByText = list[NDArray[np.float32] | None]
"""Of each text the scores of its predicted tokens; None where a selector gives none."""


@dataclass(frozen=True)
class TokenPool:
    """What a selector of tokens scores ``texts`` of both domains by: texts of the section
    ``contamination``, ``groups`` (texts,), and what was ``measured`` of each token."""

    texts: TokenSet
    contamination: TokenSet
    groups: GroupCodes | None = None
    measured: ScoresByText | None = None


def read_token_pool(examples: Path, tokens: Path, max_length: int) -> TokenPool:
    """Read what selectors of tokens score by. Raises ``UserError`` as ``read_tokens``."""
    texts, contamination = (
        read_tokens(tokens, examples, section, max_length) for section in (INFERENCE, CONTAMINATION)
    )
    return TokenPool(texts, contamination, group_codes(ranked_columns(examples, "group")["group"]))


def split_by_text(values: Doubles, texts: TokenSet) -> list[NDArray[np.float32]]:
    """Return the ``values`` (predicted,) of each text's predicted tokens, in fp32."""
    return np.split(values.astype(np.float32), np.cumsum(texts.counted)[:-1])


def highest_spans(
    ids: Sequence[Any],
    scores: Sequence[NDArray[np.float32]],
    k: int,
    places: Sequence[NDArray[np.int64]] | None = None,
) -> list[dict[str, Any]]:
    """Return the ``k`` tokens of highest ``scores`` of the forget texts ``ids``, as rows of the
    table ``spans``. ``places`` says which tokens are scored, by default all but the first."""
    mask, rows = top_mask(np.concatenate([np.empty(0, np.float32), *scores]), k), []
    masks = np.split(mask, np.cumsum([len(text_scores) for text_scores in scores])[:-1])
    for number, (name, of_text) in enumerate(zip(ids, masks, strict=True)):
        chosen = np.flatnonzero(of_text) + 1 if places is None else places[number][of_text]
        for run in filter(len, np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)):
            rows.append({"id": name, "start": int(run[0]), "stop": int(run[-1]) + 1})
    return rows


def top_mask(flat: NDArray[np.float32], k: int) -> NDArray[np.bool_]:
    """Tell which of the scores (tokens,) are among the ``k`` highest, ties by place, and above 0:
    others are as likely in the retain domain."""
    mask = np.zeros(len(flat), dtype=bool)
    mask[np.argsort(-flat, kind="stable")[:k]] = True
    return mask & (flat > 0)


def digest_of_spans(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of the rows of a table ``spans``, a line each."""
    return digest_of_ids([f"{row['id']} {row['start']} {row['stop']}" for row in rows])
