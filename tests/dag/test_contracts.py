"""A change of one key of the configuration runs again the rules that depend on it, and no other."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.config.kinds import Section
from mamushi.config.sections import Configuration, with_rooms
from tests.support.contract_grid import CONFIG, TARGETS, changed, write_raw
from tests.support.dry_runs import Snakemake

TRAININGS, UNLEARNINGS = "endpoint retrain", "unlearn unlearn_list unlearn_whole"


def of(section: str, **values: Any) -> dict[str, list[Any]]:
    """One other value of some keys of a section."""
    return {f"{section}.{key}": [value] for key, value in values.items()}


CONTRACTS: dict[str, dict[str, list[Any]]] = {
    # The rules that begin again -> key -> other values, each a change of its own.
    "examples": {
        **of("data", split_seed=1, near_duplicates=0.8, shingle_words=4, max_characters=500_000),
        **of("datasets.made", seed=1, sizes={"inference": {"forget": 10, "retain": 10}}),
        **of("datasets.mine", text="text", id="number", forget={"where": "topic == 'cats'"}),
        **of("datasets.mine", path="raw/mine2.csv", quote="none"),
        **of("datasets", jigsaw={"forget": ["threat"]}, newsgroups={"forget": ["sci.space"]}),
    },
    "model_card": of("models.ours", source="raw/ours2", revision="0" * 40),
    "base_model": of("models.tiny", family="qwen2", layers=2, pretraining={"epochs": 2}),
    "tokens": of("tokens", max_length=250),
    "embed": of(
        "embedding", pooling="last", skip_bos=False, max_length=64, layer=2, precision="fp32"
    ),
    "refits score": {
        **of("selectors.mamushi", folds=4, hidden=[8], estimator="sklearn"),
        **of("selectors", mamushi_lr={"solver": "newton-cholesky"}, random={"draw": 1}),
        **of("selectors.lr_maha", covariance="sample"),
    },
    "calibrate": of("evidence", resamples=10),
    "refits": of("evidence.refits", halves=0),
    "refits token_manifests": of("evidence.refits", whole=3),
    "geometry": of("evidence", components=10),
    "evidence_tables": of("evidence", targets={"removal": 0.4}),
    # And the scores of what is compared for the first time.
    "agreement score": of("evidence", compared=["gaussian"]),
    "frontier predict": of("evidence", budgets=[0.5]),
    # Where the new ratio is estimated, and figures that name it; no list and no retraining.
    "calibrate figure_diagnostics figure_discrimination figure_subspaces figure_variance refits "
    "score": of("removal", ratio="mamushi_lr"),
    TRAININGS: {
        **of("training", learning_rate=1e-4, epochs=3, batch_size=16, betas=[0.9, 0.99]),
        **of("training", epsilon=1e-7, weight_decay=0.1, schedule="linear", warmup_steps=2),
        **of("training", gradient_clip=1.0, trained_blocks=2, train_output_head=False),
        **{"training.train_input_embedding": [False], "training.steps": ["matched", "aligned"]},
    },
    f"{TRAININGS} predict token_scores": of("training", max_length=64),
    # All that opens a trained model.
    f"{TRAININGS} evaluate generate relearn {UNLEARNINGS}": of("training", precision="fp32"),
    # A model that was contaminated before relearns as well, by what is trained of it then.
    f"{TRAININGS} relearn {UNLEARNINGS}": {
        "training.method": ["lora", "full"],
        **of("training.lora", rank=8, alpha=16.0, dropout=0.1, target_modules=["q_proj"]),
    },
    # What is deleted has to be trained again to be measured again. Unlearning starts from hidden
    # states that are computed with those of the held-out texts: which texts share a batch is seen
    # in their last bits.
    f"evaluate relearn retrain {UNLEARNINGS}": of("evaluation", max_length=64),
    "evaluate retrain unlearn unlearn_whole": {"evaluation.deep_tokens": [1024, 0]},
    "retrain unlearn unlearn_whole": {"keep_checkpoints": [True]},
    "effects": of("evaluation", retain_margin=0.05),
    UNLEARNINGS: {
        **of("unlearning.training", epochs=2, steps="matched", batch_size=4, betas=[0.1, 0.999]),
        **of("unlearning.training", epsilon=1e-7, weight_decay=0.1, gradient_clip=1, stop_window=4),
        **of("unlearners.salun", sparsity=0.25, kind="neggrad_plus"),
    },
    f"relearn {UNLEARNINGS}": of("unlearning", trained_blocks=2, max_length=100),
    f"evaluate relearn {UNLEARNINGS}": of("unlearning", start="contaminated"),
    "unlearn_list": of("unlearning", lists={"agreed": "raw/mine.csv"}),
    "half_gap": of("unlearning", retain_cap=4.0, target=0.4),
    "generate": of("probe", prompts=["So it"], new_tokens=20),
    "relearn": of("probe.relearning", examples=8, steps=[1, 2], batch_size=4, learning_rate=1e-4),
    "": {
        **of("execution", micro_batch_size=8, batch_tokens=1024, checkpoint_seconds=5),
        **of("execution", gpus_per_job=2, device="cpu", cache_trunk=False),
        # Nothing of this model is trained under its own name.
        "models.clean.training.learning_rate": [1e-4],
    },
}
CASES = [
    pytest.param(key, value, rules, id=f"{key}={value}"[:50], marks=pytest.mark.slow if at else ())
    for rules, keys in CONTRACTS.items()
    for at, (key, value) in enumerate((k, v) for k, values in keys.items() for v in values)
]
WITHOUT = re.compile(
    # What there is to compute is not how. Two other files have the rules that are not needed here.
    r"extends|grid|studies|(unlearning|probe)\.(datasets|models|seeds|selectors|unlearners|budgets?)"
    r"|unlearning\.fine|(influence|cross_entropy|left|tasks)\..*"
)


def keys_of(section: type[Section], at: str = "") -> Iterator[str]:
    """All keys below a section, by their dotted paths; of what has names, as datasets, its own."""
    for name, field in section.model_fields.items():
        inner, path = field.default, f"{at}{name}"
        yield from keys_of(type(inner), f"{path}.") if isinstance(inner, Section) else [path]


def test_every_key_of_the_configuration_has_a_contract() -> None:
    given = {key for keys in CONTRACTS.values() for key in keys}
    # A dataset, model, selector or unlearner is handed over whole, so some of its keys do for all.
    given |= {key.split(".")[0] for key in given}
    every = {*keys_of(with_rooms(Configuration))}
    assert [key for key in every - given if not WITHOUT.fullmatch(key)] == []


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
        ({"grid": {"seeds": [0, 1]}}, "seed", {"1"}),
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
