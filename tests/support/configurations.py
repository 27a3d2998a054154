"""Configurations that tests start from."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
Config = dict[str, Any]


def paper() -> Config:
    """The configuration of the paper, as it stands in config.yaml."""
    loaded: Config = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    return loaded


def minimal() -> Config:
    """As little as a configuration can say."""
    return {
        "grid": {"datasets": ["made"], "models": ["tiny"]},
        "datasets": {"made": {"kind": "synthetic"}},
        "models": {"tiny": {"family": "llama", "pretraining": {"datasets": ["made"]}}},
    }


def laid_over(*names: str) -> Config:
    """Files laid over each other in the way of Snakemake, beneath them the paper's if they ask."""
    from snakemake.utils import update_config

    files = [yaml.safe_load((ROOT / name).read_text(encoding="utf-8")) for name in names]
    config = paper() if any(file.get("extends") == "paper" for file in files) else {}
    for file in files:
        update_config(config, file)
    return config
