"""Where every artifact lies: one pattern each, for Snakemake's wildcards and for ``str.format``.

``SCORES`` is an output pattern in a rule, and ``SCORES.format(dataset=..., model=..., seed=...,
selector=...)`` is the file in a stage. Write budgets with ``beta``: ``0.1`` becomes ``0.10``. The
page Layout of the documentation says what each holds.
"""

import re
from os import PathLike
from pathlib import Path

RESULTS = Path("results")

DATA = "results/data/{dataset}"
EXAMPLES = DATA + "/examples.parquet"
DUPLICATES = DATA + "/duplicates.parquet"
DATA_CARD = DATA + "/card.json"
TOKENS = DATA + "/tokens/{model}.parquet"

BASE = "results/base/{model}"
MODEL_CARD = BASE + "/card.json"

CELL = "results/runs/{dataset}/{model}/seed{seed}"

ARM = CELL + "/arms/{arm}"
CARD = ARM + "/card.json"
TRAINED = ARM + "/trained.safetensors"
TRAIN_LOG = ARM + "/train_log.parquet"
PERPLEXITY = ARM + "/perplexity.parquet"
NLL = ARM + "/nll.parquet"
GENERATIONS = ARM + "/generations.parquet"
RELEARNING = ARM + "/relearning.parquet"
RELAPSE = ARM + "/relapse.parquet"
RELAPSE_NLL = ARM + "/relapse_nll.parquet"
MEMBERSHIP = ARM + "/membership.parquet"
EXTRACTION = ARM + "/extraction.parquet"
TASKS = ARM + "/tasks.parquet"

EMBEDDINGS = CELL + "/embeddings.parquet"
LAYERS = CELL + "/layers.parquet"
SHARD = CELL + "/shards/{table}/{scatteritem}.parquet"
SCORES = CELL + "/scores/{selector}.parquet"
REFITS = CELL + "/refits/{selector}.parquet"
STABILITY = CELL + "/stability/{selector}.parquet"
REMOVAL = CELL + "/removals/{selector}/beta{beta}.parquet"
MANIFEST = CELL + "/removals/{selector}/beta{beta}.json"
TOKEN_RATIO = CELL + "/token_ratio.parquet"
TOKEN_SCORES = CELL + "/token_scores/{selector}.parquet"
SPANS = CELL + "/spans/{selector}/beta{beta}.parquet"
SPANS_MANIFEST = CELL + "/spans/{selector}/beta{beta}.json"

GPU_RATES = "results/gpu/rates.json"
CACHE = "results/cache"
CLAIMS = "results/claims"
TRUNK = CACHE + "/trunk/{dataset}/{model}/seed{seed}"
BASE_TRUNK = CACHE + "/trunk/{dataset}/{model}/base"
SWEEP = "results/sweeps/{dataset}/{model}/{unlearner}/{selector}.json"

JUDGED = CELL + "/generations.parquet"

CALIBRATED = CELL + "/calibrated.parquet"
CALIBRATION = CELL + "/calibration.parquet"
FRONTIER = CELL + "/frontier.parquet"
DIAGNOSTICS = CELL + "/diagnostics.parquet"
CONFOUNDS = CELL + "/confounds.parquet"
TRIAGE = CELL + "/triage.parquet"
TRIAGE_CSV = CELL + "/triage.csv"
GEOMETRY = CELL + "/geometry.parquet"
RUNTIME = CELL + "/runtime.parquet"
RANKING = CELL + "/ranking.html"

START = "results/index.html"

TABLES = "results/tables"
TABLE = TABLES + "/{table}.parquet"
TABLE_CSV = TABLES + "/{table}.csv"
SAD_VERDICT = TABLES + "/sad_differences.rst"
FIGURES = "results/figures"
FIGURE = FIGURES + "/{figure}.pdf"
FIGURE_PNG = FIGURES + "/{figure}.png"

CELL_FIGURE = FIGURES + "/{figure}/{dataset}/{model}/seed{seed}.pdf"
CELL_FIGURE_PNG = FIGURES + "/{figure}/{dataset}/{model}/seed{seed}.png"

STUDY_TABLE = TABLES + "/{study}/{table}.parquet"
STUDY_TABLE_CSV = TABLES + "/{study}/{table}.csv"
STUDY_SAD_VERDICT = TABLES + "/{study}/sad_differences.rst"
STUDY_FIGURE = FIGURES + "/study/{study}.pdf"
STUDY_FIGURE_PNG = FIGURES + "/study/{study}.png"


def beta(budget: float | str) -> str:
    """Return a budget as it stands in file names: two decimals, ``0.10``.

    Raises ``ValueError`` for a budget that two decimals cannot hold, since two budgets would then
    share a file.
    """
    text = f"{float(budget):.2f}"
    if abs(float(text) - float(budget)) > 1e-9:
        raise ValueError(f"budget {budget} has more than two decimals")
    return text


def wildcards(pattern: str, path: str | PathLike[str]) -> dict[str, str] | None:
    """Return the values that make ``pattern`` this file, with the folder of results as ``root``;
    None for a file of another pattern."""
    # Odd parts of what is split at the wildcards are their names.
    parts = re.split(r"\{(\w+)\}", pattern.removeprefix("results/"))
    spelled = [
        f"(?P<{part}>{'.+?' if part == 'arm' else '[^/]+?'})" if place % 2 else re.escape(part)
        for place, part in enumerate(parts)
    ]
    found = re.fullmatch(f"(?P<root>.+?)/{''.join(spelled)}", Path(path).as_posix())
    return found.groupdict() if found else None


def under(root: str | PathLike[str], pattern: str, **wildcards: str | int) -> Path:
    """Return the file of ``pattern`` in a results folder that is called ``root``."""
    return Path(root) / pattern.format(**wildcards).removeprefix("results/")
