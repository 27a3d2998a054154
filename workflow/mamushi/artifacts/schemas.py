"""The tables that stages hand to each other: one definition each, so that adding one changes no
other. What each is about, and what its columns mean: docs/columns.yaml."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

NULLABLE = True


@dataclass(frozen=True)
class Table:
    """A table's name and its columns, which may be null only where declared so."""

    name: str
    schema: pa.Schema


def _table(name: str, *columns: tuple[str, pa.DataType] | tuple[str, pa.DataType, bool]) -> Table:
    return Table(name, pa.schema([pa.field(c[0], c[1], nullable=len(c) == 3) for c in columns]))


EXAMPLES = _table(
    "examples",
    ("id", pa.string()),
    ("text", pa.string()),
    ("domain", pa.string()),
    ("section", pa.string()),
    ("log_density_ratio", pa.float64(), NULLABLE),
)

DUPLICATES = _table(
    "duplicates", ("id", pa.string()), ("kept_id", pa.string(), NULLABLE), ("reason", pa.string())
)

TOKENS = _table("tokens", ("id", pa.string()), ("tokens", pa.list_(pa.int32())))
EMBEDDINGS = _table("embeddings", ("id", pa.string()), ("domain", pa.string()))
LAYERS = _table("layers", ("id", pa.string()), ("domain", pa.string()))

SHARD = _table("shard", ("row", pa.int64()))
"""Of a table of vectors, or of NLL, whose columns are beside it."""

FURTHER = {"examples": "label_", "layers": "depth_", "shard": ""}
"""Table -> how the columns begin that it may have beside those of its schema."""
SCORES = _table(
    "scores",
    ("id", pa.string()),
    ("domain", pa.string()),
    ("score", pa.float64(), NULLABLE),
    ("rank", pa.int64(), NULLABLE),
    ("fold", pa.int16(), NULLABLE),
)

REFITS = _table(
    "refits",
    ("id", pa.string()),
    ("domain", pa.string()),
    ("refit", pa.int16()),
    ("part", pa.string()),
    ("score", pa.float64(), NULLABLE),
    ("fold", pa.int16(), NULLABLE),
)

STABILITY = _table(
    "stability",
    ("id", pa.string()),
    ("rank", pa.int64()),
    ("beta", pa.float64()),
    ("frequency", pa.float64()),
)

REMOVALS = _table(
    "removals",
    ("id", pa.string()),
    ("score", pa.float64()),
    ("rank", pa.int64()),
    ("copies", pa.list_(pa.string())),
)

WEIGHTS = _table(
    "weights", ("id", pa.string()), ("weight", pa.float64()), ("copies", pa.list_(pa.string()))
)
TOKEN_RATIO = _table("token_ratio", ("id", pa.string()), ("ratio", pa.list_(pa.float32())))
SPANS = _table("spans", ("id", pa.string()), ("start", pa.int32()), ("stop", pa.int32()))

PERPLEXITY = _table(
    "perplexity",
    ("domain", pa.string()),
    ("texts", pa.int64()),
    ("tokens", pa.int64()),
    ("nll", pa.float64()),
    ("perplexity", pa.float64()),
)

NLL = _table("nll", ("id", pa.string()), ("tokens", pa.int64()), ("nll", pa.float64()))

TRAIN_LOG = _table(
    "train_log",
    ("step", pa.int64()),
    ("epoch", pa.float64()),
    ("loss", pa.float64()),
    ("tokens", pa.int64()),
    ("tokens_per_second", pa.float64()),
    ("learning_rate", pa.float64()),
    ("gradient_norm", pa.float64(), NULLABLE),
    ("seconds", pa.float64()),
)

SAD = _table(
    "sad",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("beta", pa.float64()),
    ("removed", pa.int64()),
    ("ppl_forget", pa.float64()),
    ("ppl_retain", pa.float64()),
    ("gold_ppl_forget", pa.float64()),
    ("gold_ppl_retain", pa.float64()),
    ("sad", pa.float64()),
    ("log_sad", pa.float64()),
)

STEPS = _table(
    "steps",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("gold_ppl_forget", pa.float64()),
    ("gold_ppl_retain", pa.float64()),
    ("matched_ppl_forget", pa.float64()),
    ("matched_ppl_retain", pa.float64()),
    ("sad", pa.float64()),
    ("steps_sad", pa.float64()),
    ("steps_share", pa.float64(), NULLABLE),
    ("matched_sad", pa.float64()),
)

SAD_SUMMARY = _table(
    "sad_summary",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("selector", pa.string()),
    ("beta", pa.float64()),
    ("removed", pa.int64()),
    ("seeds", pa.int64()),
    ("ppl_forget_mean", pa.float64()),
    ("ppl_forget_se", pa.float64(), NULLABLE),
    ("ppl_retain_mean", pa.float64()),
    ("ppl_retain_se", pa.float64(), NULLABLE),
    ("sad_mean", pa.float64()),
    ("sad_se", pa.float64(), NULLABLE),
    ("log_sad_mean", pa.float64()),
    ("log_sad_se", pa.float64(), NULLABLE),
    ("forget_distance_mean", pa.float64()),
    ("forget_distance_se", pa.float64(), NULLABLE),
    ("retain_distance_mean", pa.float64()),
    ("retain_distance_se", pa.float64(), NULLABLE),
    ("gold_sad", pa.float64(), NULLABLE),
    ("gold_log_sad", pa.float64(), NULLABLE),
    ("area_mean", pa.float64()),
    ("area_se", pa.float64(), NULLABLE),
    ("area_measured_mean", pa.float64()),
    ("area_measured_se", pa.float64(), NULLABLE),
    ("area_vs_random", pa.float64(), NULLABLE),
    ("area_vs_random_se", pa.float64(), NULLABLE),
)

SAD_DIFFERENCES = _table(
    "sad_differences",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("selector", pa.string()),
    ("quantity", pa.string()),
    ("beta", pa.float64(), NULLABLE),
    ("reference", pa.string()),
    ("other", pa.string()),
    ("seeds", pa.int64()),
    ("difference", pa.float64(), NULLABLE),
    ("difference_low", pa.float64(), NULLABLE),
    ("difference_high", pa.float64(), NULLABLE),
    ("p", pa.float64(), NULLABLE),
    ("p_holm", pa.float64(), NULLABLE),
    ("comparisons", pa.int64(), NULLABLE),
    ("gold_sad", pa.float64(), NULLABLE),
    ("seeds_for_difference", pa.int64(), NULLABLE),
    ("seeds_for_gold_sad", pa.int64(), NULLABLE),
)

SELECTION = _table(
    "selection",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("auc", pa.float64(), NULLABLE),
    ("auc_fold_mean", pa.float64(), NULLABLE),
    ("auc_fold_min", pa.float64(), NULLABLE),
    ("auc_fold_max", pa.float64(), NULLABLE),
    ("fold_offset", pa.float64(), NULLABLE),
    ("spearman_with_truth", pa.float64(), NULLABLE),
    ("ties", pa.int64()),
    ("chosen", pa.string(), NULLABLE),
    ("auc_gain", pa.float64(), NULLABLE),
    ("auc_gain_low", pa.float64(), NULLABLE),
    ("auc_gain_high", pa.float64(), NULLABLE),
)

TRUTH = _table(
    "truth",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("auc", pa.float64(), NULLABLE),
    ("spearman_with_truth", pa.float64(), NULLABLE),
    ("removal_regret", pa.float64()),
    ("preservation_regret", pa.float64()),
    ("area", pa.float64()),
)

SUBGROUPS = _table(
    "subgroups",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("selector", pa.string()),
    ("beta", pa.float64()),
    ("domain", pa.string()),
    ("subgroup", pa.string()),
    ("value", pa.string()),
    ("texts", pa.int64()),
    ("seeds", pa.int64()),
    ("to_beta0", pa.float64()),
    ("to_beta0_low", pa.float64(), NULLABLE),
    ("to_beta0_high", pa.float64(), NULLABLE),
    ("to_gold", pa.float64()),
    ("to_gold_low", pa.float64(), NULLABLE),
    ("to_gold_high", pa.float64(), NULLABLE),
    ("sad", pa.float64(), NULLABLE),
)

UNLEARN_LOG = _table(
    "unlearn_log",
    ("step", pa.int64()),
    ("epoch", pa.float64()),
    ("loss", pa.float64()),
    ("forget_loss", pa.float64()),
    ("retain_loss", pa.float64()),
    ("forget_mean", pa.float64()),
    ("tokens", pa.int64()),
    ("tokens_per_second", pa.float64()),
    ("learning_rate", pa.float64()),
    ("gradient_norm", pa.float64()),
    ("seconds", pa.float64()),
)

UNLEARNING = _table(
    "unlearning",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("unlearner", pa.string()),
    ("selector", pa.string()),
    ("beta", pa.float64()),
    ("removed", pa.int64()),
    ("steps", pa.int64()),
    ("stopped_at", pa.int64(), NULLABLE),
    ("ppl_forget", pa.float64()),
    ("ppl_retain", pa.float64()),
    ("start_ppl_forget", pa.float64()),
    ("start_ppl_retain", pa.float64()),
    ("gold_ppl_forget", pa.float64()),
    ("gold_ppl_retain", pa.float64()),
    ("recovery", pa.float64(), NULLABLE),
)

HALF_GAP = _table(
    "half_gap",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("unlearner", pa.string()),
    ("selector", pa.string()),
    ("seeds", pa.int64()),
    ("start_ppl_forget", pa.float64()),
    ("target_ppl_forget", pa.float64()),
    ("gold_ppl_forget", pa.float64()),
    ("budget", pa.float64(), NULLABLE),
    ("budget_low", pa.float64(), NULLABLE),
    ("budget_high", pa.float64(), NULLABLE),
    ("censored", pa.bool_()),
    ("censored_share", pa.float64(), NULLABLE),
    ("recrossings", pa.int64()),
    ("retain_factor", pa.float64(), NULLABLE),
    ("within_cap", pa.bool_(), NULLABLE),
    ("saving_vs_full", pa.float64(), NULLABLE),
    ("saving_vs_random", pa.float64(), NULLABLE),
    ("saving_vs_random_low", pa.float64(), NULLABLE),
    ("saving_vs_random_high", pa.float64(), NULLABLE),
)

CONTINUATIONS = _table(
    "continuations",
    ("prompt", pa.string()),
    ("prompt_tokens", pa.list_(pa.int32())),
    ("tokens", pa.list_(pa.int32())),
)

GENERATIONS = _table(
    "generations",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("source", pa.string()),
    ("selector", pa.string(), NULLABLE),
    ("beta", pa.float64(), NULLABLE),
    ("prompt", pa.string()),
    ("text", pa.string()),
    ("tokens", pa.int64()),
    ("repetition", pa.float64()),
    ("distinct_1", pa.float64()),
    ("distinct_2", pa.float64()),
    ("distinct_3", pa.float64()),
    ("gold_log_likelihood", pa.float64()),
)

RELEARNING_CURVE = _table(
    "relearning_curve",
    ("step", pa.int64()),
    ("examples", pa.int64()),
    ("ppl_forget", pa.float64()),
    ("ppl_retain", pa.float64()),
)

RELEARNING = _table(
    "relearning",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("source", pa.string()),
    ("selector", pa.string(), NULLABLE),
    ("beta", pa.float64(), NULLABLE),
    ("step", pa.int64()),
    ("examples", pa.int64()),
    ("ppl_forget", pa.float64()),
    ("ppl_retain", pa.float64()),
    ("relapse", pa.float64(), NULLABLE),
)

RELAPSES = _table(
    "relapses",
    ("treatment", pa.string()),
    ("amount", pa.int64()),
    ("nll_forget", pa.float64()),
    ("nll_retain", pa.float64()),
)

TASK_SCORES = _table(
    "task_scores",
    ("task", pa.string()),
    ("metric", pa.string()),
    ("value", pa.float64()),
    ("error", pa.float64(), NULLABLE),
)

_DELETED = (
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("source", pa.string()),
    ("selector", pa.string(), NULLABLE),
    ("beta", pa.float64(), NULLABLE),
)

KLOM = _table(
    "klom",
    *_DELETED,
    ("domain", pa.string()),
    ("texts", pa.int64()),
    ("seeds", pa.int64()),
    ("klom", pa.float64(), NULLABLE),
    ("klom_floor", pa.float64(), NULLABLE),
    ("excess", pa.float64(), NULLABLE),
    ("excess_low", pa.float64(), NULLABLE),
    ("excess_high", pa.float64(), NULLABLE),
    ("p", pa.float64(), NULLABLE),
    ("seeds_needed", pa.int64(), NULLABLE),
    ("why", pa.string(), NULLABLE),
)

TELL_MODELS = _table(
    "tell_models",
    *_DELETED,
    ("against", pa.string()),
    ("domain", pa.string()),
    ("pairs", pa.int64()),
    ("told", pa.float64(), NULLABLE),
    ("chance_low", pa.float64(), NULLABLE),
    ("chance_high", pa.float64(), NULLABLE),
    ("p", pa.float64(), NULLABLE),
    ("why", pa.string(), NULLABLE),
)

NAME_TEXTS = _table(
    "name_texts",
    *_DELETED,
    ("seeds", pa.int64()),
    ("removed", pa.int64()),
    ("unseen", pa.int64()),
    ("auc", pa.float64(), NULLABLE),
    ("auc_low", pa.float64(), NULLABLE),
    ("auc_high", pa.float64(), NULLABLE),
    ("gold_auc", pa.float64(), NULLABLE),
    ("gold_auc_low", pa.float64(), NULLABLE),
    ("gold_auc_high", pa.float64(), NULLABLE),
    ("why", pa.string(), NULLABLE),
)

RELAPSE = _table(
    "relapse",
    *_DELETED,
    ("treatment", pa.string()),
    ("amount", pa.int64()),
    ("seeds", pa.int64()),
    ("raised", pa.float64()),
    ("regained", pa.float64()),
    ("gold_regained", pa.float64()),
    ("excess", pa.float64()),
    ("excess_low", pa.float64(), NULLABLE),
    ("excess_high", pa.float64(), NULLABLE),
    ("retain_lost", pa.float64()),
    ("seeds_needed", pa.int64(), NULLABLE),
    ("why", pa.string(), NULLABLE),
)

UTILITY = _table(
    "utility",
    *_DELETED,
    ("subgroup", pa.string()),
    ("value", pa.string()),
    ("texts", pa.int64()),
    ("seeds", pa.int64()),
    ("ppl", pa.float64()),
    ("ppl_low", pa.float64(), NULLABLE),
    ("ppl_high", pa.float64(), NULLABLE),
)

UTILITY_TASKS = _table(
    "utility_tasks",
    *_DELETED,
    ("task", pa.string()),
    ("metric", pa.string()),
    ("seeds", pa.int64()),
    ("value", pa.float64()),
    ("value_low", pa.float64(), NULLABLE),
    ("value_high", pa.float64(), NULLABLE),
    ("error", pa.float64(), NULLABLE),
)

LIKELIHOODS = _table(
    "likelihoods",
    ("id", pa.string()),
    ("section", pa.string()),
    ("planted", pa.int64(), NULLABLE),
    ("tokens", pa.int64()),
    ("nll", pa.float64()),
    ("zlib", pa.int64()),
    ("min_k", pa.float64()),
    ("min_k_plus", pa.float64()),
)

EXTRACTION = _table(
    "extraction",
    ("id", pa.string()),
    ("planted", pa.int64(), NULLABLE),
    ("prefix", pa.float64()),
    ("decoding", pa.string()),
    ("sample", pa.int64()),
    ("tokens", pa.int64()),
    ("exact", pa.bool_()),
    ("rouge_l", pa.float64()),
    ("edit", pa.float64()),
)

WHOSE: tuple[tuple[str, pa.DataType] | tuple[str, pa.DataType, bool], ...] = (
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("method", pa.string()),
    ("selector", pa.string(), NULLABLE),
    ("beta", pa.float64(), NULLABLE),
    ("members", pa.string()),
    ("planted", pa.int64(), NULLABLE),
)
AGAINST_GOLD: tuple[tuple[str, pa.DataType] | tuple[str, pa.DataType, bool], ...] = (
    ("texts", pa.int64()),
    ("others", pa.int64(), NULLABLE),
    ("seeds", pa.int64()),
    ("start", pa.float64(), NULLABLE),
    *((name, pa.float64(), NULLABLE) for name in ("value", "low", "high")),
    *((name, pa.float64(), NULLABLE) for name in ("gold", "gold_low", "gold_high")),
    *(
        (name, pa.float64(), NULLABLE)
        for name in ("difference", "difference_low", "difference_high")
    ),
    ("at_fault", pa.bool_(), NULLABLE),
    ("verdict", pa.string(), NULLABLE),
    ("why", pa.string(), NULLABLE),
)
"""What is told of a model beside the same of gold."""

MEMBERSHIP = _table(
    "membership", *WHOSE, ("attack", pa.string()), ("measure", pa.string()), *AGAINST_GOLD
)
MEMORIZATION = _table(
    "memorization",
    *WHOSE,
    ("prefix", pa.float64()),
    ("decoding", pa.string()),
    ("measure", pa.string()),
    *AGAINST_GOLD,
)
LEFT = _table("left", *WHOSE, ("question", pa.string()), ("measure", pa.string()), *AGAINST_GOLD)

DIAGNOSTICS = _table(
    "diagnostics",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("n_forget", pa.int64()),
    ("n_retain", pa.int64()),
    ("forget_mean", pa.float64()),
    ("forget_sd", pa.float64()),
    ("forget_min", pa.float64()),
    ("forget_q25", pa.float64()),
    ("forget_median", pa.float64()),
    ("forget_q75", pa.float64()),
    ("forget_max", pa.float64()),
    ("forget_cov", pa.float64(), NULLABLE),
    ("retain_mean", pa.float64(), NULLABLE),
    ("retain_sd", pa.float64(), NULLABLE),
    ("fisher", pa.float64(), NULLABLE),
    ("auc", pa.float64(), NULLABLE),
    ("auc_fold_mean", pa.float64(), NULLABLE),
    ("auc_fold_sd", pa.float64(), NULLABLE),
    ("auc_fold_min", pa.float64(), NULLABLE),
    ("auc_fold_max", pa.float64(), NULLABLE),
    ("ece", pa.float64(), NULLABLE),
    ("fold_offset", pa.float64(), NULLABLE),
    ("ties", pa.int64()),
)

CONFOUNDS = _table(
    "confounds",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("domain", pa.string(), NULLABLE),
    ("confound", pa.string()),
    ("value", pa.string(), NULLABLE),
    ("measure", pa.string()),
    ("texts", pa.int64()),
    ("estimate", pa.float64(), NULLABLE),
    ("low", pa.float64(), NULLABLE),
    ("high", pa.float64(), NULLABLE),
    ("apart", pa.bool_(), NULLABLE),
    ("why", pa.string(), NULLABLE),
)

TRIAGE = _table(
    "triage",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("domain", pa.string()),
    ("place", pa.int64()),
    ("id", pa.string()),
    ("score", pa.float64()),
    ("fold", pa.int64(), NULLABLE),
    ("other_beyond", pa.float64()),
    ("own_beyond", pa.float64()),
    ("stable", pa.float64()),
    ("why", pa.string()),
    ("text", pa.string()),
)

GEOMETRY = _table(
    "geometry",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("k", pa.int64()),
    ("singular_forget", pa.float64()),
    ("singular_retain", pa.float64()),
    ("variance_forget", pa.float64()),
    ("variance_retain", pa.float64()),
    ("energy_forget", pa.float64()),
    ("energy_retain", pa.float64()),
    ("power", pa.float64()),
    ("power_cumulative", pa.float64()),
    ("affinity", pa.float64()),
    ("angle_median", pa.float64()),
    ("angles_above_45", pa.float64()),
    ("angle_sorted", pa.float64()),
)

CALIBRATED = _table(
    "calibrated",
    ("id", pa.string()),
    ("domain", pa.string()),
    ("score", pa.float64()),
    ("log_ratio", pa.float64()),
)

CALIBRATION = _table(
    "calibration",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("check", pa.string()),
    ("value", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("expected", pa.float64(), NULLABLE),
    ("holds", pa.bool_(), NULLABLE),
)

FRONTIER = _table(
    "frontier",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("beta", pa.float64()),
    ("removed", pa.int64()),
    ("removal", pa.float64()),
    ("removal_low", pa.float64()),
    ("removal_high", pa.float64()),
    ("preservation", pa.float64()),
    ("preservation_low", pa.float64()),
    ("preservation_high", pa.float64()),
    ("form", pa.string()),
    ("exact_removal", pa.float64(), NULLABLE),
    ("exact_preservation", pa.float64(), NULLABLE),
)

ADVICE = _table(
    "advice",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("selector", pa.string()),
    ("target", pa.string()),
    ("value", pa.float64()),
    ("budget", pa.float64(), NULLABLE),
    ("budget_low", pa.float64(), NULLABLE),
    ("budget_high", pa.float64(), NULLABLE),
    ("reason", pa.string(), NULLABLE),
    ("retraining_low", pa.float64(), NULLABLE),
    ("retraining_high", pa.float64(), NULLABLE),
    ("measured", pa.float64(), NULLABLE),
    ("error", pa.float64(), NULLABLE),
    ("predicted_area", pa.float64(), NULLABLE),
    ("measured_area", pa.float64(), NULLABLE),
)

RUNTIME = _table(
    "runtime",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("n_forget", pa.int64()),
    ("n_retain", pa.int64()),
    ("width", pa.int64()),
    ("threads", pa.int64()),
    ("repeats", pa.int64()),
    ("wall_seconds", pa.float64()),
    ("wall_spread", pa.float64()),
    ("cpu_seconds", pa.float64()),
    ("cpu_spread", pa.float64()),
    ("peak_mib", pa.float64()),
)

RANKING = _table(
    "ranking",
    ("selector", pa.string()),
    ("rank", pa.int64()),
    ("id", pa.string()),
    ("score", pa.float64()),
)

QUALITATIVE_RANKING = _table(
    "qualitative_ranking",
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("selector", pa.string()),
    ("end", pa.string()),
    ("place", pa.int64()),
    ("rank", pa.int64()),
    ("score", pa.float64()),
    ("id", pa.string()),
    ("text", pa.string()),
)

PAPER = _table(
    "paper",
    ("quantity", pa.string()),
    ("setting", pa.string()),
    ("paper", pa.float64()),
    ("dataset", pa.string()),
    ("model", pa.string()),
    ("seed", pa.int64()),
    ("ours", pa.float64(), NULLABLE),
)

THEORY = _table(
    "theory",
    ("bound", pa.string()),
    ("worlds", pa.int64()),
    ("held", pa.int64()),
    ("ratio_q05", pa.float64(), NULLABLE),
    ("ratio_median", pa.float64(), NULLABLE),
    ("ratio_q95", pa.float64(), NULLABLE),
)
