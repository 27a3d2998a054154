"""The small configuration on which re-runs are tested: all rules, and something of every kind.

Two datasets and two models (one built here, one contaminated before, with its base), so that a
change can be seen to stay in its corner; two studies have the other datasets and selectors.
"""

import json
import os
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.dry_runs import BEGAN, Snakemake

TARGETS = ("all", "removals", "studies", "evidence", "theory", "unlearning", "unlearned", "data")

CONFIG: dict[str, Any] = {
    "grid": {
        "datasets": ["made", "mine"],
        "models": ["tiny", "ours"],
        "seeds": [0],
        "budgets": [0.2, 0.4],
        "selectors": ["random", "mamushi", "anti_mamushi"],
    },
    "studies": {
        "loaders": {
            "datasets": ["jigsaw", "newsgroups"],
            "models": ["tiny"],
            "seeds": [0],
            "budgets": [0.4],
            "selectors": ["random"],
        },
        "selectors": {
            "datasets": ["mine"],
            "models": ["tiny"],
            "seeds": [0],
            "budgets": [0.4],
            "selectors": [
                *("lr_maha", "mamushi_lr", "lexical", "again"),
                *("token_unigram", "token_random", "mamushi_words"),
            ],
        },
    },
    "selectors": {
        "again": {"kind": "mamushi", "folds": 3},
    },
    "unlearners": {"even": {"kind": "neggrad_plus", "beta_ng": 0.5}},
    "unlearning": {
        "datasets": ["made"],
        "models": ["tiny", "ours"],
        "seeds": [0],
        "selectors": ["mamushi"],
        "unlearners": ["neggrad_plus", "salun", "even"],
        "budgets": [0.2, 0.4],
        "fine": 0.1,
        "lists": {"agreed": "raw/agreed.txt"},
    },
    "probe": {
        "datasets": ["made"],
        "models": ["tiny", "ours"],
        "seeds": [0],
        "unlearners": ["neggrad_plus"],
        "selectors": ["mamushi"],
        "budget": 0.4,
    },
    "datasets": {
        "made": {"kind": "synthetic"},
        "mine": {
            "kind": "table",
            "path": "raw/mine.csv",
            "text": "body",
            "forget": {"where": "topic == 'snakes'"},
        },
        "jigsaw": {"kind": "jigsaw", "path": "raw/jigsaw"},
        "newsgroups": {"kind": "newsgroups", "path": "raw/20news-bydate.tar.gz"},
    },
    "models": {
        "tiny": {"family": "llama", "pretraining": {"datasets": ["made"]}},
        "ours": {"source": "raw/ours", "contaminated": True, "base": "clean"},
        "clean": {"source": "raw/clean"},
    },
}

RAW = (
    *("agreed.txt", "mine.csv", "mine2.csv", "20news-bydate.tar.gz"),
    *(f"jigsaw/{name}.csv" for name in ("train", "test", "test_labels")),
    *(
        f"{model}/{name}"
        for model in ("ours", "ours2", "clean")
        for name in ("config.json", "model.safetensors", "tokenizer.json")
    ),
)


def write_raw(path: Path, text: str) -> None:
    """A raw file, older than all that is made of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (BEGAN - 1000, BEGAN - 1000))


def table(name: str) -> str:
    """A table of one's own with every column that a change may name; a dry run looks at it."""
    columns = ("body", "text", "number", "part", "group", "loud", "topic")
    rows = [
        (f"{name} {number}", f"more {number}", number, "inference", "a", "yes", topic)
        for number, topic in enumerate(["snakes", "cats", "1"])
    ]
    return "\n".join(",".join(map(str, row)) for row in (columns, *rows))


def make(folder: Path) -> None:
    """The configuration and the raw files that it names. Nothing reads what is in them but for the
    look at tables."""
    for name in RAW:
        content = table(name) if name.startswith("mine") else json.dumps(name)
        write_raw(folder / "raw" / name, content)
    text = yaml.safe_dump(CONFIG, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def changed(key: str, value: Any) -> dict[str, Any]:
    """What to lay over the configuration to change one key, given by its dotted path."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return deepcopy(value)


@cache
def rules() -> dict[str, dict[str, Any]]:
    """What each rule with an output is, as Snakemake reads it: its ``shell`` command, and whether
    it asks for a ``gpu`` and is ``local``."""
    with tempfile.TemporaryDirectory() as folder, Snakemake() as snakemake:
        make(Path(folder))
        return dict(snakemake.look(Path(folder), targets=["data"])["rules"])
