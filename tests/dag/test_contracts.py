"""A change of one key of the configuration runs again the rules that depend on it, and no other."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.contract_grid import CONFIG, TARGETS, changed, write_raw
from tests.support.dry_runs import Snakemake

TRAININGS = "endpoint retrain"
UNLEARNINGS = "unlearn unlearn_list unlearn_whole"
CONTRACTS: dict[str, dict[str, list[Any]]] = {
    # The rules that begin again -> key -> other values, each a change of its own.
    "examples": {
        "data.split_seed": [1],
        "data.near_duplicates": [0.8],
        "datasets.made.seed": [1],
        "datasets.made.sizes": [{"inference": {"forget": 10, "retain": 10}}],
        "datasets.mine.text": ["text"],
        "datasets.mine.id": ["number"],
        "datasets.mine.forget": [{"where": "topic == 'cats'"}],
        "datasets.mine.path": ["raw/mine2.csv"],
        "datasets.mine.quote": ["none"],
        "datasets.jigsaw.forget": [["severe_toxic"]],
        "datasets.newsgroups.forget": [["sci.space"]],
    },
    "model_card": {"models.ours.source": ["raw/ours2"], "models.ours.revision": ["0" * 40]},
    "base_model": {
        "models.tiny.family": ["qwen2"],
        "models.tiny.layers": [2],
        "models.tiny.pretraining.epochs": [2],
    },
    "tokens": {"tokens.max_length": [250]},
    "embed": {
        "embedding.pooling": ["last"],
        "embedding.skip_bos": [False],
        "embedding.max_length": [64],
        "embedding.layer": [2],
    },
    "refits score": {
        "selectors.mamushi.folds": [4],
        "selectors.mamushi.hidden": [[8]],
        "selectors.mamushi.estimator": ["sklearn"],
        "selectors.mamushi_lr.solver": ["newton-cholesky"],
        "selectors.lr_maha.covariance": ["sample"],
        "selectors.random.draw": [1],
    },
    "calibrate": {"evidence.resamples": [10]},
    "refits": {"evidence.refits.halves": [0]},
    "geometry": {"evidence.components": [10]},
    # And the scores of what is compared for the first time.
    "agreement score": {"evidence.compared": [["gaussian"]]},
    "frontier predict": {"evidence.budgets": [[0.5]]},
    TRAININGS: {
        "training.learning_rate": [1e-4],
        "training.epochs": [3],
        "training.weight_decay": [0.1],
        "training.trained_blocks": [2],
    },
    f"{TRAININGS} predict token_scores": {"training.max_length": [64]},
    # A model that was contaminated before relearns as well, by what is trained of it then.
    f"{TRAININGS} relearn {UNLEARNINGS}": {"training.method": ["lora", "full"]},
    "endpoint retrain": {"training.steps": ["matched"]},
    # What is deleted has to be trained again to be measured again. Unlearning starts from hidden
    # states that are computed with those of the held-out texts: which texts share a batch is seen
    # in their last bits.
    f"evaluate relearn retrain {UNLEARNINGS}": {"evaluation.max_length": [64]},
    "effects": {"evaluation.retain_margin": [0.05]},
    UNLEARNINGS: {
        "unlearning.training.epochs": [2],
        "unlearning.training.steps": ["matched"],
        "unlearners.salun.sparsity": [0.25],
        "unlearners.salun.kind": ["neggrad_plus"],
    },
    "unlearn_list": {"unlearning.lists": [{"agreed": "raw/mine.csv"}]},
    "half_gap": {"unlearning.retain_cap": [4.0]},
    "generate": {"probe.prompts": [["So it"]]},
    "relearn": {"probe.relearning.examples": [8]},
    "": {
        "execution.micro_batch_size": [8],
        "execution.batch_tokens": [1024],
        "execution.checkpoint_seconds": [5],
        "execution.gpus_per_job": [2],
        # Nothing of this model is trained under its own name.
        "models.clean.training.learning_rate": [1e-4],
    },
}
CASES = [
    pytest.param(key, value, rules, id=f"{key}={value}"[:50], marks=pytest.mark.slow if at else ())
    for rules, keys in CONTRACTS.items()
    for at, (key, value) in enumerate((k, v) for k, values in keys.items() for v in values)
]


def test_every_section_of_the_grids_configuration_has_a_contract() -> None:
    sections = {key.split(".")[0] for keys in CONTRACTS.values() for key in keys}
    # What there is to compute, and where it may be computed, is not how.
    assert CONFIG.keys() - sections == {"grid", "studies"}


@pytest.mark.parametrize(("key", "value", "rules"), CASES)
def test_a_change_runs_what_it_affects(
    snakemake: Snakemake, finished: Path, key: str, value: Any, rules: str
) -> None:
    seen = snakemake.look(finished, targets=TARGETS, change=changed(key, value))
    assert " ".join(seen["begin"]) == " ".join(sorted(rules.split()))
    # Nothing is left in a state in which the next change would go unnoticed.
    assert seen["blind"] == {}


@pytest.mark.parametrize(
    ("change", "wildcard", "values"),
    [
        ({"grid": {"seeds": [0, 1, 2]}}, "seed", {"2"}),
        ({"datasets": {"mine": {"text": "text"}}}, "dataset", {"mine"}),
        ({"selectors": {"mamushi": {"folds": 4}}}, "selector", {"mamushi", "anti_mamushi"}),
    ],
    ids=["seed", "dataset", "selector"],
)
def test_a_change_stays_in_its_corner(
    snakemake: Snakemake, finished: Path, change: Any, wildcard: str, values: set[str]
) -> None:
    runs = snakemake.look(finished, targets=TARGETS, change=change)["runs"]
    rules = {"score", "remove", "retrain"} if wildcard == "selector" else {rule for rule, _ in runs}
    assert {w[wildcard] for rule, w in runs if rule in rules and wildcard in w} == values


def backwards(value: Any) -> Any:
    """Turn the order of all keys around."""
    if isinstance(value, Mapping):
        return {key: backwards(value[key]) for key in reversed(value)}
    return value


def test_types_of_the_command_line_order_and_threads_are_no_change(
    snakemake: Snakemake, finished: Path
) -> None:
    texts = {"training": {"learning_rate": "5.0e-5", "epochs": "5", "train_output_head": "true"}}
    threads = {"overwrite_threads": {"retrain": 2}, "max_threads": 2, "cores": 16}
    assert snakemake.would_run(finished, targets=TARGETS, config=texts, resources=threads) == {}
    path = finished / "config.yaml"
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(yaml.safe_dump(backwards(CONFIG), sort_keys=False), encoding="utf-8")
        assert snakemake.would_run(finished, targets=TARGETS) == {}
    finally:
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *(("raw/mine.csv", "examples"), ("raw/agreed.txt", "unlearn_list")),
        *(("raw/ours/model.safetensors", "model_card"), ("raw/clean/tokenizer.json", "model_card")),
    ],
)
def test_a_file_counts_by_its_content(
    snakemake: Snakemake, finished: Path, name: str, rule: str
) -> None:
    path = finished / name
    text = path.read_text(encoding="utf-8")
    try:
        path.touch()
        assert snakemake.would_run(finished, targets=TARGETS) == {}
        # As old as the one before it, and of its size.
        write_raw(path, re.sub("more|agreed|ours|clean", lambda word: word[0].upper(), text))
        assert snakemake.look(finished, targets=TARGETS)["begin"] == [rule]
    finally:
        write_raw(path, text)
