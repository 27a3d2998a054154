"""What a change of each configuration key runs again, on the small grid of ``contract_grid``.

A contract is a row: key, another value, and the jobs by rule that run again because of it. What
runs for their sake follows from the graph, and is not counted. Several keys share an outcome, and
stand under it. The counts follow from the grid: 2 datasets x 2 models x 2 seeds = 8 runs, 3
selectors, 2 budgets, so 24 removal lists and 48 retrainings; the study `loaders` adds two runs with
one selector and one budget, the study `selectors` ten selectors, two of them of tokens, and
one budget on a run of the grid. Unlearning has 3 unlearners and one selector on 2 runs.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mamushi.registry import plugin


class Contract(NamedTuple):
    """A change of one key, and what would run; ``first`` for one change of each outcome."""

    key: str
    value: Any
    runs: str
    first: bool


def settings(section: str, *names: str) -> dict[str, list[Any]]:
    """All numbers and switches of these plug-ins, each with another value."""

    def another(value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        return value + 1 if isinstance(value, int) else value / 2 or 1.0

    return {
        f"{section}.{name}.{key}": [another(value)]
        for name in names
        for key, value in plugin(section.removesuffix("s"), name).defaults.items()
        if isinstance(value, (bool, int, float))
    }


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
    "beta0 3, calibrate 3, confounds 4, contaminate 1, diagnostics 4, effects 1, embed 3, "
    "evaluate 6, evidence_tables 1, figure_diagnostics 2, figure_discrimination 2, "
    "figure_subspaces 2, figure_variance 2, frontier 4, geometry 4, gold 3, manifests 11, "
    "predict 4, qualitative 1, ranking 2, refits 10, remove 23, retrain 23, runtime 2, score 10, "
    "stability 11, subgroups 1, tables 1, tokens 2": {
        "grid.datasets": [["made", "mine", "jigsaw"]]
    },
    "effects 1, evidence_tables 1, qualitative 1, subgroups 1, tables 1": {
        "grid.datasets": [["mine"]],
        "grid.models": [["tiny"]],
    },
    "beta0 4, calibrate 4, confounds 4, contaminate 4, diagnostics 4, effects 1, embed 4, "
    "evaluate 8, evidence_tables 1, figure_diagnostics 2, figure_discrimination 2, "
    "figure_subspaces 2, figure_variance 2, frontier 4, geometry 4, gold 4, manifests 12, "
    "predict 4, qualitative 1, ranking 2, refits 12, remove 24, retrain 24, runtime 2, score 12, "
    "stability 12, subgroups 1, tables 1": {"grid.models": [["tiny", "ours", "clean"]]},
    "beta0 4, calibrate 4, confounds 4, contaminate 2, diagnostics 4, effects 1, embed 4, "
    "evaluate 8, evidence_tables 1, frontier 4, geometry 4, gold 4, manifests 12, predict 4, "
    "refits 12, remove 24, retrain 24, score 12, stability 12, subgroups 1, tables 1": {
        "grid.seeds": [[0, 1, 2]]
    },
    "effects 1, evidence_tables 1, figure_diagnostics 4, figure_discrimination 4, "
    "figure_subspaces 4, figure_variance 4, qualitative 1, ranking 4, runtime 4, subgroups 1, "
    "tables 1": {"grid.seeds": [[1]]},
    "effects 1, figure_frontier 1, manifests 35, remove 24, retrain 24, stability 35, subgroups 1, "
    "tables 1, token_manifests 2": {"grid.budgets": [[0.2, 0.4, 0.95]]},
    "effects 1, figure_frontier 1, stability 35, subgroups 1, tables 1, token_manifests 2": {
        "grid.budgets": [[0.4]]
    },
    "confounds 8, diagnostics 8, effects 1, frontier 8, manifests 8, predict 8, ranking 4, "
    "refits 8, remove 16, retrain 16, runtime 4, score 8, stability 8, subgroups 1, tables 1": {
        "grid.selectors": [["random", "mamushi", "anti_mamushi", "vmf"]]
    },
    "confounds 8, diagnostics 8, effects 1, frontier 8, predict 8, ranking 4, runtime 4, "
    "subgroups 1, tables 1": {"grid.selectors": [["random"]]},
    "embed_layers 1, manifests 9, refits 9, remove 9, retrain 11, score 9, spans 2, stability 9, "
    "study_tables 1, token_manifests 2, token_scores 2": {
        "studies.selectors.datasets": [["mine", "made"]],
        "studies.selectors.models": [["tiny", "ours"]],
        "studies.selectors.seeds": [[0, 1]],
    },
    "manifests 35, remove 9, retrain 11, spans 2, stability 35, study_tables 1, "
    "token_manifests 2": {"studies.selectors.budgets": [[0.4, 0.6]]},
    "manifests 1, refits 1, remove 1, retrain 1, score 1, stability 1, study_tables 1": {
        "studies.selectors.selectors": [
            [
                *("lr_maha", "mamushi_lr", "linear", "lexical", "aside", "auto", "again"),
                *("token_unigram", "token_random", "greedy_unigram", "mamushi_words", "vmf"),
            ]
        ],
    },
    "refits 1, score 1": {
        "selectors.again.kind": ["mamushi_lr"],
        **settings("selectors", "mamushi_lr", "linear", "lexical", "auto", "greedy_unigram"),
        **settings("selectors", "mamushi_words"),
        "selectors.mamushi_lr.solver": ["newton-cholesky"],
        "selectors.lr_maha.covariance": ["sample"],
        "selectors.lr_maha.folds": [3],
        "selectors.linear.depths": [[0.75]],
        "selectors.auto.depths": [[0.5]],
        "selectors.auto.networks": ["again"],
    },
    "token_scores 1": settings("selectors", "token_unigram"),
    "refits 11, score 11": {
        **settings("selectors", "mamushi"),
        "selectors.mamushi.hidden": [[8]],
        "selectors.mamushi.precision": ["fp32"],
    },
    "refits 10, score 10": {"selectors.random.draw": [1]},
    "refits 15, score 15": {"selectors.anti_mamushi.of": ["again"]},
    "calibrate 10, confounds 8, figure_diagnostics 4, qualitative 1, refits 9, score 9": {
        "removal.ratio": ["mamushi_lr"]
    },
    "examples 4": {
        "data.split_seed": [1],
        "data.near_duplicates": [0.8],
        "data.shingle_words": [4],
        "data.max_characters": [2_000_000],
    },
    "examples 1": {
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
        "datasets.mine.drop_duplicates": [False],
        "datasets.mine.windows": [
            {"words": 5, "overlap": 1, "paragraphs": "line", "action": "cut"}
        ],
        "datasets.mine.answers": ["raw/merged.json"],
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
        "datasets.mine.group": ["number"],
        "datasets.mine.forget": [{"values": ["cats"]}],
        "datasets.mine.retain": [{"column": "topic", "values": ["cats"]}],
        "datasets.mine.section": ["part"],
        "datasets.mine.section_values": [{"train": "inference"}],
        "datasets.mine.labels": [["loud"]],
        "datasets.mine.quote": ["none"],
        "datasets.jigsaw.path": ["raw/jigsaw2"],
        "datasets.jigsaw.forget": [["severe_toxic"]],
        "datasets.newsgroups.path": ["raw/other.tar.gz"],
        "datasets.newsgroups.forget": [["sci.space"]],
        "datasets.newsgroups.group": [None],
    },
    "model_card 1": {
        "models.ours.source": ["raw/ours2"],
        "models.ours.revision": ["0" * 40],
        "models.clean.revision": ["0" * 40],
    },
    "contaminate 4, model_card 1": {"models.ours.contaminated": [False]},
    "beta0 4, generate 1, gold 4, predict 4, retrain 23, retrain_and_probe 1": {
        "models.ours.base": ["tiny"]
    },
    "base_model 1": {
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
    "tokens 8": {"tokens.max_length": [300]},
    # Two of the retrainings mask tokens.
    "beta0 10, contaminate 6, gold 10, retrain 25, retrain_and_probe 1": {
        f"training.{key}": [value] for key, value in OTHER_TRAINING.items() if key != "max_length"
    },
    "beta0 10, contaminate 6, gold 10, predict 4, retrain 23, retrain_and_probe 1, "
    "token_scores 2": {"training.max_length": [64]},
    "beta0 10, contaminate 6, gold 10, retrain 25, retrain_and_probe 1, unlearn 5, "
    "unlearn_and_probe 1, unlearn_list 3, unlearn_whole 3": {"training.method": ["lora", "full"]},
    "beta0 10, contaminate 6, evaluate 1, generate 3, gold 10, retrain 25, "
    "retrain_and_probe 1, unlearn 5, unlearn_and_probe 1, unlearn_list 3, "
    "unlearn_whole 3": {"training.precision": ["fp32"]},
    "gold 10, retrain 59, retrain_and_probe 2": {"training.steps": ["matched"]},
    "beta0 6, contaminate 6, gold 6, retrain 2": {
        f"models.tiny.training.{key}": [value]
        for key, value in {**OTHER_TRAINING, "method": "lora"}.items()
        if key != "max_length"
    },
    "beta0 6, contaminate 6, gold 6, token_scores 2": {"models.tiny.training.max_length": [64]},
    "beta0 6, contaminate 6, generate 1, gold 6, retrain 2": {
        "models.tiny.training.precision": ["fp32"]
    },
    "gold 6, retrain 36, retrain_and_probe 1": {"models.tiny.training.steps": ["matched"]},
    "beta0 4, gold 4, retrain 23, retrain_and_probe 1": {
        "models.ours.training.learning_rate": [1e-4],
        "models.ours.training.trained_blocks": [2],
    },
    "beta0 4, evaluate 1, generate 2, gold 4, retrain 23, retrain_and_probe 1, unlearn 5, "
    "unlearn_and_probe 1, unlearn_list 3, unlearn_whole 3": {
        "models.ours.training.precision": ["fp32"]
    },
    "gold 4, retrain 23, retrain_and_probe 1": {"models.ours.training.steps": ["matched"]},
    "embed 10, embed_layers 1": {
        "embedding.pooling": ["last"],
        "embedding.skip_bos": [False],
        "embedding.max_length": [64],
        "embedding.precision": ["fp32"],
    },
    "embed 10": {"embedding.layer": [2]},
    "embed_layers 1": {"embedding.depths": [[0.25, 0.5, 0.75, 0.9]]},
    "evaluate 21, relearn 2, retrain 59, retrain_and_probe 2, unlearn 10, "
    "unlearn_and_probe 2, unlearn_list 6, unlearn_whole 6": {"evaluation.max_length": [64]},
    "effects 1": {"evaluation.retain_margin": [0.05]},
    "evaluate 1, refine 6, unlearn 12, unlearn_list 6, unlearn_whole 6": {
        "unlearning.datasets": [["made", "mine"]],
        "unlearning.seeds": [[0, 1]],
    },
    "refine 6, unlearn 12": {"unlearning.selectors": [["mamushi", "random"]]},
    "refine 6, remove 2, unlearn 6": {"unlearning.budgets": [[0.2, 0.4, 0.6]]},
    "evaluate 1, unlearn 5, unlearn_and_probe 1, unlearn_list 3, unlearn_whole 3": {
        "unlearning.start": ["contaminated"]
    },
    "refine 6": {
        "unlearning.fine": [0.05, None],
        "unlearning.target": [0.6],
    },
    "half_gap 1": {
        "unlearning.models": [["tiny"]],
        "unlearning.unlearners": [["neggrad_plus"]],
        "unlearning.retain_cap": [4.0],
    },
    "relearn 2, retrain_and_probe 2, unlearn 10, unlearn_and_probe 2, unlearn_list 6, "
    "unlearn_whole 6": {
        "unlearning.trained_blocks": [2],
        "unlearning.max_length": [64],
    },
    "unlearn 10, unlearn_and_probe 2, unlearn_list 6, unlearn_whole 6": {
        f"unlearning.training.{key}": [value] for key, value in OTHER_UNLEARNING.items()
    },
    "unlearn 4, unlearn_list 2, unlearn_whole 2": {
        **{f"unlearners.salun.training.{key}": [value] for key, value in OTHER_UNLEARNING.items()},
        **settings("unlearners", "salun"),
        "unlearners.salun.kind": ["neggrad_plus"],
    },
    "unlearn 2, unlearn_and_probe 2, unlearn_list 2, unlearn_whole 2": {
        **settings("unlearners", "neggrad_plus"),
        "unlearners.neggrad_plus.training.epochs": [2],
    },
    "unlearn_list 6": {
        "unlearning.lists": [{"second": "raw/agreed.txt"}, {"agreed": "raw/mine.csv"}]
    },
    "evaluate 1, generate 6, judge 2, relearn 2, retrain 2, retrain_and_probe 2, "
    "unlearn 2, unlearn_and_probe 2": {
        "probe.datasets": [["mine"]],
        "probe.seeds": [[1]],
    },
    "probes 1, retrain 1, unlearn 1": {"probe.models": [["tiny"]]},
    "unlearn_and_probe 2": {"probe.unlearners": [["neggrad_plus", "salun"]]},
    "judge 2, retrain 2, retrain_and_probe 2, unlearn 2, unlearn_and_probe 2": {
        "probe.selectors": [["random"]]
    },
    "retrain 2, retrain_and_probe 2, unlearn 2, unlearn_and_probe 2": {"probe.budget": [0.2]},
    "generate 6, unlearn_and_probe 2": {
        "probe.prompts": [["So it"]],
        "probe.new_tokens": [20],
    },
    "relearn 2, retrain_and_probe 2, unlearn_and_probe 2": {
        "probe.relearning.examples": [8],
        "probe.relearning.steps": [[1, 2]],
        "probe.relearning.batch_size": [4],
        "probe.relearning.learning_rate": [1e-4],
    },
    "frontier 8, predict 8": {"evidence.budgets": [[0.5]]},
    "calibrate 10": {"evidence.resamples": [10]},
    "refits 29": {"evidence.refits.halves": [0]},
    "refits 29, token_manifests 2": {"evidence.refits.whole": [2]},
    "geometry 8": {"evidence.components": [10]},
    "evidence_tables 1": {
        "evidence.targets": [[{"target": "removal", "value": 0.6}]],
    },
    "": {
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
        # Nothing of this model is trained under its own name.
        "models.clean.training.learning_rate": [1e-4],
        "models.clean.training.trained_blocks": [2],
        "models.clean.training.precision": ["fp32"],
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
    for runs, keys in ROWS.items():
        changes = [(key, value) for key, values in keys.items() for value in values]
        for place, (key, value) in enumerate(changes):
            yield Contract(key, value, runs, place == 0)
