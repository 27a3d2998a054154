"""Batches: what a step holds, and that any step can be asked for on its own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mamushi.lm.batches import batches, examples_of_step


@given(examples=st.integers(1, 50), batch=st.integers(1, 70), seed=st.integers(0, 5))
def test_steps_cut_one_stream_of_whole_passes(examples: int, batch: int, seed: int) -> None:
    count = 3 * examples // batch + 1
    stream = np.concatenate([examples_of_step(s, examples, batch, seed) for s in range(count)])
    assert len(stream) == count * batch
    for start in range(0, len(stream) - examples + 1, examples):
        assert sorted(stream[start : start + examples]) == list(range(examples))


@given(
    kept=st.lists(st.booleans(), min_size=1, max_size=40).filter(any),
    batch=st.integers(1, 50),
    seed=st.integers(0, 5),
)
def test_leaving_texts_out_leaves_the_others_in_order(
    kept: list[bool], batch: int, seed: int
) -> None:
    mask, everything, some = np.array(kept), len(kept), sum(kept)
    passes = 3
    whole = np.concatenate([examples_of_step(s, everything, everything, seed) for s in range(3)])
    steps_of_some = range(-(-passes * some // batch))
    found = np.concatenate([examples_of_step(s, some, batch, seed, mask) for s in steps_of_some])
    expected = [row for row in whole if mask[row]]
    assert list(np.flatnonzero(mask)[found[: passes * some]]) == expected


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 100))
def test_batches_cover_all_within_the_token_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, dtype=np.int64)
    for shared in (True, False):
        found = list(batches(sizes, budget, shared=shared))
        assert sorted(np.concatenate(found)) == list(range(len(sizes)))
        for rows in found:
            size = sizes[rows].sum() if shared else len(rows) * max(1, sizes[rows].max())
            assert len(rows) == 1 or size <= budget
