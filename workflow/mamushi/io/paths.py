"""Where every artifact lies: one pattern each, for Snakemake's wildcards and for ``str.format``.

Write budgets with ``beta``: ``0.1`` becomes ``0.10``. The comment behind a pattern says what it
holds, also on the page Tables of the documentation.
"""

import re
from os import PathLike
from pathlib import Path

RESULTS = Path("results")

DATA = "results/data/{dataset}"
EXAMPLES = DATA + "/examples.parquet"  # cleaned texts with domain and section
DUPLICATES = DATA + "/duplicates.parquet"  # copies and cross-posts
DATA_CARD = DATA + "/card.json"  # digests and counts
DRAWN = DATA + "/seed{seed}/examples.parquet"  # those that a seed draws
TOKENS = DATA + "/tokens/{model}.parquet"  # token ids
FETCHED = "results/remote/{place}/.fetched.json"  # where a copy comes from, and its digests
BASE = "results/base/{model}"
MODEL_CARD = BASE + "/card.json"  # where a model is, and how to check it

CELL = "results/runs/{dataset}/{model}/seed{seed}"
ARM = CELL + "/arms/{arm}"  # one model
CARD = ARM + "/card.json"  # settings, digests and steps of its training
TRAINED = ARM + "/trained.safetensors"  # its tensors: endpoints, own lists, keep_checkpoints
TRAIN_LOG = ARM + "/train_log.parquet"  # its steps, of unlearning too
PERPLEXITY = ARM + "/perplexity.parquet"  # held-out perplexity
NLL = ARM + "/nll.parquet"  # its parts, text by text
GENERATIONS = ARM + "/generations.parquet"  # how it continues the prompts
RELEARNING = ARM + "/relearning.parquet"  # how fast it learns the domain
RELEARNED = ARM + "/relearned.parquet"  # its NLL of forget texts then, text by text
MEMBERSHIP = ARM + "/membership.parquet"  # what it makes of single forget texts
TASK_ANSWERS = ARM + "/tasks.parquet"  # what it reaches in tasks

EMBEDDINGS = CELL + "/embeddings.parquet"  # the inference section as vectors
SCORE_LOG = "results/logs/score/{dataset}/{model}/seed{seed}/{selector}.log"
SCORES = CELL + "/scores/{selector}.parquet"  # one ranking, with scores of retain texts
POSTERIOR = CELL + "/posterior/{selector}.parquet"  # of a corpus that nobody labelled, text by text
REFITS = CELL + "/refits/{selector}.parquet"  # the same scores with other seeds
STABILITY = CELL + "/stability/{selector}.parquet"  # how often a text is listed
REMOVAL = CELL + "/removals/{selector}/beta{beta}.parquet"  # the product: ids to remove
MANIFEST = CELL + "/removals/{selector}/beta{beta}.json"  # verdict, origin and expectations
TOKEN_SCORES = CELL + "/token_scores/{selector}.parquet"  # a ranking of tokens
SPANS = CELL + "/spans/{selector}/beta{beta}.parquet"  # tokens left out of the loss
SPANS_MANIFEST = CELL + "/spans/{selector}/beta{beta}.json"  # verdict, origin and counts
INFLUENCE = CELL + "/influence.parquet"  # of each token on other texts, along beta 0's training
CROSS_ENTROPY = CELL + "/cross_entropy.parquet"  # of each token, under two models

CACHE = "results/cache"  # deleted after the run
CLAIMS = "results/claims"
SWEEPS = "results/sweeps.json"  # finer budgets at which unlearning is measured

JUDGED = CELL + "/generations.parquet"  # what the models of a probed cell say
CALIBRATED = CELL + "/calibrated.parquet"  # calibrated scores
CALIBRATION = CELL + "/calibration.parquet"  # checks of them
FRONTIER = CELL + "/frontier.parquet"  # expected removal and preservation
PREDICTED = CELL + "/predicted.parquet"  # what retraining is predicted to do
DIAGNOSTICS = CELL + "/diagnostics.parquet"  # what the scores look like
GEOMETRY = CELL + "/geometry.parquet"  # how the embeddings stretch
RANKING = CELL + "/ranking.html"  # a page to browse the ranking

START = "results/index.html"  # the start page
TABLES = "results/tables"
TABLE = TABLES + "/{table}.parquet"  # a result table, also as CSV
TABLE_CSV = TABLES + "/{table}.csv"
FIGURES = "results/figures"
FIGURE = FIGURES + "/{figure}.pdf"  # a figure, also as PNG
CELL_FIGURE = FIGURES + "/{figure}/{dataset}/{model}/seed{seed}.pdf"
CELL_FIGURE_PNG = FIGURES + "/{figure}/{dataset}/{model}/seed{seed}.png"
STUDY_TABLE = TABLES + "/{study}/{table}.parquet"
STUDY_FIGURE = FIGURES + "/study/{study}.pdf"


def beta(budget: float | str) -> str:
    """Return a budget as it stands in file names: two decimals, and up to four more where they are
    needed. Raises ``ValueError`` for more, by which two budgets would share a file."""
    text = f"{float(budget):.6f}"
    if abs(float(text) - float(budget)) > 1e-9:
        raise ValueError(f"budget {budget} has more than six decimals")
    return text[:4] + text[4:].rstrip("0")


def wildcards(pattern: str, path: str | PathLike[str]) -> dict[str, str] | None:
    """Return the values of the wildcards with which ``pattern`` gives this path, and as ``root``
    the results folder. Return None if it does not fit."""
    escaped = re.escape(pattern.removeprefix("results/")).replace(r"\{arm\}", "(?P<arm>.+?)")
    spelled = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+?)", escaped)
    match = re.fullmatch(f"(?P<root>.+?)/{spelled}", Path(path).as_posix())
    return match.groupdict() if match else None


def under(root: str | PathLike[str], pattern: str, **wildcards: str | int) -> Path:
    """Return the file of ``pattern`` in a results folder that is called ``root``."""
    return Path(root) / pattern.format(**wildcards).removeprefix("results/")
