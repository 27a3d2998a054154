"""Words for options: that which sets a key of the configuration, and that which others call so."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Collection

from mamushi.errors import suggestion

OF_KEYS = {
    r"grid\.(budgets|selectors)(\[\d+\])?": r"--\1",
    r"datasets\..+\.forget\.(like|unlike|terms|screen)": r"--\1",
    r"datasets\..+\.forget\.text": "--like-text",
    r"datasets\..+\.windows\.words": "--windows",
    r"datasets\..+\.answers": "--label",
    r"datasets\..+\.(text|id|forget|retain|part)": r"--\1",
    r"models\..+\.embeddings.*": "--embeddings",
    r"models\..+\.source": "--model",
    r"selectors\.(.+)\.folds": r"too few texts for the folds of \1",
}
"""Keys of the configuration, as patterns, and the options that set them."""
SYNONYMS = {
    "--cores": "threads jobs j workers num-workers cpus n-jobs nproc",
    "--budgets": "top k fraction percent ratio budget-list",
    "--selectors": "method algorithm ranker score",
    "--text": "column text-column text-col text-field field",
    "--forget": "where remove filter label-column target unwanted delete",
    "--retain": "keep wanted",
    "--like": "examples samples similar",
    "--terms": "blocklist keywords wordlist",
    "--embeddings": "vectors features embedding",
    "--id": "id-column id-col index",
    "--force": "overwrite f",
    "--data": "table input dataset",
    "--configfile": "config conf",
    "--out": "output output-dir o save save-to config conf configfile",
    "--root": "results folder dir",
}
"""Options of these commands, and what others call them; where several are there, the first."""
KEY_OF = {
    "seed": "grid.seeds",
    "seeds": "grid.seeds",
    "device": "execution.device",
    "gpu": "execution.device",
    "cuda": "execution.device",
    "batch-size": "execution.micro_batch_size",
    "max-length": "embedding.max_length",
    "precision": "embedding.precision",
    "dtype": "embedding.precision",
    "folds": "selectors.NAME.folds",
    "group": "datasets.NAME.group",
}
"""What is no option of theirs, and the key of the configuration that says it."""

ALIKE = 0.75
"""How alike names are of which one may be meant: all begin with the same two dashes."""


def as_option(line: str) -> str:
    """Return what is wrong in a configuration that is to be written, by the option that says it."""
    key, colon, words = line.partition(": ")
    for pattern, option in OF_KEYS.items():
        if match := re.fullmatch(pattern, key):
            key = match.expand(option)
    words = words.replace("the inference section of the dataset", "what is ranked of")
    words = re.sub(r"^\d+ takes", "they take", words) if "folds" in key else words
    return f"{key}{colon}{words.replace('lower it, or give it more texts', 'mark more texts')}"


def meant(wrong: str, options: Collection[str]) -> str:
    """Return what to put behind a message about an unknown option, of a command that has these
    ``options``; empty where nothing is alike."""
    word = wrong.lstrip("-").replace("_", "-").lower()
    for option, names in SYNONYMS.items():
        if option in options and word in names.split():
            return f"; did you mean {option!r}?"
    if word in KEY_OF and "--out" in options:
        return f"; it is the key {KEY_OF[word]} of the configuration, which mamushi init writes"
    if word in (*SYNONYMS["--data"].split(), "data") and "--text" in options:
        return "; DATA stands without an option, behind the name of the command"
    for option in sorted(options, key=len, reverse=True):
        if len(option) > len("--id") and word.startswith(option.removeprefix("--")):
            return f"; did you mean {option!r}?"
    return suggestion(f"--{word}", options, ALIKE)


def budget_share(text: str) -> float:
    """Return a share of texts above 0 and below 1. Raises ``ArgumentTypeError`` for others."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    problem = f"{text!r} is no share above 0 and below 1; 10% is 0.1, several as in 0.1 0.2"
    raise argparse.ArgumentTypeError(problem)
