"""Seeds that draw their texts: what they draw, and intervals over them where the truth is known."""

from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mamushi.data.examples import build_examples
from mamushi.errors import UserError
from mamushi.evaluation.intervals import Floats
from mamushi_extras.draws.drawing import draw_examples
from mamushi_extras.effects.contrasts import contrast
from tests.unit.data.test_examples import DATA, PAPER, raw_of

POOL, HELD_OUT, WORDS, LENGTH, TOPICS = 200, 80, 60, 20, 8
SEEDS, STUDIES = 5, 40


def test_a_seed_draws_its_training_sections_and_shares_what_is_held_out() -> None:
    n, limit, how = 600, {"forget": 20, "retain": 30}, DATA | {"near_duplicates": None}
    groups = [f"g{i // 6}" if i % 2 else None for i in range(n)]
    raw = raw_of([f"words {i}" for i in range(n)], [i % 4 < 2 for i in range(n)], group=groups)
    pool = build_examples(raw, PAPER, {}, how)[0]
    one_split = build_examples(raw, PAPER, limit, how)[0].to_pylist()
    sections_of = dict(zip(pool["id"].to_pylist(), pool["section"].to_pylist(), strict=True))
    ranked = []
    for seed in (0, 1, 0):
        rows = draw_examples(pool, limit, 0, seed).to_pylist()
        sizes = Counter((row["section"], row["domain"]) for row in rows)
        assert sizes == {(name, domain): limit[domain] for name, domain in product(PAPER, limit)}
        # As the split that all seeds would share has it.
        held_out = [row for row in rows if row["section"] == "evaluation"]
        assert held_out == [row for row in one_split if row["section"] == "evaluation"]
        of_groups = {(row["group"], row["section"]) for row in rows if row["group"]}
        assert len(of_groups) == len({group for group, _ in of_groups})
        # Else they are those of the pool, each once, in its order.
        unchanged = [{**row, "section": sections_of[row["id"]]} for row in rows]
        assert unchanged == [row for row in pool.to_pylist() if row in unchanged]
        ranked.append({row["id"] for row in rows if row["section"] == "inference"})
        assert {sections_of[name] for name in ranked[-1]} == {"contamination", "inference"}
    assert ranked[0] == ranked[2] and len(ranked[0] & ranked[1]) < 20
    together = pool.filter(pc.not_equal(pool["section"], "evaluation")).drop_columns("group")
    together = together.append_column("group", pa.array(["one"] * len(together)))
    with pytest.raises(UserError, match="seed 3 draws no forget text for inference"):
        draw_examples(together, {}, 0, 3)


def test_an_interval_over_draws_holds_for_other_draws() -> None:
    # Models count words of a domain with topics: what they learn depends on which are drawn.
    rng, n = np.random.default_rng(0), POOL + HELD_OUT
    forget, ids = np.arange(n) % 2 == 0, np.array([f"{i:03d}" for i in range(n)])
    topics = rng.dirichlet(np.full(WORDS, 0.3), TOPICS)[rng.integers(TOPICS, size=n)]
    chances = np.where(forget[:, None], topics, rng.dirichlet(np.ones(WORDS)))
    words = np.array([rng.multinomial(LENGTH, chance) for chance in chances])
    sizes = [POOL // 2, POOL // 2, HELD_OUT]
    section = np.repeat(["contamination", "inference", "evaluation"], sizes)
    domain, none = np.where(forget, "forget", "retain"), pa.nulls(n, pa.string())
    pool = pa.table({"id": ids, "domain": domain, "section": section, "group": none})
    held_out = words[forget & (section == "evaluation")]

    def nll(draw: int) -> Floats:
        """Beta 0, without half of the texts, and gold (3, held out), each with noise of its own."""
        drawn = draw_examples(pool, {"forget": 20, "retain": 20}, 0, draw)
        rows = np.isin(ids, drawn["id"].filter(pc.equal(drawn["section"], "inference")))
        first, second = np.split(np.flatnonzero(rows & forget), 2)
        retain = words[rows & ~forget].sum(axis=0) + 1.0
        more = np.array(
            [words[[*first, *second]].sum(axis=0), words[first].sum(axis=0), 0 * retain]
        )
        chances = (retain + more) / (retain + more).sum(axis=1, keepdims=True)
        return -(np.log(chances) @ held_out.T) + LENGTH * 0.002 * rng.normal(size=(3, 1))

    start, without, gold = np.mean([nll(draw) for draw in range(1000, 1200)], axis=(0, 2))
    truth = (without - start) / (gold - start)
    holds = {}
    for is_drawn in (True, False):
        spans = []
        for study in range(STUDIES):
            draws = [study * SEEDS + seed * is_drawn for seed in range(SEEDS)]
            start, without, gold = np.array([nll(draw) for draw in draws]).transpose(1, 0, 2)
            tokens = np.full(len(held_out), float(LENGTH))
            spans.append(contrast(without, start, tokens, gap=(start, gold)))
        # All are given.
        holds[is_drawn] = np.mean([span.low <= truth <= span.high for span in spans])
    assert holds[True] >= 0.92 and holds[False] < 0.8
