"""The jobs that changes of configuration keys run again, as text for ``contracts.jobs``.

What mostly runs together has a name; outcomes are put together from these.
"""


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
UNLEARNING_AND_RELEARNING = f"retrain 2, {DRAWN}, {UNLEARNING}, relearn 2"
"""The retrained models of the probe's lists are asked what brings the domain back."""
UNLEARNER = f"unlearn 4, unlearn_whole 2, unlearn_list 2, refine 2, {HALF_GAP}"
PROBED_UNLEARNER = f"""
    unlearn 2, unlearn_and_probe 2, unlearn_whole 2, unlearn_list 2, refine 2, {HALF_GAP},
    {BOTH_PROBED}
"""
LIST = "unlearn_list 10"

# Probes: a retrained or unlearned model is asked in the job that makes it, and so made again to be
# asked something else, or nothing -----------------------------------------------------------------

PROBED_RUNS = f"""
    evaluate 1, retrain 4, {DRAWN}, unlearn 2, unlearn_and_probe 2, refine 2, {HALF_GAP},
    generate 6, relearn 2, {BOTH_PROBED}
"""
FEWER_PROBED = f"""
    retrain 1, {DRAWN}, unlearn 1, refine 1, {HALF_GAP}, probes 1, figure_relearning 1
"""
ANOTHER_PROBED_UNLEARNER = f"unlearn_and_probe 2, refine 2, {HALF_GAP}, {BOTH_PROBED}"
OTHER_PROBED_MODELS = f"retrain 4, {DRAWN}, unlearn 2, {ANOTHER_PROBED_UNLEARNER}"
PROMPTS = f"{ANOTHER_PROBED_UNLEARNER}, generate 6"
TASKS = f"retrain 2, {DRAWN}, {ANOTHER_PROBED_UNLEARNER}"
RELEARNING = f"{TASKS}, relearn 2"
