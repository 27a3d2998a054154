"""What a run makes does not depend on how many threads its jobs have, from data to measurement."""

from pathlib import Path

import pytest

from tests.support.small_grid import CONFIG, FEW, MODEL, RUN, contents
from tests.support.workflow import run

pytestmark = pytest.mark.slow

TARGETS = [*FEW, f"{RUN}/removals/mamushi/beta0.25.json", f"{RUN}/geometry.parquet"]
TRAINING = ("base_model", "endpoint", "embed", "evaluate", "unlearn_whole")
RULES = (*TRAINING, "retrain", "score", "refits", "geometry")

SMALL = {
    **CONFIG,
    "grid": CONFIG["grid"] | {"selectors": ["lr_cos", "mamushi"]},
    "selectors": {"mamushi": {"hidden": [64, 16], "batch_size": 32, "seeds_averaged": 2}},
    "evidence": {"refits": {"whole": 1, "halves": 1}},
    "training": CONFIG["training"] | {"epochs": 1},
    # Wide enough for libraries to share a product between threads.
    "models": {MODEL: CONFIG["models"][MODEL] | {"hidden_size": 128, "intermediate_size": 512}},
}


def test_threads_change_no_bit_of_a_run(tmp_path: Path) -> None:
    found = {}
    for threads in (1, 4):
        folder = tmp_path / str(threads)
        given = [f"{rule}={threads}" for rule in RULES]
        run(*TARGETS, "--set-threads", *given, "--cores", "4", directory=folder, config=SMALL)
        found[threads] = contents(folder / "results")
    assert len(found[1]) > 20
    assert found[4] == found[1]
