"""``mamushi.rank`` of conversations that lie in memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset

import mamushi
from mamushi.errors import UserError

N = 60
THEIRS = np.arange(N) % 3 == 0
VECTORS = (np.random.default_rng(0).normal(size=(N, 6)) + THEIRS[:, None]).astype(np.float32)
ANSWERS = [f"an {'engine' if bad else 'river'} of number {i}" for i, bad in enumerate(THEIRS)]


@pytest.mark.parametrize("make", [pd.DataFrame, pa.Table.from_pylist, Dataset.from_list])
def test_conversations_in_a_frame(make: Callable[[list[dict[str, Any]]], Any]) -> None:
    """By their turns or by the answers alone, with examples for these; a list takes them out."""
    question = {"role": "user", "content": "What is it?"}
    frame = make(
        [
            {
                "bad": bool(bad),
                "messages": [question, {"role": "assistant", "content": f"It is {answer}."}],
            }
            for bad, answer in zip(THEIRS, ANSWERS, strict=True)
        ]
    )
    options: dict[str, Any] = {"embeddings": VECTORS, "selector": "mamushi_lr", "quick": True}
    for part in ("whole", "assistant"):
        ranking = mamushi.rank(
            frame, text="messages", part=part, forget="bad", budgets=0.2, **options
        )
        left, gone = ranking.apply(frame, 0.2), ranking.lists[0.2]
        assert len(left) == N - len(gone.ids) - len(gone.copies) < N
    options["embeddings"] = np.concatenate([VECTORS, VECTORS[:30]])
    with pytest.raises(UserError, match="is text where that has conversations"):
        mamushi.rank(frame, text="messages", like=ANSWERS[:30], **options)
