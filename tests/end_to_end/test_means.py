"""Ten means of the small demo that hold on every processor; ``make bits`` sees the last bit."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from mamushi.io import paths

TOLERANCE = 0.02
"""Relative difference that another processor may make: where a training stops early, its last bits
decide when. Between an AMD EPYC and an Intel Xeon these differ by up to 0.014."""


@pytest.mark.parametrize(
    ("table", "column", "count", "mean"),
    [
        ("sad", "sad", 16, 40.98),
        ("sad", "ppl_retain", 16, 136.3),
        ("selection", "auc", 3, 0.6219),
        ("diagnostics", "auc_low", 3, 0.558),
        ("frontier", "removal", 120, 0.4883),
        ("frontier", "preservation", 120, 0.05128),
        ("frontier", "removal_true", 120, 0.7847),
        ("advice", "retraining", 4, 0.5648),
        ("half_gap", "budget", 4, 0.3143),
        ("half_gap", "retain_factor", 4, 1.005),
    ],
)
def test_means_are_those_of_before(
    demo: Path, table: str, column: str, count: int, mean: float
) -> None:
    values = pq.read_table(demo / paths.TABLE.format(table=table))[column].to_pandas()
    found = np.abs(values.to_numpy(dtype=np.float64))
    found = found[np.isfinite(found)]
    assert (len(found), found.mean()) == (count, pytest.approx(mean, rel=TOLERANCE))
