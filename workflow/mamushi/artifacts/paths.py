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

# Of a fine-tuned model that all selectors of a run share.
ENDPOINT = CELL + "/{endpoint}"
TRAINED = ENDPOINT + "/trained.safetensors"
TRAIN_LOG = ENDPOINT + "/train_log.parquet"
TRAIN_CARD = ENDPOINT + "/card.json"

EMBEDDINGS = CELL + "/embeddings.parquet"
LAYERS = CELL + "/layers.parquet"
"""The same texts at other depths of the same model."""
SHARD = CELL + "/shards/{table}/{scatteritem}.parquet"
"""A part of either of these tables, or of an endpoint's NLL, until all parts are put together."""
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

RETRAINED = CELL + "/retrained/{selector}/beta{beta}"
RETRAINED_TENSORS = RETRAINED + "/trained.safetensors"
RETRAINED_LOG = RETRAINED + "/train_log.parquet"
RETRAINED_CARD = RETRAINED + "/card.json"

PERPLEXITY_ENDPOINT = CELL + "/perplexity/{endpoint}.parquet"
PERPLEXITY = CELL + "/perplexity/{selector}/beta{beta}.parquet"

NLL_ENDPOINT = CELL + "/nll/{endpoint}.parquet"
"""The perplexity's parts, text by text."""
NLL = CELL + "/nll/{selector}/beta{beta}.parquet"

GPU_RATES = "results/gpu/rates.json"
TRACKING = "results/tracking"
"""Of trackers that have no place of their own."""
CACHE = "results/cache"
"""What saves time within a run of the workflow, and is deleted after it."""
CLAIMS = "results/claims"
"""Locks on what is being written: see ``claims``. Deleted after a run that succeeded."""
TRUNK = CACHE + "/trunk/{dataset}/{model}/seed{seed}.safetensors"
"""What enters the first block that unlearning trains: the same for all that starts there."""
UNLEARNED = CELL + "/unlearned/{unlearner}/{selector}/beta{beta}"
UNLEARNED_TENSORS = UNLEARNED + "/trained.safetensors"
UNLEARNED_LOG = UNLEARNED + "/unlearn_log.parquet"
UNLEARNED_CARD = UNLEARNED + "/card.json"
PERPLEXITY_UNLEARNED = CELL + "/perplexity/{unlearner}/{selector}/beta{beta}.parquet"
SWEEP = "results/sweeps/{dataset}/{model}/{unlearner}/{selector}.json"
"""The budgets at which a pair of unlearner and selector is measured beside the configured ones."""

WHOLE = CELL + "/unlearned/{unlearner}/whole"
"""Unlearning of the whole forget set, which is the same for every selector: budget 1."""
WHOLE_LOG = WHOLE + "/unlearn_log.parquet"
WHOLE_CARD = WHOLE + "/card.json"
PERPLEXITY_WHOLE = CELL + "/perplexity/{unlearner}/whole.parquet"

LISTED = CELL + "/unlearned/{unlearner}/lists/{list}"
"""Unlearning of a removal list of one's own."""
LISTED_TENSORS = LISTED + "/trained.safetensors"
LISTED_LOG = LISTED + "/unlearn_log.parquet"
LISTED_CARD = LISTED + "/card.json"
LISTED_PERPLEXITY = LISTED + "/perplexity.parquet"

CONTINUATIONS = UNLEARNED + "/continuations.parquet"
CONTINUATIONS_ENDPOINT = CELL + "/continuations/{endpoint}.parquet"
GENERATIONS = CELL + "/generations.parquet"
RELEARNING = UNLEARNED + "/relearning.parquet"
RELEARNING_GOLD = CELL + "/relearning/gold.parquet"

LEFT = CELL + "/left/{unlearner}/{selector}/beta{beta}"
"""A model that is made once more, to look at what is left in it; of ``retraining`` too."""
LEFT_TENSORS = LEFT + "/trained.safetensors"
LEFT_LOG = LEFT + "/log.parquet"
LEFT_CARD = LEFT + "/card.json"
LEFT_PERPLEXITY = LEFT + "/perplexity.parquet"
LEFT_NLL = LEFT + "/held_out.parquet"
RELAPSES = CELL + "/relapse/{unlearner}/{selector}/beta{beta}.parquet"
"""What brings the domain back."""
RELAPSES_GOLD = CELL + "/relapse/gold.parquet"
SAID_OF = CELL + "/relapse/nll/{unlearner}/{selector}/beta{beta}.parquet"
"""The NLL of held-out texts and of the forget texts that are ranked."""
SAID_OF_GOLD = CELL + "/relapse/nll/gold.parquet"
TASKS = CELL + "/tasks/{unlearner}/{selector}/beta{beta}.parquet"
TASKS_ENDPOINT = CELL + "/tasks/{endpoint}.parquet"
MEMBERSHIP_ENDPOINT = CELL + "/membership/{endpoint}.parquet"
"""What a model makes of each text that membership inference asks about."""
MEMBERSHIP = CELL + "/membership/{selector}/beta{beta}.parquet"
MEMBERSHIP_UNLEARNED = CELL + "/membership/{unlearner}/{selector}/beta{beta}.parquet"
EXTRACTION_ENDPOINT = CELL + "/extraction/{endpoint}.parquet"
"""How a model completes the beginnings of texts."""
EXTRACTION = CELL + "/extraction/{selector}/beta{beta}.parquet"
EXTRACTION_UNLEARNED = CELL + "/extraction/{unlearner}/{selector}/beta{beta}.parquet"

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
RANKING_TABLE = CELL + "/ranking.parquet"
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
    spelled = [f"(?P<{p}>[^/]+?)" if i % 2 else re.escape(p) for i, p in enumerate(parts)]
    found = re.fullmatch(f"(?P<root>.+?)/{''.join(spelled)}", Path(path).as_posix())
    return found.groupdict() if found else None


def under(root: str | PathLike[str], pattern: str, **wildcards: str | int) -> Path:
    """The file of ``pattern`` in a results folder that is called ``root``."""
    return Path(root) / pattern.format(**wildcards).removeprefix("results/")
