"""What a change of each configuration key runs again, on the small grid of ``contract_grid``.

A contract is a row: key, another value, and the jobs by rule that would run. Several keys share an
outcome, and stand under it. The counts follow from the grid: 2 datasets x 2 models x 2 seeds = 8
runs, 3 selectors, 2 budgets, so 24 removal lists and 48 retrainings; the study `loaders` adds two
runs with one selector and one budget, the study `selectors` seven selectors and one budget on a run
of the grid. Unlearning has 5 unlearners and one selector on 2 runs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.support import outcomes


def jobs(text: str) -> dict[str, int]:
    """`score 2, remove 4` as a mapping. `refits` are made again with the scores;
    `confounds` reads what `diagnostics` does; `triage` what `qualitative` does, in the cells that
    have a `ranking`; `subgroups` all that `tables` does but for what is said of the scores."""
    pairs = (entry.split() for entry in text.split(",") if entry.strip())
    found = {rule: int(count) for rule, count in pairs}
    if "score" in found:
        found["refits"] = found["score"]
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
    outcomes.ANOTHER_DATASET: {"grid.datasets": [["made", "mine", "jigsaw"]]},
    outcomes.FEWER_RUNS: {"grid.datasets": [["mine"]], "grid.models": [["tiny"]]},
    outcomes.ANOTHER_MODEL: {"grid.models": [["tiny", "ours", "clean"]]},
    outcomes.ANOTHER_SEED: {"grid.seeds": [[0, 1, 2]]},
    outcomes.OTHER_FIRST_SEED: {"grid.seeds": [[1]]},
    outcomes.ANOTHER_BUDGET: {"grid.budgets": [[0.2, 0.4, 0.95]]},
    outcomes.FEWER_BUDGETS: {"grid.budgets": [[0.4]]},
    outcomes.ANOTHER_SELECTOR: {"grid.selectors": [["random", "mamushi", "anti_mamushi", "vmf"]]},
    outcomes.FEWER_SELECTORS: {"grid.selectors": [["random"]]},
    outcomes.LARGER_STUDY: {
        "studies.selectors.datasets": [["mine", "made"]],
        "studies.selectors.models": [["tiny", "ours"]],
        "studies.selectors.seeds": [[0, 1]],
    },
    outcomes.ANOTHER_BUDGET_OF_A_STUDY: {"studies.selectors.budgets": [[0.4, 0.6]]},
    outcomes.SELECTOR_OF_A_STUDY: {
        "studies.selectors.selectors": [
            [
                *("kcenter", "mamushi_lr", "linear", "lexical", "aside", "auto", "again"),
                "vmf",
            ]
        ],
        "selectors.again.kind": ["mamushi_lr"],
        "selectors.mamushi_lr.folds": [4],
        "selectors.mamushi_lr.fit_sample": [1000],
        "selectors.mamushi_lr.alpha": [0.2],
        "selectors.mamushi_lr.epochs": [5],
        "selectors.mamushi_lr.solver": ["newton-cholesky"],
        "selectors.linear.depths": [[0.75]],
        "selectors.linear.folds": [4],
        "selectors.linear.fit_sample": [1000],
        "selectors.linear.prior": [1.0],
        "selectors.lexical.folds": [4],
        "selectors.lexical.fit_sample": [1000],
        "selectors.lexical.prior": [1.0],
        "selectors.auto.depths": [[0.5]],
        "selectors.auto.lexical": [False],
        "selectors.auto.networks": ["again"],
        "selectors.auto.inner_networks": [1],
        "selectors.auto.folds": [4],
        "selectors.auto.fit_sample": [1000],
        "selectors.auto.repeats": [2],
        "selectors.auto.prior": [1.0],
    },
    outcomes.MAMUSHI: {
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
    outcomes.DERIVED: {"selectors.anti_mamushi.of": ["again"]},
    outcomes.RATIO: {"removal.ratio": ["mamushi_lr"]},
    outcomes.WEIGHED: {"selectors.again.action": ["downweight"]},
    outcomes.MASKED: {"selectors.again.action": ["mask"]},
    outcomes.ALL_DATA: {
        "data.split_seed": [1],
        "data.near_duplicates": [0.8],
        "data.shingle_words": [4],
        "data.max_characters": [2_000_000],
    },
    outcomes.MADE: {
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
    outcomes.MINE: {
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
        "datasets.mine.labels": [["loud"]],
    },
    outcomes.OF_A_STUDY: {
        "datasets.jigsaw.path": ["raw/jigsaw2"],
        "datasets.newsgroups.path": ["raw/other.tar.gz"],
        "datasets.newsgroups.forget": [["sci.space"]],
    },
    outcomes.OURS: {
        "models.ours.source": ["raw/ours2"],
        "models.ours.revision": ["0" * 40],
    },
    outcomes.NOT_CONTAMINATED: {"models.ours.contaminated": [False]},
    outcomes.OTHER_BASE: {"models.ours.base": ["tiny"]},
    outcomes.CLEAN: {"models.clean.revision": ["0" * 40]},
    outcomes.TINY: {
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
    outcomes.TOKENS: {"tokens.max_length": [300]},
    outcomes.TRAINING: {f"training.{key}": [value] for key, value in OTHER_TRAINING.items()},
    outcomes.METHOD: {"training.method": ["lora", "full"]},
    outcomes.PRECISION: {"training.precision": ["fp32"]},
    outcomes.MATCHED: {"training.steps": ["matched"]},
    outcomes.TRAINING_OF_TINY: {
        f"models.tiny.training.{key}": [value]
        for key, value in {**OTHER_TRAINING, "method": "lora"}.items()
    },
    outcomes.PRECISION_OF_TINY: {"models.tiny.training.precision": ["fp32"]},
    outcomes.MATCHED_OF_TINY: {"models.tiny.training.steps": ["matched"]},
    outcomes.TRAINING_OF_OURS: {
        "models.ours.training.learning_rate": [1e-4],
        "models.ours.training.trained_blocks": [2],
    },
    outcomes.PRECISION_OF_OURS: {"models.ours.training.precision": ["fp32"]},
    outcomes.MATCHED_OF_OURS: {"models.ours.training.steps": ["matched"]},
    outcomes.EMBEDDING: {
        "embedding.pooling": ["last"],
        "embedding.skip_bos": [False],
        "embedding.max_length": [64],
        "embedding.precision": ["fp32"],
    },
    outcomes.EMBEDDING.replace("embed_layers 1,", ""): {"embedding.layer": [2]},
    outcomes.LAYERS: {"embedding.depths": [[0.25, 0.5, 0.75, 0.9]]},
    outcomes.EVALUATION: {"evaluation.max_length": [64]},
    "gold_matched 8, evaluate 8, steps 1": {"evaluation.matched_gold": [True]},
    outcomes.UNLEARNING_RUNS: {
        "unlearning.datasets": [["made", "mine"]],
        "unlearning.seeds": [[0, 1]],
    },
    outcomes.UNLEARNING_SELECTOR: {"unlearning.selectors": [["mamushi", "random"]]},
    outcomes.UNLEARNING_BUDGET: {"unlearning.budgets": [[0.2, 0.4, 0.6]]},
    outcomes.START: {"unlearning.start": ["contaminated"]},
    outcomes.SWEEPS: {"unlearning.fine": [0.05, None], "unlearning.target": [0.6]},
    outcomes.HALF_GAP: {
        "unlearning.models": [["tiny"]],
        "unlearning.unlearners": [["neggrad_plus"]],
        "unlearning.retain_cap": [4.0],
    },
    outcomes.UNLEARNING_AND_RELEARNING: {
        "unlearning.trained_blocks": [2],
        "unlearning.max_length": [64],
    },
    outcomes.UNLEARNING: {
        f"unlearning.training.{key}": [value] for key, value in OTHER_UNLEARNING.items()
    },
    outcomes.UNLEARNER: {
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
    outcomes.PROBED_UNLEARNER: {
        "unlearners.neggrad_plus.training.epochs": [2],
        "unlearners.neggrad_plus.learning_rate": [1e-4],
        "unlearners.neggrad_plus.beta_ng": [0.5],
        "unlearners.neggrad_plus.stop_forget_loss": [4.0],
    },
    outcomes.LIST: {"unlearning.lists": [{"second": "raw/agreed.txt"}, {"agreed": "raw/mine.csv"}]},
    outcomes.PROBED_RUNS: {"probe.datasets": [["mine"]], "probe.seeds": [[1]]},
    outcomes.FEWER_PROBED: {"probe.models": [["tiny"]]},
    outcomes.ANOTHER_PROBED_UNLEARNER: {"probe.unlearners": [["neggrad_plus", "salun"]]},
    outcomes.OTHER_PROBED_MODELS: {"probe.selectors": [["random"]], "probe.budget": [0.2]},
    outcomes.PROMPTS: {"probe.prompts": [["So it"]], "probe.new_tokens": [20]},
    outcomes.TASKS: {"utility.tasks": [["arc_easy"]]},
    outcomes.RELEARNING: {
        "probe.relearning.examples": [8],
        "probe.relearning.steps": [[1, 2]],
        "probe.relearning.batch_size": [4],
        "probe.relearning.learning_rate": [1e-4],
    },
    outcomes.FRONTIER: {"evidence.budgets": [[0.5]]},
    outcomes.CALIBRATED: {"evidence.resamples": [10]},
    outcomes.REFITS: {"evidence.refits.whole": [2], "evidence.refits.halves": [0]},
    outcomes.GEOMETRY: {"evidence.components": [10]},
    outcomes.EVIDENCE_TABLES: {
        "evidence.targets": [[{"target": "sad", "value": 0.6}]],
        "evidence.measured": [True],
    },
    outcomes.RUNTIME: {"evidence.runtime.repeats": [2], "evidence.runtime.threads": [2]},
    outcomes.NOTHING: {
        "execution.micro_batch_size": [8],
        "execution.batch_tokens": [1024],
        "execution.shards": [3],
        "execution.checkpoint_seconds": [5],
        "extends": [None],  # read before there is a configuration
        "execution.cache_trunk": [False],
        "execution.device": ["cpu"],
        "execution.gpus_per_job": [2],
        "execution.gpu_memory": [40.0],
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
            {"contaminated": True, "embeddings": {"path": "v.pq", "id": "a", "vector": "b"}},
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
