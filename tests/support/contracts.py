"""What a change of each configuration key runs again, on the small grid of ``contract_grid``.

A contract is a row: key, another value, and the jobs by rule that would run. Several keys share an
outcome, and stand under it. The counts follow from the grid: 2 datasets x 2 models x 2 seeds = 8
runs, 3 selectors, 2 budgets, so 24 removal lists and 48 retrainings; the study `loaders` adds two
runs with one selector and one budget, the study `selectors` seven selectors and one budget on a run
of the grid. Unlearning has 5 unlearners and one selector on 2 runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


def jobs(text: str) -> dict[str, int]:
    """`score 2, remove 4` as a mapping. `refits` are made again with the scores;
    `figure_calibration` is drawn when `figure_frontier` is.
    `confounds` reads what `diagnostics` does; `triage` what `qualitative` does, in the cells that
    have a `ranking`; `subgroups` all that `tables` does but for what is said of the scores."""
    pairs = (entry.split() for entry in text.split(",") if entry.strip())
    found = {rule: int(count) for rule, count in pairs}
    if "score" in found:
        found["refits"] = found["score"]
    if "figure_frontier" in found:
        found["figure_calibration"] = 1
    if "diagnostics" in found:
        found["confounds"] = found["diagnostics"]
    if "tables" in found and ("retrain" in found or not found.keys() & {"score", "calibrate"}):
        found.setdefault("subgroups", 1)
    if "qualitative" in found and "ranking" in found:
        found["triage"] = found["ranking"]
    return {rule: count for rule, count in found.items() if count}


def together(found: Mapping[str, int]) -> dict[str, int]:
    """Jobs by rule, where retrainings that also ask count with the others."""
    several = Counter({rule: count for rule, count in found.items() if rule != ASKING})
    several["retrain"] += found.get(ASKING, 0)
    return {rule: count for rule, count in several.items() if count}


ASKING = "retrain_and_probe"


class Contract(NamedTuple):
    """A change of one key, and what would run."""

    key: str
    value: Any
    runs: dict[str, int]


def listed(lists: int) -> str:
    """What runs where so many selectors' lists are new."""
    return f"stability {lists}, manifests {lists}"


NOTHING = ""

# What mostly runs together -----------------------------------------------------------------------

ONE_PROBED = "judge 1, probes 1, figure_relearning 1"
BOTH_PROBED = "judge 2, probes 1, figure_relearning 1"
HALF_GAP = "half_gap 1, figure_half_gap 1"
DRAWN = "tables 1, figure_sad 1, figure_perplexity 1"
STUDIES = "study_tables 2, figure_study 2"
ONE_UNLEARNED = """
    unlearn 9, unlearn_and_probe 1, unlearn_whole 5, unlearn_list 5, refine 5, half_gap 1,
    figure_half_gap 1
"""
ALL_UNLEARNED = """
    unlearn 18, unlearn_and_probe 2, unlearn_whole 10, unlearn_list 10, refine 10, half_gap 1,
    figure_half_gap 1
"""
HALF_LOOKED_AT = """
    frontier 4, diagnostics 4, geometry 4, runtime 2, ranking 2, qualitative 1, evidence_tables 1,
    figure_frontier 1, figure_diagnostics 2, figure_variance 2, figure_discrimination 2,
    figure_subspaces 2
"""
EVERY_RUN_LOOKED_AT = """
    frontier 8, diagnostics 8, geometry 8, runtime 4, ranking 4, qualitative 1, evidence_tables 1,
    figure_frontier 1, figure_diagnostics 4, figure_variance 4, figure_discrimination 4,
    figure_subspaces 4
"""

# What only reads ----------------------------------------------------------------------------------

FIGURES = """
    figure_sad 1, figure_perplexity 1, figure_half_gap 1, figure_relearning 1, figure_frontier 1,
    figure_diagnostics 4, figure_variance 4, figure_discrimination 4, figure_subspaces 4,
    figure_study 2
"""
FRONTIER = "frontier 8, evidence_tables 1, figure_frontier 1"
CALIBRATED = f"calibrate 10, manifests 33, ranking 4, {FRONTIER}, {DRAWN}, {STUDIES}"
REFITS = f"refits 35, stability 33, ranking 4, triage 4, {CALIBRATED}"
"""Of every selector in all runs, those of the studies too."""
GEOMETRY = """
    geometry 8, evidence_tables 1, figure_frontier 1, figure_variance 4, figure_discrimination 4,
    figure_subspaces 4
"""
EVIDENCE_TABLES = "evidence_tables 1, figure_frontier 1"
RUNTIME = "runtime 4, evidence_tables 1, figure_frontier 1"
RATIO = f"""
    score 9, calibrate 10, manifests 33, {DRAWN}, {STUDIES}, frontier 8, diagnostics 8,
    ranking 4,
    qualitative 1, evidence_tables 1, figure_frontier 1, figure_diagnostics 4
"""

# Data ---------------------------------------------------------------------------------------------

ALL_DATA = f"""
    examples 4, base_model 1, tokens 8, contaminate 6, gold 10, beta0 10, embed 10, embed_layers 1,
    score 35,
    calibrate 10, remove 57, {listed(33)}, retrain 57, evaluate 21, {DRAWN}, {STUDIES},
    {EVERY_RUN_LOOKED_AT}, {ALL_UNLEARNED}, generate 4, relearn 2, {BOTH_PROBED}
"""
"""All but the cards of the two ready-made models, and what these say by themselves. Of unlearning,
18 + 2 models at the configured budgets: the finer ones are known once the sweeps are."""

MADE = f"""
    examples 1, base_model 1, tokens 6, contaminate 6, gold 8, beta0 8, embed 8, embed_layers 1,
    score 29,
    calibrate 8, remove 45, {listed(27)}, retrain 45, evaluate 17, {DRAWN}, {STUDIES}, frontier 6,
    diagnostics 6, geometry 6, runtime 3, ranking 3, qualitative 1, evidence_tables 1,
    figure_frontier 1, figure_diagnostics 3, figure_variance 3, figure_discrimination 3,
    figure_subspaces 3, {ALL_UNLEARNED}, generate 4, relearn 2, {BOTH_PROBED}
"""
"""The dataset `made`, and everything of the model `tiny`, which is pretrained on it."""

MINE = f"""
    examples 1, tokens 3, contaminate 2, gold 4, beta0 4, embed 4, embed_layers 1,
    score 19, calibrate 4, remove 31,
    {listed(19)}, retrain 31, evaluate 8, {DRAWN}, study_tables 1, figure_study 1, {HALF_LOOKED_AT}
"""
"""The dataset `mine` and no other. Tokens for three models: retraining of `ours` starts at
`clean`."""

OF_A_STUDY = f"""
    examples 1, tokens 1, contaminate 1, gold 1, beta0 1, embed 1, score 2, calibrate 1, remove 1,
    {listed(1)}, retrain 1, evaluate 2, study_tables 1, figure_study 1
"""
"""A dataset of the study `loaders` alone."""

# Models -------------------------------------------------------------------------------------------

TINY = f"""
    base_model 1, tokens 4, contaminate 6, gold 6, beta0 6, embed 6, embed_layers 1,
    score 23, calibrate 6,
    remove 33, {listed(21)}, retrain 33, evaluate 12, {DRAWN}, {STUDIES}, {HALF_LOOKED_AT},
    {ONE_UNLEARNED}, generate 3, relearn 1, {ONE_PROBED}
"""
OURS = f"""
    model_card 1, tokens 2, embed 4, score 12, calibrate 4, remove 24, {listed(12)}, retrain 24,
    evaluate 1, {DRAWN}, {HALF_LOOKED_AT}, {ONE_UNLEARNED}, generate 1, {ONE_PROBED}
"""
"""The embedder and what is unlearned; gold and beta 0 are trained from its base."""

CLEAN = f"""
    model_card 1, tokens 2, gold 4, beta0 4, retrain 24, evaluate 8, {DRAWN}, refine 5, {HALF_GAP},
    generate 2, relearn 1, {ONE_PROBED}
"""
"""The base of `ours`."""

OTHER_BASE = f"""
    gold 4, beta0 4, retrain 24, evaluate 8, {DRAWN}, refine 5, {HALF_GAP}, generate 2, relearn 1,
    {ONE_PROBED}
"""
NOT_CONTAMINATED = f"""
    model_card 1, tokens 2, contaminate 4, gold 4, beta0 4, embed 4, score 12, calibrate 4,
    remove 24, {listed(12)}, retrain 24, evaluate 8, {DRAWN}, {HALF_LOOKED_AT}, {ONE_UNLEARNED},
    generate 3, relearn 1, {ONE_PROBED}
"""
TOKENS = f"""
    tokens 8, contaminate 6, gold 10, beta0 10, embed 10, embed_layers 1,
    score 35, calibrate 10, remove 57,
    {listed(33)}, retrain 57, evaluate 21, {DRAWN}, {STUDIES}, {EVERY_RUN_LOOKED_AT},
    {ALL_UNLEARNED}, generate 3, relearn 2, {BOTH_PROBED}
"""

# Training -----------------------------------------------------------------------------------------

TRAINING = f"""
    contaminate 6, gold 10, beta0 10, embed 6, embed_layers 1,
    score 23, calibrate 6, remove 33, {listed(21)},
    retrain 57, evaluate 20, {DRAWN}, {STUDIES}, {HALF_LOOKED_AT}, unlearn 9, unlearn_and_probe 1,
    unlearn_whole 5, unlearn_list 5, refine 10, {HALF_GAP}, generate 3, relearn 2, {BOTH_PROBED}
"""
"""From the contaminated models on. `ours` embeds and is unlearned as it is."""

PRECISION = f"""
    contaminate 6, gold 10, beta0 10, embed 6, embed_layers 1,
    score 23, calibrate 6, remove 33, {listed(21)},
    retrain 57, evaluate 21, {DRAWN}, {STUDIES}, {HALF_LOOKED_AT}, {ALL_UNLEARNED}, generate 6,
    relearn 2, {BOTH_PROBED}
"""
"""The same, and all forward passes of models as they are."""

METHOD = TRAINING.replace(
    "unlearn 9, unlearn_and_probe 1,\n    unlearn_whole 5, unlearn_list 5",
    "unlearn 18, unlearn_and_probe 2, unlearn_whole 10, unlearn_list 10",
)
"""The same, and the unlearning of `ours`, which takes the method too."""

MATCHED = f"""
    gold 10, retrain 57, evaluate 10, {DRAWN}, {STUDIES}, refine 10, {HALF_GAP}, generate 2,
    relearn 2, {BOTH_PROBED}
"""
"""Contaminated and beta 0 take the same steps either way."""

TRAINING_OF_TINY = f"""
    contaminate 6, gold 6, beta0 6, embed 6, embed_layers 1,
    score 23, calibrate 6, remove 33, {listed(21)},
    retrain 33, evaluate 12, {DRAWN}, {STUDIES}, {HALF_LOOKED_AT}, {ONE_UNLEARNED}, generate 2,
    relearn 1, {ONE_PROBED}
"""
PRECISION_OF_TINY = TRAINING_OF_TINY.replace("generate 2", "generate 3")
MATCHED_OF_TINY = f"""
    gold 6, retrain 33, evaluate 6, {DRAWN}, {STUDIES}, refine 5, {HALF_GAP}, generate 1, relearn 1,
    {ONE_PROBED}
"""
TRAINING_OF_OURS = f"""
    gold 4, beta0 4, retrain 24, evaluate 8, {DRAWN}, refine 5, {HALF_GAP}, generate 1, relearn 1,
    {ONE_PROBED}
"""
PRECISION_OF_OURS = f"""
    gold 4, beta0 4, retrain 24, evaluate 9, {DRAWN}, {ONE_UNLEARNED}, generate 3, relearn 1,
    {ONE_PROBED}
"""
MATCHED_OF_OURS = f"""
    gold 4, retrain 24, evaluate 4, {DRAWN}, refine 5, {HALF_GAP}, generate 1, relearn 1,
    {ONE_PROBED}
"""
LAYERS = f"""
    embed_layers 1, score 3, remove 3, {listed(3)}, retrain 3, study_tables 1, figure_study 1
"""
"""Of the selectors that read other layers, which the study alone has."""

EVALUATION = f"""
    retrain 57, evaluate 21, {DRAWN}, {STUDIES}, {ALL_UNLEARNED}, relearn 2, {BOTH_PROBED}
"""
"""Retrained models are measured where they are trained, and not kept."""

# Selection ----------------------------------------------------------------------------------------

EMBEDDING = f"""
    embed 10, embed_layers 1,
    score 35, calibrate 10, remove 57, {listed(33)}, retrain 57, {DRAWN}, {STUDIES},
    {EVERY_RUN_LOOKED_AT}, unlearn 18, unlearn_and_probe 2, refine 10, {HALF_GAP}, {BOTH_PROBED}
"""
MAMUSHI = f"""
    score 19, calibrate 10, remove 33, manifests 33, stability 17, retrain 33, {DRAWN},
    {STUDIES}, frontier 8,
    diagnostics 8, runtime 4, ranking 4, qualitative 1, evidence_tables 1, figure_frontier 1,
    figure_diagnostics 4, unlearn 18, unlearn_and_probe 2, refine 10, {HALF_GAP}, {BOTH_PROBED}
"""
"""Its scores (8 runs, and 2 of a study as the ratio), those of `anti_mamushi` and of `auto`, which
has its networks, their lists; all manifests, since it estimates the ratio. Not `random`, nor
`again`, which has its own settings."""

DERIVED = f"""
    score 15, remove 16, manifests 8, refits 15, stability 8, retrain 16, {DRAWN}, frontier 8,
    diagnostics 8, runtime 4, ranking 4, evidence_tables 1, figure_frontier 1
"""
"""`anti_mamushi`, and the scores of `again` in the 7 runs that had none."""

SELECTOR_OF_A_STUDY = f"""
    score 1, remove 1, {listed(1)}, retrain 1, study_tables 1, figure_study 1
"""

# The grid -----------------------------------------------------------------------------------------

FEWER_RUNS = f"{DRAWN}, qualitative 1, evidence_tables 1, figure_frontier 1"
ANOTHER_DATASET = f"""
    tokens 2, contaminate 1, gold 3, beta0 3, embed 3, score 10, calibrate 3, remove 23,
    {listed(11)}, retrain 23, evaluate 6, {DRAWN}, {HALF_LOOKED_AT}
"""
"""`jigsaw`, of which the study has a part already."""

ANOTHER_MODEL = f"""
    contaminate 4, gold 4, beta0 4, embed 4, score 12, calibrate 4, remove 24, {listed(12)},
    retrain 24, evaluate 8, {DRAWN}, {HALF_LOOKED_AT}
"""
ANOTHER_SEED = f"""
    contaminate 2, gold 4, beta0 4, embed 4, score 12, calibrate 4, remove 24, {listed(12)},
    retrain 24, evaluate 8, {DRAWN}, frontier 4, diagnostics 4, geometry 4, evidence_tables 1,
    figure_frontier 1
"""
OTHER_FIRST_SEED = f"""
    {DRAWN}, runtime 4, ranking 4, qualitative 1, evidence_tables 1, figure_frontier 1,
    figure_diagnostics 4, figure_variance 4, figure_discrimination 4, figure_subspaces 4
"""
"""What shows a single run shows the first seed's."""

ANOTHER_BUDGET = f"""
    remove 24, manifests 33, stability 33, retrain 24, {DRAWN}, {STUDIES}, ranking 4,
    figure_frontier 1
"""
"""A job writes a selector's manifests at all budgets, of the grid and the studies. The frontier has
this budget already."""

FEWER_BUDGETS = f"manifests 33, stability 33, {DRAWN}, {STUDIES}, ranking 4, figure_frontier 1"
ANOTHER_SELECTOR = f"""
    score 8, remove 16, {listed(8)}, retrain 16, {DRAWN}, frontier 8, diagnostics 8, runtime 4,
    ranking 4, evidence_tables 1, figure_frontier 1
"""
FEWER_SELECTORS = f"""
    {DRAWN}, frontier 8, diagnostics 8, runtime 4, ranking 4, evidence_tables 1, figure_frontier 1
"""
LARGER_STUDY = (
    f"embed_layers 1, score 7, remove 7, {listed(7)}, retrain 7, study_tables 1, figure_study 1"
)
WEIGHED = "weigh 1, manifests 1, retrain 1, study_tables 1, figure_study 1"
MASKED = "token_ratio 1, spans 1, manifests 1, retrain 1, study_tables 1, figure_study 1"
"""What a selector of the study does, in its one run at its one budget."""
ANOTHER_BUDGET_OF_A_STUDY = f"""
    remove 7, manifests 33, stability 33, retrain 7, {DRAWN}, subgroups 0, {STUDIES}, ranking 4
"""
"""What the study retrains is in no table of the grid."""

# Unlearning ---------------------------------------------------------------------------------------

UNLEARNING_RUNS = f"""
    evaluate 1, unlearn 20, unlearn_whole 10, unlearn_list 10, refine 10, {HALF_GAP}
"""
"""Another dataset or seed: each unlearner on one more run of each model. Of the ends, only `ours`
as it is was not measured there."""

UNLEARNING_SELECTOR = "unlearn 20, refine 10, half_gap 1, figure_half_gap 1"
UNLEARNING_BUDGET = f"remove 2, retrain 2, unlearn 10, refine 10, {HALF_GAP}"
START = f"evaluate 1, {ONE_UNLEARNED}, {ONE_PROBED}"
"""Of `tiny` alone: `ours` starts as it is."""

SWEEPS = "refine 10, half_gap 1, figure_half_gap 1"
UNLEARNING = f"{ALL_UNLEARNED}, {BOTH_PROBED}"
UNLEARNING_AND_RELEARNING = UNLEARNING + ", relearn 2"
UNLEARNER = f"unlearn 4, unlearn_whole 2, unlearn_list 2, refine 2, {HALF_GAP}"
PROBED_UNLEARNER = f"""
    unlearn 2, unlearn_and_probe 2, unlearn_whole 2, unlearn_list 2, refine 2, {HALF_GAP},
    {BOTH_PROBED}
"""
LIST = "unlearn_list 10"

# Probes: an unlearned model is asked in the job that makes it, and so made again to be asked ------

PROBED_RUNS = f"""
    evaluate 1, unlearn 2, unlearn_and_probe 2, refine 2, {HALF_GAP}, generate 6, relearn 2,
    {BOTH_PROBED}
"""
FEWER_PROBED = f"unlearn 1, refine 1, {HALF_GAP}, probes 1, figure_relearning 1"
ANOTHER_PROBED_UNLEARNER = f"unlearn_and_probe 2, refine 2, {HALF_GAP}, {BOTH_PROBED}"
OTHER_PROBED_MODELS = f"unlearn 2, unlearn_and_probe 2, refine 2, {HALF_GAP}, {BOTH_PROBED}"
PROMPTS = f"unlearn_and_probe 2, refine 2, {HALF_GAP}, generate 6, {BOTH_PROBED}"
RELEARNING = f"""
    retrain 2, {DRAWN}, unlearn_and_probe 2, refine 2, {HALF_GAP}, relearn 2, {BOTH_PROBED}
"""
"""The retrained models of the probe's lists are asked what brings the domain back."""


OTHER_TRAINING: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 16,
    "learning_rate": 1e-4,
    "betas": [0.8, 0.999],
    "epsilon": 1e-7,
    "weight_decay": 0.1,
    "schedule": "linear",
    "warmup_steps": 10,
    "gradient_clip": 1.0,
    "max_length": 64,
    "trained_blocks": 2,
    "train_input_embedding": False,
    "train_output_head": False,
    "train_final_norm": True,
}
ADAPTERS: dict[str, Any] = {
    "rank": 8,
    "alpha": 8.0,
    "dropout": 0.1,
    "target_modules": ["q_proj"],
}
OTHER_UNLEARNING: dict[str, Any] = {
    "epochs": 2,
    "batch_size": 4,
    "betas": [0.5, 0.999],
    "epsilon": 1e-7,
    "weight_decay": 0.1,
    "gradient_clip": 1.0,
    "stop_window": 4,
    "steps": "matched",
}
TABLE = {"kind": "table", "path": "raw/mine2.csv", "forget": {"column": "topic", "values": [1]}}

ROWS: dict[str, dict[str, list[Any]]] = {
    # outcome -> key -> values, each a change of its own
    ANOTHER_DATASET: {"grid.datasets": [["made", "mine", "jigsaw"]]},
    FEWER_RUNS: {"grid.datasets": [["mine"]], "grid.models": [["tiny"]]},
    ANOTHER_MODEL: {"grid.models": [["tiny", "ours", "clean"]]},
    ANOTHER_SEED: {"grid.seeds": [[0, 1, 2]]},
    OTHER_FIRST_SEED: {"grid.seeds": [[1]]},
    ANOTHER_BUDGET: {"grid.budgets": [[0.2, 0.4, 0.95]]},
    FEWER_BUDGETS: {"grid.budgets": [[0.4]]},
    ANOTHER_SELECTOR: {"grid.selectors": [["random", "mamushi", "anti_mamushi", "vmf"]]},
    FEWER_SELECTORS: {"grid.selectors": [["random"]]},
    LARGER_STUDY: {
        "studies.selectors.datasets": [["mine", "made"]],
        "studies.selectors.models": [["tiny", "ours"]],
        "studies.selectors.seeds": [[0, 1]],
    },
    ANOTHER_BUDGET_OF_A_STUDY: {"studies.selectors.budgets": [[0.4, 0.6]]},
    SELECTOR_OF_A_STUDY: {
        "studies.selectors.selectors": [
            [
                *("kcenter", "mamushi_lr", "linear", "lexical", "mamushi_stack", "auto", "again"),
                "vmf",
            ]
        ],
        "selectors.again.kind": ["mamushi_lr"],
        "selectors.kcenter.gram_gib": [1.0],
        "selectors.mamushi_lr.folds": [4],
        "selectors.mamushi_lr.fit_sample": [1000],
        "selectors.mamushi_lr.alpha": [0.2],
        "selectors.mamushi_lr.epochs": [5],
        "selectors.mamushi_lr.patience": [2],
        "selectors.mamushi_lr.tolerance": [1e-3],
        "selectors.mamushi_lr.average": [True],
        "selectors.mamushi_lr.solver": ["newton-cholesky"],
        "selectors.linear.depths": [[0.75]],
        "selectors.linear.folds": [4],
        "selectors.linear.fit_sample": [1000],
        "selectors.linear.prior": [1.0],
        "selectors.lexical.folds": [4],
        "selectors.lexical.fit_sample": [1000],
        "selectors.lexical.prior": [1.0],
        "selectors.mamushi_stack.depths": [[0.5]],
        "selectors.mamushi_stack.lexical": [False],
        "selectors.mamushi_stack.networks": ["again"],
        "selectors.mamushi_stack.inner_networks": [1],
        "selectors.mamushi_stack.folds": [4],
        "selectors.mamushi_stack.fit_sample": [1000],
        "selectors.mamushi_stack.repeats": [2],
        "selectors.mamushi_stack.prior": [1.0],
        "selectors.auto.depths": [[0.5]],
        "selectors.auto.lexical": [False],
        "selectors.auto.networks": ["again"],
        "selectors.auto.inner_networks": [1],
        "selectors.auto.folds": [4],
        "selectors.auto.fit_sample": [1000],
        "selectors.auto.repeats": [2],
        "selectors.auto.prior": [1.0],
    },
    MAMUSHI: {
        "selectors.mamushi.estimator": ["sklearn"],
        "selectors.mamushi.folds": [4],
        "selectors.mamushi.fit_sample": [1000],
        "selectors.mamushi.hidden": [[8]],
        "selectors.mamushi.learning_rate": [1e-2],
        "selectors.mamushi.batch_size": [32],
        "selectors.mamushi.epochs": [5],
        "selectors.mamushi.patience": [2],
        "selectors.mamushi.tolerance": [1e-3],
        "selectors.mamushi.validation": [0.2],
        "selectors.mamushi.alpha": [0.2],
        "selectors.mamushi.precision": ["fp32"],
        "selectors.mamushi.seeds_averaged": [2],
    },
    DERIVED: {"selectors.anti_mamushi.of": ["again"]},
    RATIO: {"removal.ratio": ["mamushi_lr"]},
    WEIGHED: {"selectors.again.action": ["downweight"]},
    MASKED: {"selectors.again.action": ["mask"]},
    ALL_DATA: {
        "data.split_seed": [1],
        "data.near_duplicates": [0.8],
        "data.shingle_words": [4],
        "data.permutations": [64],
        "data.max_characters": [2_000_000],
    },
    MADE: {
        "datasets.made": [TABLE],
        "datasets.made.sizes": [{"inference": {"forget": 10, "retain": 10}}],
        "datasets.made.vocabulary": [100],
        "datasets.made.weights": [{"forget": [0.5, 0.5], "retain": [0.1, 0.9]}],
        "datasets.made.topic_share": [0.5],
        "datasets.made.words": [[10, 20]],
        "datasets.made.world": ["transition"],
        "datasets.made.synonyms": [3],
        "datasets.made.lengths": ["log_uniform"],
        "datasets.made.noise": [{"forget_in_retain": 0.05, "retain_in_forget": 0.05}],
        "datasets.made.seed": [1],
    },
    MINE: {
        "datasets.mine.planted": [{"texts": 2, "repeats": [1, 3]}],
        "datasets.mine.sections": [
            {"contamination": 0.5, "inference": 0.3, "evaluation": 0.2},
            {"contamination": 0.4, "inference": 0.5, "evaluation": 0.1},
        ],
        "datasets.mine.limit.forget": [100],
        "datasets.mine.limit.retain": [100],
        "datasets.mine.path": ["raw/mine2.csv"],
        "datasets.mine.text": ["text"],
        "datasets.mine.id": ["number"],
        "datasets.mine.forget": [{"values": ["cats"]}],
        "datasets.mine.retain": [{"column": "topic", "values": ["cats"]}],
        "datasets.mine.section": ["part"],
        "datasets.mine.section_values": [{"train": "inference"}],
        "datasets.mine.stratum": ["group"],
        "datasets.mine.labels": [["loud"]],
    },
    OF_A_STUDY: {
        "datasets.jigsaw.path": ["raw/jigsaw2"],
        "datasets.newsgroups.path": ["raw/other.tar.gz"],
        "datasets.newsgroups.forget": [["sci.space"]],
    },
    OURS: {
        "models.ours.source": ["raw/ours2"],
        "models.ours.revision": ["0" * 40],
        "models.ours.trust_remote_code": [True],
    },
    NOT_CONTAMINATED: {"models.ours.contaminated": [False]},
    OTHER_BASE: {"models.ours.base": ["tiny"]},
    CLEAN: {"models.clean.trust_remote_code": [True]},
    TINY: {
        "models.tiny.family": ["qwen2"],
        "models.tiny.hidden_size": [32],
        "models.tiny.layers": [2],
        "models.tiny.heads": [2],
        "models.tiny.key_value_heads": [1],
        "models.tiny.intermediate_size": [64],
        "models.tiny.vocabulary_size": [512],
        "models.tiny.max_positions": [512],
        "models.tiny.pretraining.datasets": [["made", "mine"]],
        "models.tiny.pretraining.section": ["inference"],
        "models.tiny.pretraining.domains": [["retain"]],
        "models.tiny.pretraining.epochs": [2],
        "models.tiny.pretraining.batch_size": [16],
        "models.tiny.pretraining.learning_rate": [1e-3],
        "models.tiny.pretraining.max_length": [64],
        "models.tiny.pretraining.seed": [1],
    },
    TOKENS: {"tokens.max_length": [300]},
    TRAINING: {f"training.{key}": [value] for key, value in OTHER_TRAINING.items()},
    METHOD: {"training.method": ["lora", "full"]},
    PRECISION: {"training.precision": ["fp32"]},
    MATCHED: {"training.steps": ["matched"]},
    TRAINING_OF_TINY: {
        f"models.tiny.training.{key}": [value]
        for key, value in {**OTHER_TRAINING, "method": "lora"}.items()
    },
    PRECISION_OF_TINY: {"models.tiny.training.precision": ["fp32"]},
    MATCHED_OF_TINY: {"models.tiny.training.steps": ["matched"]},
    TRAINING_OF_OURS: {
        "models.ours.training.learning_rate": [1e-4],
        "models.ours.training.trained_blocks": [2],
    },
    PRECISION_OF_OURS: {"models.ours.training.precision": ["fp32"]},
    MATCHED_OF_OURS: {"models.ours.training.steps": ["matched"]},
    EMBEDDING: {
        "embedding.pooling": ["last"],
        "embedding.skip_bos": [False],
        "embedding.max_length": [64],
        "embedding.precision": ["fp32"],
    },
    EMBEDDING.replace("embed_layers 1,", ""): {"embedding.layer": [2]},
    LAYERS: {"embedding.depths": [[0.25, 0.5, 0.75, 0.9]]},
    EVALUATION: {"evaluation.max_length": [64]},
    "gold_matched 8, evaluate 8, steps 1": {"evaluation.matched_gold": [True]},
    UNLEARNING_RUNS: {"unlearning.datasets": [["made", "mine"]], "unlearning.seeds": [[0, 1]]},
    UNLEARNING_SELECTOR: {"unlearning.selectors": [["mamushi", "random"]]},
    UNLEARNING_BUDGET: {"unlearning.budgets": [[0.2, 0.4, 0.6]]},
    START: {"unlearning.start": ["contaminated"]},
    SWEEPS: {"unlearning.fine": [0.05, None], "unlearning.target": [0.6]},
    HALF_GAP: {
        "unlearning.models": [["tiny"]],
        "unlearning.unlearners": [["neggrad_plus"]],
        "unlearning.retain_cap": [4.0],
    },
    UNLEARNING_AND_RELEARNING: {
        "unlearning.trained_blocks": [2],
        "unlearning.max_length": [64],
    },
    UNLEARNING: {f"unlearning.training.{key}": [value] for key, value in OTHER_UNLEARNING.items()},
    UNLEARNER: {
        **{f"unlearners.salun.training.{key}": [value] for key, value in OTHER_UNLEARNING.items()},
        "unlearners.salun.kind": ["npo"],
        "unlearners.salun.learning_rate": [1e-4],
        "unlearners.salun.forget_weight": [0.5],
        "unlearners.salun.retain_weight": [0.5],
        "unlearners.salun.sparsity": [0.2],
        "unlearners.graddiff.learning_rate": [1e-4],
        "unlearners.graddiff.forget_weight": [0.5],
        "unlearners.graddiff.retain_weight": [0.5],
        "unlearners.graddiff.stop_forget_loss": [4.0],
        "unlearners.npo.learning_rate": [1e-4],
        "unlearners.npo.beta": [0.2],
        "unlearners.npo.retain_weight": [0.5],
        "unlearners.simnpo.learning_rate": [1e-4],
        "unlearners.simnpo.beta": [0.5],
        "unlearners.simnpo.gamma": [0.5],
        "unlearners.simnpo.retain_weight": [0.5],
    },
    PROBED_UNLEARNER: {
        "unlearners.neggrad_plus.training.epochs": [2],
        "unlearners.neggrad_plus.learning_rate": [1e-4],
        "unlearners.neggrad_plus.beta_ng": [0.5],
        "unlearners.neggrad_plus.stop_forget_loss": [4.0],
    },
    LIST: {"unlearning.lists": [{"second": "raw/agreed.txt"}, {"agreed": "raw/mine.csv"}]},
    PROBED_RUNS: {"probe.datasets": [["mine"]], "probe.seeds": [[1]]},
    FEWER_PROBED: {"probe.models": [["tiny"]]},
    ANOTHER_PROBED_UNLEARNER: {"probe.unlearners": [["neggrad_plus", "salun"]]},
    OTHER_PROBED_MODELS: {"probe.selectors": [["random"]], "probe.budget": [0.2]},
    PROMPTS: {"probe.prompts": [["So it"]], "probe.new_tokens": [20]},
    RELEARNING: {
        "probe.relearning.examples": [8],
        "probe.relearning.steps": [[1, 2]],
        "probe.relearning.batch_size": [4],
        "probe.relearning.learning_rate": [1e-4],
    },
    FRONTIER: {"evidence.budgets": [[0.5]]},
    CALIBRATED: {"evidence.resamples": [10]},
    REFITS: {"evidence.refits.whole": [2], "evidence.refits.halves": [0]},
    GEOMETRY: {"evidence.components": [10]},
    EVIDENCE_TABLES: {
        "evidence.targets": [[{"target": "sad", "value": 0.6}]],
        "evidence.measured": [True],
        "evidence.worlds": [10],
    },
    RUNTIME: {"evidence.runtime.repeats": [2], "evidence.runtime.threads": [2]},
    FIGURES: {
        "figures.panel_width": [3.0],
        "figures.panel_height": [3.0],
        "figures.font_size": [9],
        "figures.dpi": [100],
        "figures.log_scale": [True],
    },
    NOTHING: {
        "execution.micro_batch_size": [8],
        "execution.batch_tokens": [1024],
        "execution.shards": [3],
        "execution.checkpoint_seconds": [5],
        "execution.compile": [True],
        "extends": [None],  # read before there is a configuration
        "execution.cache_trunk": [False],
        "execution.device": ["cpu"],
        "execution.gpus_per_job": [2],
        "execution.gpu_memory": [40.0],
        "execution.tracking": ["mlflow"],
        "utility.tasks": [["arc_easy"]],  # of the target `left`: tests/dag/test_left_models.py
        "keep_checkpoints": [True],  # from then on
        # Of a target of its own: see tests/dag/test_left.py.
        "left.datasets": [["mine"]],
        "left.models": [["tiny"]],
        "left.seeds": [[1]],
        "left.selectors": [["mamushi"]],
        "left.budgets": [[0.3]],
        "left.unlearners": [["salun"]],
        "left.texts": [10],
        "left.least": [0.3],
        "left.extraction": [{"texts": 10, "prefixes": [0.2], "samples": 1}],
        # Nothing of this model is trained under its own name.
        "models.clean.training.learning_rate": [1e-4],
        "models.clean.training.trained_blocks": [2],
        "models.clean.training.precision": ["fp32"],
        # Of a method that nothing is trained by.
        "training.lora": [ADAPTERS],
        # Of a model that the grid does not have.
        "models.theirs": [
            {
                "contaminated": True,
                "embeddings": {"path": "v.npy", "id": "a", "vector": "b", "ids": "i.txt"},
            },
            {"kind": "encoder", "source": "raw/encoder", "revision": "0" * 40},
        ],
        "models.tiny.training.lora": [ADAPTERS],
    },
}


def contracts() -> Iterator[Contract]:
    """All rows of the table."""
    for outcome, keys in ROWS.items():
        for key, values in keys.items():
            for value in values:
                yield Contract(key, value, jobs(outcome))
