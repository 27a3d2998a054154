"""The primary measurement, from files of a run whose truth is known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.evaluation.effects import NO, UNKNOWN, YES
from mamushi.io import paths, schemas
from mamushi.io.files import write_json
from mamushi.io.tables import read_table, write_table

N, MARGIN = 240, 0.02
SHARE = {"random": 0.5, "random_2": 0.3, "ours": 0.8, "back": 0.1}
COST = {"ours": 0.1}
DEEP = {"random": 0.3, "random_2": 0.1, "ours": 0.0, "back": 0.6}
"""Share that is recovered of the gap without word frequencies, which is a quarter of the whole."""
GRID: dict[str, Any] = {
    "datasets": ["d"], "models": ["m"], "budgets": [0.5], "selectors": list(SHARE),
}  # fmt: skip


def write_run(folder: Path, seeds: range, *, gap: float = 0.4, gold_steps: int = 60) -> None:
    """Write models that recover ``SHARE`` of a gap, at a ``COST`` of the retain domain in nats."""
    rng, drawn = np.random.default_rng(0), np.random.default_rng(3)
    ids, forget = [f"t{i:03d}" for i in range(N)], np.arange(N) % 2 == 0
    examples = {
        "id": ids,
        "text": ["w w"] * N,
        "domain": np.where(forget, "forget", "retain"),
        "section": ["evaluation"] * N,
        "log_density_ratio": [None] * N,
        # Threads of three texts of a domain; the last half has none.
        "group": [f"g{i // 6}{i % 2}" if i < N // 2 else None for i in range(N)],
    }
    write_table(paths.under(folder, paths.EXAMPLES, dataset="d"), schemas.EXAMPLES, examples)
    # One of them has nothing to predict.
    tokens = rng.integers(3, 20, N)
    tokens[5] = 0
    base = rng.normal(3, 0.3, N)
    opens = forget * (gap + 0.1 * rng.normal(size=N))
    for seed in seeds:
        changes = {"beta0": (0.0 * opens, 0.0), "gold": (opens, 1.0)}
        for name, share in SHARE.items():
            change = share * opens + ~forget * COST.get(name, 0.0)
            arm = f"retrained/{name}/beta0.50"
            changes[arm] = (change + 0.01 * rng.normal(), DEEP[name])
        for arm, (change, of_deep) in changes.items():
            at = {"dataset": "d", "model": "m", "seed": seed, "arm": arm}
            nll = (base + 0.05 * seed + change + 0.02 * rng.normal(size=N)) * tokens
            deep = (base + of_deep * opens / 4 + 0.02 * drawn.normal(size=N)) * tokens
            # Every fourth text is sampled.
            sampled = np.where(np.arange(N) % 4 == 0, deep, np.nan)
            raked = pa.array(sampled, mask=np.isnan(sampled))
            columns = {"id": ids, "tokens": tokens, "nll": nll, "deep": raked}
            write_table(paths.under(folder, paths.NLL, **at), schemas.NLL, columns)
            settings = {"training": {"steps": "by_data" if gold_steps < 60 else "aligned"}}
            steps = gold_steps if arm == "gold" else 60
            write_json(
                paths.under(folder, paths.CARD, **at), {"steps": steps, "settings": settings}
            )


def table(folder: Path, seeds: range) -> dict[str, dict[str, Any]]:
    """Run the stage, and return the table's rows by selector."""
    by_chance = {name: name.startswith("random") for name in SHARE}
    grid = {**GRID, "seeds": list(seeds)}
    settings = {"grid": grid, "ranked": [*SHARE], "by_chance": by_chance, "margin": MARGIN}
    words = ["--root", str(folder), "--out-folder", str(folder / "tables")]
    assert main(["effects", *words, "--settings", json.dumps(settings)]) == 0
    rows = read_table(folder / "tables/effects.parquet", schemas.EFFECTS).to_pylist()
    return {row["selector"]: row for row in rows}


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_table_says_what_the_run_was_made_of(tmp_path: Path, seeds: int) -> None:
    write_run(tmp_path, range(seeds))
    rows = table(tmp_path, range(seeds))
    assert list(rows) == ["random", "ours", "back"]
    ours, chance, back = rows["ours"], rows["random"], rows["back"]
    # Both lists of chance are one selector, and what it is compared with.
    assert (chance["lists"], ours["lists"], chance["recovered_vs_random"]) == (2, 1, None)
    for row, share in ((ours, 0.8), (chance, 0.4), (back, 0.1)):
        assert row["recovered_low"] < share < row["recovered_high"]
        assert row["recovered"] == pytest.approx(share, abs=0.06)
        assert (row["steps"], row["equal_steps"], row["withheld"]) == ("aligned", True, None)
    for row, share in ((ours, 0.0), (chance, 0.2), (back, 0.6)):
        assert row["deep_low"] < share < row["deep_high"]
        assert row["deep_gap"] == pytest.approx(0.1, abs=0.01) and row["deep_withheld"] is None
        assert 0 < row["deep_gap_low"] < row["deep_gap"] < row["deep_gap_high"]
    assert ours["deep_vs_random_high"] < 0 < back["deep_vs_random_low"]
    assert ours["recovered_vs_random_low"] > 0 > back["recovered_vs_random_high"]
    assert ours["p"] <= ours["p_holm"] < 0.05
    assert ours["comparisons"] == 2
    assert (ours["non_inferior"], ours["retain_change"]) == (NO, pytest.approx(0.1, abs=0.03))
    assert chance["non_inferior"] in (YES, UNKNOWN) and chance["retain_margin"] == MARGIN
    assert seeds != 3 or not ours["pooled"]
