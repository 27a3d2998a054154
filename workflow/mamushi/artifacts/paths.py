"""Where every artifact lies: one pattern each, for Snakemake's wildcards and for ``str.format``.

``SCORES`` is an output pattern in a rule, and ``SCORES.format(dataset=..., model=..., seed=...,
selector=...)`` is the file in a stage. Write budgets with ``beta``: ``0.1`` becomes ``0.10``.
"""

import re
from os import PathLike
from pathlib import Path

RESULTS = Path("results")
"""The folder of everything that a run makes, in its working folder."""

DATA = "results/data/{dataset}"
EXAMPLES = DATA + "/examples.parquet"
DUPLICATES = DATA + "/duplicates.parquet"
DATA_CARD = DATA + "/card.json"
TOKENS = DATA + "/tokens/{model}.parquet"

BASE = "results/base/{model}"
"""A tiny model that the workflow builds and pretrains itself."""
MODEL_CARD = BASE + "/card.json"

CELL = "results/runs/{dataset}/{model}/seed{seed}"

ARM = CELL + "/arms/{arm}"
"""All that is known of one model, by its name: see ``configuration.arms``."""
CARD = ARM + "/card.json"
TRAINED = ARM + "/trained.safetensors"
TRAIN_LOG = ARM + "/train_log.parquet"
PERPLEXITY = ARM + "/perplexity.parquet"
NLL = ARM + "/nll.parquet"
"""The perplexity's parts, text by text."""
GENERATIONS = ARM + "/generations.parquet"
"""How it continues the prompts."""
RELEARNING = ARM + "/relearning.parquet"
RELAPSE = ARM + "/relapse.parquet"
"""What brings the domain back."""
RELAPSE_NLL = ARM + "/relapse_nll.parquet"
"""The NLL of held-out texts and of the forget texts that are ranked."""
MEMBERSHIP = ARM + "/membership.parquet"
"""What it makes of each text that membership inference asks about."""
EXTRACTION = ARM + "/extraction.parquet"
"""How it completes the beginnings of texts."""
TASKS = ARM + "/tasks.parquet"

EMBEDDINGS = CELL + "/embeddings.parquet"
LAYERS = CELL + "/layers.parquet"
"""The same texts at other depths of the same model."""
SHARD = CELL + "/shards/{table}/{scatteritem}.parquet"
"""A part of either of these tables, or of an arm's NLL, until all parts are put together."""
SCORES = CELL + "/scores/{selector}.parquet"
REFITS = CELL + "/refits/{selector}.parquet"
"""The scores again, with other seeds."""
STABILITY = CELL + "/stability/{selector}.parquet"
REMOVAL = CELL + "/removals/{selector}/beta{beta}.parquet"
MANIFEST = CELL + "/removals/{selector}/beta{beta}.json"
WEIGHTS = CELL + "/weights/{selector}/beta{beta}.parquet"
"""Removal by degrees: how much each forget text counts."""
TOKEN_RATIO = CELL + "/token_ratio.parquet"
SPANS = CELL + "/spans/{selector}/beta{beta}.parquet"
"""Removal of tokens: which are left out of the loss."""

GPU_RATES = "results/gpu/rates.json"
"""Of trackers that have no place of their own."""
CACHE = "results/cache"
"""What saves time within a run of the workflow, and is deleted after it."""
CLAIMS = "results/claims"
"""Locks on what is being written: see ``claims``. Deleted after a run that succeeded."""
TRUNK = CACHE + "/trunk/{dataset}/{model}/seed{seed}"
"""What enters the first block that unlearning trains: the same for all that starts there."""
SWEEP = "results/sweeps/{dataset}/{model}/{unlearner}/{selector}.json"
"""The budgets at which a pair of unlearner and selector is measured beside the configured ones."""

JUDGED = CELL + "/generations.parquet"
"""What all models of a probed cell say, with gold's likelihood of it."""

CALIBRATED = CELL + "/calibrated.parquet"
"""The log-density ratio of every text that is ranked, in nats."""
CALIBRATION = CELL + "/calibration.parquet"
FRONTIER = CELL + "/frontier.parquet"
DIAGNOSTICS = CELL + "/diagnostics.parquet"
CONFOUNDS = CELL + "/confounds.parquet"
TRIAGE = CELL + "/triage.parquet"
TRIAGE_CSV = CELL + "/triage.csv"
GEOMETRY = CELL + "/geometry.parquet"
RUNTIME = CELL + "/runtime.parquet"
RANKING = CELL + "/ranking.html"
"""A page of its own, to browse the whole ranking of a run."""

START = "results/index.html"
"""Links to what is there."""

TABLES = "results/tables"
TABLE = TABLES + "/{table}.parquet"
TABLE_CSV = TABLES + "/{table}.csv"
SAD_VERDICT = TABLES + "/sad_differences.rst"
FIGURES = "results/figures"
FIGURE = FIGURES + "/{figure}.pdf"
FIGURE_PNG = FIGURES + "/{figure}.png"

CELL_FIGURE = FIGURES + "/{figure}/{dataset}/{model}/seed{seed}.pdf"
"""A figure of one cell."""
CELL_FIGURE_PNG = FIGURES + "/{figure}/{dataset}/{model}/seed{seed}.png"

STUDY_TABLE = TABLES + "/{study}/{table}.parquet"
STUDY_TABLE_CSV = TABLES + "/{study}/{table}.csv"
STUDY_SAD_VERDICT = TABLES + "/{study}/sad_differences.rst"
STUDY_FIGURE = FIGURES + "/study/{study}.pdf"
STUDY_FIGURE_PNG = FIGURES + "/study/{study}.png"


def beta(budget: float | str) -> str:
    """A budget as it stands in file names: two decimals, ``0.10``.

    Raises ``ValueError`` for a budget that two decimals cannot hold, since two budgets would then
    share a file.
    """
    text = f"{float(budget):.2f}"
    if abs(float(text) - float(budget)) > 1e-9:
        raise ValueError(f"budget {budget} has more than two decimals")
    return text


def wildcards(pattern: str, path: str | PathLike[str]) -> dict[str, str] | None:
    """The values that make ``pattern`` this file, whatever the folder of results is called, and
    that folder as ``root``; None for a file of another pattern."""
    # Odd parts of what is split at the wildcards are their names.
    parts = re.split(r"\{(\w+)\}", pattern.removeprefix("results/"))
    spelled = [
        f"(?P<{part}>{'.+?' if part == 'arm' else '[^/]+?'})" if place % 2 else re.escape(part)
        for place, part in enumerate(parts)
    ]
    found = re.fullmatch(f"(?P<root>.+?)/{''.join(spelled)}", Path(path).as_posix())
    return found.groupdict() if found else None


def under(root: str | PathLike[str], pattern: str, **wildcards: str | int) -> Path:
    """The file of ``pattern`` in a results folder that is called ``root``."""
    return Path(root) / pattern.format(**wildcards).removeprefix("results/")
