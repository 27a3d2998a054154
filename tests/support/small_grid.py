"""A small but real grid, and what of its results must not depend on how often it was disturbed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors import safe_open

from mamushi.io.files import read_plain_json
from tests.support.workflow import NO_RESULTS

DATASET, MODEL, UNLEARNER = "synthetic", "tiny", "neggrad_plus"
RUN = f"results/runs/{DATASET}/{MODEL}/seed0"
FEW = [
    f"{RUN}/arms/retrained/lr_cos/beta0.25/perplexity.parquet",
    f"{RUN}/arms/{UNLEARNER}/whole/card.json",
]
"""One cell of the grid and all that it needs."""

CONFIG: dict[str, Any] = {
    "grid": {
        "datasets": [DATASET],
        "models": [MODEL],
        "seeds": [0],
        "budgets": [0.25, 0.75],
        "selectors": ["random", "lr_cos"],
    },
    "studies": None,
    "removal": {"ratio": "lr_cos"},
    "unlearning": {
        "datasets": [DATASET],
        "models": [MODEL],
        "seeds": [0],
        "selectors": ["lr_cos"],
        "unlearners": [UNLEARNER],
        "budgets": [0.25, 0.75],
        "fine": None,
        "max_length": 24,
    },
    # A model this small starts above the usual limit, and would stop at the first step.
    "unlearners": {
        UNLEARNER: {
            "learning_rate": 2.0e-4,
            "stop_forget_loss": 50.0,
            "training": {"epochs": 4},
        }
    },
    "datasets": {
        DATASET: {
            "kind": "synthetic",
            "sizes": {
                "contamination": {"forget": 120, "retain": 240},
                "inference": {"forget": 120, "retain": 240},
                "evaluation": {"forget": 60, "retain": 60},
            },
            "vocabulary": 120,
            "words": [6, 12],
        }
    },
    "models": {
        MODEL: {
            "family": "llama",
            "hidden_size": 32,
            "layers": 4,
            "heads": 2,
            "key_value_heads": 1,
            "intermediate_size": 64,
            "vocabulary_size": 384,
            "max_positions": 32,
            "pretraining": {
                "datasets": [DATASET],
                "epochs": 1,
                "max_length": 24,
                "batch_size": 16,
            },
        }
    },
    "tokens": {"max_length": 24},
    "training": {"epochs": 2, "batch_size": 4, "max_length": 24, "precision": "fp32"},
    "embedding": {"max_length": 24, "precision": "fp32"},
    "evaluation": {"max_length": 24},
    # A checkpoint every few steps, so that kills meet all states of one.
    "execution": {"checkpoint_seconds": 0.2},
}

TIMES = frozenset({"seconds", "tokens_per_second"})
"""What no two runs have in common."""


def contents(results: Path) -> dict[str, str]:
    """A digest of each result by its path, without the columns that hold times.

    Raises whatever reading it raises for a file that is damaged. Logs and figures (the
    dates in a PDF) are left out, and what is no result: forecasts (one for each start of
    Snakemake), claims, cache, checkpoints.
    """
    return {
        str(path.relative_to(results)): hashlib.sha256(_content(path)).hexdigest()
        for path in sorted(results.rglob("*"))
        if path.is_file()
        and path.relative_to(results).parts[0] not in NO_RESULTS
        and path.suffix in {".parquet", ".json", ".safetensors", ".csv"}
        and not path.name.startswith(".")
    }


def _content(path: Path) -> bytes:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        kept = table.select([name for name in table.column_names if name not in TIMES])
        about = (kept.schema.metadata or {}).get(b"mamushi")
        kept = kept.replace_schema_metadata()
        return repr((kept.schema, kept.to_pydict(), about)).encode()
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
            values = [(name, str(t.dtype), t.shape, t.tobytes()) for name, t in tensors.items()]
            return repr((sorted((file.metadata() or {}).items()), values)).encode()
    if path.suffix == ".json":
        return json.dumps(read_plain_json(path), sort_keys=True).encode()
    return path.read_bytes()
