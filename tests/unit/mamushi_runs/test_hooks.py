"""What the jobs of a run import once for all of them, by what the run is."""

from types import SimpleNamespace
from typing import Any

import pytest

from mamushi.running import warm
from mamushi_runs.hooks import FEW_JOBS, shared_libraries

VECTORS = {"contaminated": True, "embeddings": {"path": None, "words": 128}}
OURS = {"contaminated": True, "source": "ours"}
PAPERS = {"contaminated": False, "source": "papers"}


@pytest.mark.parametrize(
    ("models", "jobs", "libraries"),
    [
        ([VECTORS], FEW_JOBS + 1, warm.OF_VECTORS),
        ([VECTORS, OURS], FEW_JOBS + 1, warm.LIBRARIES),
        # As long as the jobs themselves take.
        ([VECTORS], FEW_JOBS, ()),
        # Hours of training, beside which seconds are nothing.
        ([OURS, PAPERS], 100, ()),
        ([PAPERS, {**PAPERS, "family": "llama"}], 1, warm.LIBRARIES),
    ],
)
def test_short_jobs_import_once(
    models: list[dict[str, Any]], jobs: int, libraries: tuple[str, ...]
) -> None:
    workflow = SimpleNamespace(dag=SimpleNamespace(needrun_jobs=lambda: range(jobs)))
    config = {"models": {f"model{i}": model for i, model in enumerate(models)}}
    assert shared_libraries(workflow, config) == libraries
    assert not {"torch", "transformers"} & {*warm.OF_VECTORS}
