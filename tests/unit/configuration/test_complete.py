"""The configuration: what is filled in, what is coerced, and one clear line for each mistake."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from mamushi import registry
from mamushi.configuration import arms, grid, schema
from mamushi.configuration.complete import ConfigError, complete, declared
from mamushi.configuration.models import Lora
from mamushi.configuration.sources import files
from mamushi.stages import _settings as settings

ROOT = Path(__file__).parents[3]
JIGSAW = ("train.csv", "test.csv", "test_labels.csv")
HEAVY = {"torch", "transformers", "pandas", "numpy", "pyarrow", "sklearn", "snakemake"}
SECTIONS = ["data", "tokens", "training", "embedding", "evaluation", "execution", "figures"]

Config = dict[str, Any]


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAMUSHI_JIGSAW", "MAMUSHI_NEWSGROUPS"):
        monkeypatch.delenv(name, raising=False)


def paper() -> Config:
    """The configuration of the paper, as it stands in config.yaml."""
    loaded: Config = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    return loaded


def minimal() -> Config:
    """As little as a configuration can say."""
    return {
        "grid": {"datasets": ["made"], "models": ["tiny"]},
        "datasets": {"made": {"kind": "synthetic"}},
        "models": {"tiny": {"family": "llama", "pretraining": {"datasets": ["made"]}}},
    }


def laid_over(*names: str) -> Config:
    """Files laid over each other in the way of Snakemake, beneath them the paper's if they ask."""
    from snakemake.utils import update_config

    files = [yaml.safe_load((ROOT / name).read_text(encoding="utf-8")) for name in names]
    config = paper() if any(file.get("extends") == "paper" for file in files) else {}
    for file in files:
        update_config(config, file)
    return config


def mistakes(config: Config) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        complete(config)
    assert str(caught.value) == "\n".join(caught.value.lines)
    return caught.value.lines


def test_the_schema_for_editors_is_valid_and_takes_what_the_program_takes() -> None:
    rule = schema.json_schema(declared())
    Draft202012Validator.check_schema(rule)
    Draft202012Validator(rule).validate(paper())
    for kind in registry.FOLDERS:
        for plugin in registry.plugins(kind).values():
            Draft202012Validator.check_schema({"properties": dict(plugin.settings)})


def test_every_key_is_described() -> None:
    def check(at: str, rule: Config) -> None:
        named = rule.get("additionalProperties")
        for each in named.get("oneOf", [named]) if isinstance(named, dict) else ():
            check(f"{at}.*", each)
        for key, setting in rule.get("properties", {}).items():
            assert schema.meaning(setting), f"{at}.{key}"
            check(f"{at}.{key}", setting)

    check("", declared())


def made(stage: str, config: dict[str, Any], **given: Any) -> Any:
    """The settings of a stage for a cell of this configuration."""
    cell = {"dataset": "made", "model": "tiny", "seed": 0}
    return settings.of(stage, complete(config), **{**cell, **given})


def test_a_method_left_at_its_default_is_no_part_of_what_results_are_compared_by() -> None:
    config = minimal() | {"unlearners": {"salun": {}}}
    written = settings.as_json(made("retrain", config, role="retrained"))
    unlearned = settings.as_json(made("unlearn", config, unlearner="salun"))
    assert "method" not in written + unlearned and "lora" not in written + unlearned
    # Without the method `lora`, its adapters say nothing.
    config["training"] = {"lora": {"rank": 4}}
    assert settings.as_json(made("retrain", config, role="retrained")) == written
    config["training"]["method"] = "lora"
    config["models"]["tiny"]["training"] = {"lora": {"alpha": 4}}
    retrained = made("retrain", config, role="retrained")
    assert json.loads(settings.as_json(retrained))["training"]["method"] == "lora"
    # A model changes single keys of the adapters.
    adapters = Lora(rank=4, alpha=4.0, dropout=0.0, target_modules=None)
    assert retrained.training.lora == adapters
    started = made("unlearn", config, unlearner="salun")
    assert (started.method, started.lora) == ("lora", adapters)


def test_the_paper_needs_no_defaults() -> None:
    """config.yaml shows every key of its sections, so that a reader need not look further."""
    given, full = paper(), complete(paper())
    for section in SECTIONS:
        assert given[section] == full[section], section
    for axis, values in full["grid"].items():
        assert given["grid"][axis] == values
    assert set(full) == set(given)


def test_defaults_are_the_decisions_of_the_design() -> None:
    """Leaving everything out gives what config.yaml says for the paper."""
    full, said = complete(minimal()), complete(paper())
    for section in SECTIONS:
        assert full[section] == said[section], section
    for axis in ("seeds", "budgets", "selectors"):
        assert full["grid"][axis] == said["grid"][axis]
    assert full["removal"] == said["removal"]
    assert full["studies"] == {}
    assert full["keep_checkpoints"] is False
    made = full["datasets"]["made"]
    assert made["sections"] == {"contamination": 0.4, "inference": 0.4, "evaluation": 0.2}
    assert made["limit"] == {"forget": None, "retain": None}


def test_the_paper_s_numbers() -> None:
    full = complete(paper())
    grid = full["grid"]
    assert math.prod(len(values) for values in grid.values()) == 2160
    training = {name: model["training"] for name, model in full["models"].items()}
    assert {name: t["epochs"] for name, t in training.items()} == {
        "llama-3.1-8b": 5.0,
        "qwen-2.5-7b": 5.0,
        "gemma-2-2b": 3.0,
    }
    for each in training.values():
        assert each.keys() == full["training"].keys()
        assert each["learning_rate"] == 5e-5
        assert each["batch_size"] == 32
    assert full["selectors"]["mamushi_lr_matched"]["alpha"] == 0.1 / 4096


def test_plugins_settings_are_filled_in() -> None:
    full = complete(paper())
    asked = {*full["grid"]["selectors"], "anti_mamushi", "mamushi_lr", "mamushi_lr_matched"}
    assert set(full["selectors"]) == asked
    for definition in full["selectors"].values():
        known = registry.plugin("selector", definition["kind"])
        assert definition.keys() == {"kind", "action", *known.settings}
    assert full["selectors"]["mamushi"] == {
        "kind": "mamushi",
        "action": "remove",
        **registry.plugin("selector", "mamushi").defaults,
    }
    loader = registry.plugin("dataset", "newsgroups")
    ours = {"kind", "sections", "limit", "planted"}
    assert full["datasets"]["newsgroups"].keys() == ours | {*loader.settings}


def test_the_base_of_a_derived_selector_is_there() -> None:
    config = minimal()
    config["grid"]["selectors"] = ["mirror"]
    config["selectors"] = {"mirror": {"kind": "anti_mamushi", "of": "lr_cos"}}
    # The probe asks for random, lr_cos and mamushi.
    assert set(complete(config)["selectors"]) == {"mirror", "lr_cos", "mamushi", "random"}


def test_networks_of_another_selector_come_with_its_settings() -> None:
    config = minimal()
    config["grid"]["selectors"] = ["random", "small", "auto"]
    own = {"kind": "mamushi", "batch_size": 64, "seeds_averaged": 3}
    config["selectors"] = {"small": own, "auto": {"networks": "small"}}
    full = complete(config)
    mamushi = registry.plugin("selector", "mamushi").defaults
    wanted = {**mamushi, "batch_size": 64, "seeds_averaged": 3}
    assert settings.selector_settings(full, "auto")["networks"] == wanted
    del config["selectors"]["auto"]
    config["selectors"]["mamushi"] = {"epochs": 7}
    given = settings.selector_settings(complete(config), "auto")["networks"]
    assert given == {**mamushi, "epochs": 7}


def test_completing_twice_changes_nothing() -> None:
    for config in (paper(), minimal(), laid_over("profiles/small/science.yaml")):
        full = complete(config)
        assert complete(full) == full


def test_completing_leaves_its_input_alone() -> None:
    config = paper()
    complete(config)
    assert config == paper()


@pytest.mark.parametrize("profile", ["demo", "small"])
def test_profiles_hold_valid_science(profile: str) -> None:
    full = complete(laid_over(f"profiles/{profile}/science.yaml"))
    assert full["studies"] == {}
    assert all("family" in full["models"][model] for model in full["grid"]["models"])


def test_a_study_of_null_is_left_out() -> None:
    config = paper()
    config["studies"]["reverse"] = None
    assert list(complete(config)["studies"]) == ["estimator"]


def as_text(value: Any) -> Any:
    """What a nested value on the command line becomes: every leaf is text."""
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return "null" if value is None else str(value)


def test_text_is_coerced() -> None:
    """`--config` gives text; it must not look like a change of the science."""
    assert complete(as_text(paper())) == complete(paper())


@pytest.mark.parametrize(
    ("key", "given", "wanted"),
    [
        ("learning_rate", "2.0e-5", 2.0e-5),
        ("learning_rate", "5e-5", 5.0e-5),  # YAML reads this as text
        ("epochs", 3, 3.0),
        ("epochs", "3", 3.0),
        ("batch_size", "16", 16),
        ("batch_size", 16.0, 16),
        ("gradient_clip", "null", None),
        ("gradient_clip", "1", 1.0),
        ("train_output_head", "True", True),
    ],
)
def test_one_type_for_each_key(key: str, given: object, wanted: object) -> None:
    config = minimal()
    config["training"] = {key: given}
    found = complete(config)["training"][key]
    assert found == wanted
    assert type(found) is type(wanted)


MISTAKES = """
grid.budgets = [0.1, 0.5, 1.2]
    grid.budgets[2]: 1.2 is not allowed; allowed is a number strictly between 0 and 1 in steps
    of 0.01
grid.budgets = [1]
    grid.budgets[0]: 1.0 is not allowed;
grid.budgets = [0]
    grid.budgets[0]: 0.0 is not allowed;
grid.budgets = [0.125]
    grid.budgets[0]: 0.125 is not allowed;
grid.budgets = [0.5, "0.50"]
    grid.budgets: 0.5 stands there more than once;
grid.seeds = [-1]
    grid.seeds[0]: -1 is not allowed; allowed is a whole number at least 0
grid.seeds = []
    grid.seeds: [] is not allowed; allowed is at least 1 entry
training.lerning_rate = 1
    training.lerning_rate: unknown key; did you mean 'learning_rate'? known are: batch_size,
foo = 1
    foo: unknown key; known are: data, datasets,
training.epochs = "many"
    training.epochs: 'many' is not allowed; allowed is a number greater than 0
training.batch_size = 1.5
    training.batch_size: 1.5 is not allowed; allowed is a whole number at least 1
training.learning_rate = .nan
    training.learning_rate: nan is not allowed;
training.learning_rate = "inf"
    training.learning_rate: inf is not allowed;
training.precision = "fp16"
    training.precision: 'fp16' is not allowed; allowed is one of: bf16, fp32
keep_checkpoints = "maybe"
    keep_checkpoints: 'maybe' is not allowed; allowed is true or false
training.betas = [0.9, 0.99, 0.999]
    training.betas: [0.9, 0.99, 0.999] is not allowed; allowed are exactly 2 entries
data = [1]
    data: [1] is not allowed; allowed is a mapping of keys to values
models.gemma-2-2b.training = {"epoch": 1}
    models.gemma-2-2b.training.epoch: unknown key; did you mean 'epochs'?
datasets.a/b = {"kind": "jigsaw"}
    datasets.a/b: this name is not allowed; allowed is a name of letters, digits,
grid.datasets = ["jigsaws"]
    grid.datasets[0]: unknown dataset 'jigsaws'; did you mean 'jigsaw'? known are: jigsaw,
studies.reverse.models = ["gpt"]
    studies.reverse.models[0]: unknown model 'gpt'; known are: gemma-2-2b, llama-3.1-8b,
grid.selectors = ["random", "mamishi"]
    grid.selectors[1]: unknown selector 'mamishi'; did you mean 'mamushi'? known are:
removal.ratio = "best"
    removal.ratio: unknown selector 'best'; known are: anti_mamushi,
removal.ratio = "random"
    removal.ratio: 'random' is not allowed, since it gives retain texts no score and so estimates no
    density ratio; choose a selector that does, such as mamushi
removal.ratio = "kcenter"
    removal.ratio: 'kcenter' is not allowed, since it gives retain texts no score
selectors.mamushi = {"kind": "anti_mamushi", "of": "random"}
    removal.ratio: 'mamushi' is not allowed, since it gives retain texts no score
selectors.mamushi = {"action": "replace"}
    selectors.mamushi.action: 'replace' is not allowed; allowed is one of: remove, downweight, mask
selectors.random = {"action": "downweight"}
    grid.selectors[0]: 'random' gives retain texts no score, so no weight can follow from its scores
datasets.jigsaw.kind = "jig"
    datasets.jigsaw.kind: 'jig' is not allowed; allowed is one of: jigsaw, newsgroups,
datasets.mine = {"path": "x.csv"}
    datasets.mine.kind: missing; it has no default; allowed is one of: jigsaw,
selectors.mine = {"kind": "best"}
    selectors.mine.kind: 'best' is not allowed; allowed is one of: anti_mamushi,
selectors.mine = {}
    selectors.mine.kind: missing; it has no default; allowed is one of: anti_mamushi,
selectors.random = {"alpha": 1}
    selectors.random.alpha: unknown key; known are: action, kind
selectors.mamushi = {"folds": 1}
    selectors.mamushi.folds: 1 is not allowed; allowed is a whole number at least 2
selectors.auto = {"depths": [0.3, 1]}
    selectors.auto.depths: 0.3 is not among embedding.depths (0.25, 0.5, 0.75); 1 is the embedding
selectors.auto = {"networks": "moon"}
    selectors.auto.networks: unknown selector 'moon'; known are:
selectors.auto = {"networks": "random"}
    selectors.auto.networks: 'random' is of kind random; networks are those of kind mamushi
embedding.depths = []
    embedding.depths: [] is not allowed; allowed is at least 1 entry
selectors.mirror = {"kind": "anti_mamushi", "of": "moon"}
    selectors.mirror.of: unknown selector 'moon'; known are:
selectors.anti_mamushi = {"of": "anti_mamushi"}
    selectors.anti_mamushi: derives from itself (anti_mamushi from anti_mamushi)
datasets.newsgroups.forget = []
    datasets.newsgroups.forget: [] is not allowed; allowed is at least 1 entry
datasets.mine = {"kind": "table"}
    datasets.mine.forget: missing; it has no default; allowed is a mapping of keys to values
    (What marks the forget domain
datasets.mine = {"kind": "table", "forget": {"column": "label"}}
    datasets.mine.forget: {'column': 'label'} is not allowed; allowed is: What marks
datasets.jigsaw.sections.inference = 1.0
    datasets.jigsaw.sections: the shares (contamination 0.5, inference 1) sum to 1.5; they must
    sum to 1
models.mine = {}
    models.mine.source: missing; a model has a source (folder, GGUF file or hub id), or a
models.mine = {"family": "llama", "pretraining": {"datasets": ["jigsaw"]}, "source": "a/b"}
    models.mine.source: unknown key; known are: contaminated, family,
models.gemma-2-2b.revision = null
    models.gemma-2-2b.revision: null is not allowed, since 'google/gemma-2-2b' is no folder
models.gemma-2-2b.revision = "main"
    models.gemma-2-2b.revision: 'main' is not allowed; allowed is a commit of 40 hexadecimal
models.gemma-2-2b.source = "/no/such/model"
    models.gemma-2-2b.source: '/no/such/model' is no folder;
models.gemma-2-2b.base = "clean"
    models.gemma-2-2b.base: unknown model 'clean'; known are:
models.mine = {"family": "llama", "pretraining": {"datasets": ["books"]}}
    models.mine.pretraining.datasets[0]: unknown dataset 'books'; known are: jigsaw,
tokens.max_length = 64
    training.max_length: 128 is not allowed; it is at most tokens.max_length, 64
models.gemma-2-2b.training.max_length = 512
    models.gemma-2-2b.training.max_length: 512 is not allowed; it is at most tokens.max_len
grid.selectors = ["random", "oracle"]
    grid.selectors[1]: 'oracle' is not allowed with the dataset 'jigsaw'; it needs the true
    density ratio, which synthetic data has
selectors.anti_mamushi = {"of": "oracle"}
    studies.reverse.selectors[2]: 'anti_mamushi' is not allowed with the dataset 'newsgroups'
datasets.newsgroups.path = "/no/such/file.tar.gz"
    datasets.newsgroups.path: '/no/such/file.tar.gz' is not allowed; no such file
datasets.jigsaw.path = "/no/such/folder"
    datasets.jigsaw.path: '/no/such/folder' is not allowed; no such folder; it names a folder
    with train.csv, test.csv, test_labels.csv (each plain or as .zip)
"""
"""A change of config.yaml, and how the line begins that tells of it."""

SMALL = """
models.tiny.heads = 3
    models.tiny.hidden_size: 64 is not allowed; it is a multiple of heads, 3
models.tiny.hidden_size = 12
    models.tiny.heads: hidden_size / heads is 3, but rotary positions turn pairs
models.tiny.key_value_heads = 3
    models.tiny.heads: 4 is not allowed; it is a multiple of key_value_heads, 3
models.tiny.max_positions = 100
    models.tiny.pretraining.max_length: 128 is not allowed; it is at most max_positions, 100
models.tiny.contaminated = true
    models.tiny.contaminated: true is not allowed;
extends = papers
    extends: 'papers' is not allowed; allowed is one of: paper, null
unlearning.unlearners = [neggrad_plus, salum]
    unlearning.unlearners[1]: unknown unlearner 'salum'; did you mean 'salun'?
unlearning.selectors = [mamusi]
    unlearning.selectors[0]: unknown selector 'mamusi'; did you mean 'mamushi'?
unlearning.lists = {mine: /no/such/list.txt}
    unlearning.lists.mine: '/no/such/list.txt' is not allowed; no such file
unlearning.max_length = 999
    unlearning.max_length: 999 is not allowed; it is at most tokens.max_length, 256
unlearners.salun = {sparsity: 2}
    unlearners.salun.sparsity: 2.0 is not allowed;
unlearners.mine = {learning_rate: 1}
    unlearners.mine.kind: missing;
unlearners.retraining = {kind: salun}
    unlearners.retraining: this name is taken in the tables; choose another
unlearners.gold = {kind: salun}
    unlearners.gold: this name is taken in the tables; choose another
evidence.targets = [{target: sad, value: 50}, {target: preservation, value: 2}]
    evidence.targets[0].value: 50 is not allowed; a share is at most 1
left.selectors = [vfm]
    left.selectors[0]: unknown selector 'vfm'
left.unlearners = [pno]
    left.unlearners[0]: unknown unlearner 'pno'
datasets.made.planted = {texts: 3}
    datasets.made.planted: tiny is pretrained on the texts among which these are planted; write
    models.tiny.pretraining.domains: [retain]
"""
"""The same of a configuration that says as little as can be."""


def changes(table: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in table.strip().splitlines():
        if line.startswith(" "):
            change, told = found.pop()
            found.append((change, f"{told} {line.strip()}".strip()))
        else:
            found.append((line, ""))
    return found


def changed(config: Config, change: str) -> Config:
    path, _, value = change.partition(" = ")
    *path_to, last = path.split(".")
    at = config
    for key in path_to:
        at = at.setdefault(key, {})
    at[last] = yaml.safe_load(value)
    return config


@pytest.mark.parametrize(
    ("of", "change", "wanted"),
    [(paper, *row) for row in changes(MISTAKES)] + [(minimal, *row) for row in changes(SMALL)],
)
def test_a_mistake_is_one_line(of: Callable[[], Config], change: str, wanted: str) -> None:
    lines = mistakes(changed(of(), change))
    assert any(line.startswith(wanted) for line in lines), lines
    assert all("\n" not in line for line in lines)


def test_all_mistakes_at_once() -> None:
    config = paper()
    config["grid"]["budgets"] = [0.5, 2]
    config["training"]["epochs"] = -1
    config["trainin"] = {}
    assert [line.split(":")[0] for line in mistakes(config)] == [
        "grid.budgets[1]",
        "training.epochs",
        "trainin",
    ]


def test_shapes_of_all_sorts_are_reported_not_raised() -> None:
    shapes = "null, [], 3, text, {a: null}, {a: []}, [[]], {kind: []}, {a: {kind: {}}}"
    for value in yaml.safe_load(f"[{shapes}]"):
        for section in ("grid", "datasets", "models", "selectors", "removal", "training"):
            config = paper()
            config[section] = value
            try:
                complete(config)
            except ConfigError as error:
                assert all(section in line or "unknown" in line for line in error.lines)


def test_a_share_of_nothing_is_left_out() -> None:
    config = paper()
    config["datasets"]["newsgroups"]["sections"] = {"contamination": 0, "inference": 1}
    assert complete(config)["datasets"]["newsgroups"]["sections"] == {"inference": 1.0}


def test_paths_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (JIGSAW[0], JIGSAW[1], f"{JIGSAW[2]}.zip"):
        (tmp_path / name).touch()
    monkeypatch.setenv("MAMUSHI_JIGSAW", str(tmp_path))
    full = complete(paper())
    assert full["datasets"]["jigsaw"]["path"] == str(tmp_path)
    assert full["datasets"]["newsgroups"]["path"] is None
    assert files(full["datasets"]["newsgroups"]) == []
    assert files(full["datasets"]["jigsaw"]) == [
        str(tmp_path / "train.csv"),
        str(tmp_path / "test.csv"),
        str(tmp_path / "test_labels.csv.zip"),
    ]


def test_a_folder_without_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "train.csv").touch()
    config = paper()
    config["datasets"]["jigsaw"]["path"] = str(tmp_path)
    [line] = mistakes(config)
    assert line.startswith(
        f"datasets.jigsaw.path: '{tmp_path}' is not allowed; test.csv, test_labels.csv not there; "
    )


def test_definitions_that_are_not_used_may_lack_their_files() -> None:
    config = paper()
    config["datasets"]["jigsaw"]["path"] = "/no/such/folder"
    config["grid"]["datasets"] = ["newsgroups"]
    config["probe"]["datasets"] = ["newsgroups"]
    config["studies"] = None
    assert complete(config)["grid"]["datasets"] == ["newsgroups"]


def test_a_lab_s_own_case(tmp_path: Path) -> None:
    """A contaminated model in a folder and a table with its training data, by themselves."""
    table = tmp_path / "training.parquet"
    table.touch()
    (tmp_path / "config.json").touch()
    comments = {
        "kind": "table",
        "path": str(table),
        "forget": {"where": "toxicity >= 0.5"},
        "sections": {"inference": 1},
    }
    full = complete(
        {
            "grid": {"datasets": ["comments"], "models": ["ours"], "seeds": [0]},
            "datasets": {"comments": comments},
            "models": {"ours": {"source": str(tmp_path), "contaminated": True}},
        }
    )
    assert full["studies"] == {}
    assert [*full["datasets"], *full["models"]] == ["comments", "ours"]
    assert full["datasets"]["comments"]["sections"] == {"inference": 1.0}
    assert full["datasets"]["comments"]["forget"] == {"where": "toxicity >= 0.5"}
    assert full["models"]["ours"]["contaminated"] is True
    assert files(full["datasets"]["comments"]) == [str(table)]


def test_masking_wants_texts_and_a_base_to_train_its_models_on() -> None:
    config = paper() | {"studies": None}
    config["selectors"]["random"] = {"action": "mask"}
    complete(config)
    config["datasets"]["jigsaw"]["sections"] = {"inference": 1}
    config["models"]["ours"] = {"source": str(ROOT), "contaminated": True}
    config["grid"] |= {"datasets": ["jigsaw"], "models": ["ours", "gemma-2-2b"]}
    masks = "grid.selectors[0]: 'random' masks by models"
    wanted = [
        f"{masks} of the contamination section, which datasets.jigsaw.sections does not have",
        f"{masks} that are trained from the base, which models.ours.base does not name",
    ]
    assert [line for line in mistakes(config) if line.startswith("grid.selectors")] == wanted


@pytest.mark.parametrize("sections", [None, {"contamination": 0.4, "inference": 0.6}])
def test_a_contaminated_model_wants_all_texts_ranked(sections: Config | None) -> None:
    config = minimal()
    mine: Config = {"kind": "table", "forget": {"where": "x > 1"}}
    config["datasets"]["mine"] = mine | ({"sections": sections} if sections else {})
    config["models"]["ours"] = {"source": None, "contaminated": True}
    config["grid"] = {"datasets": ["mine"], "models": ["ours"]}
    [line] = mistakes(config)
    assert line.startswith(
        "datasets.mine.sections: the contamination section, 40% of its texts, would be neither "
        "ranked nor trained on, since ours has been contaminated before; write {inference: 1.0}"
    )
    for good in (
        {"datasets": {"mine": mine | {"sections": {"inference": 0.8, "evaluation": 0.2}}}},
        {"datasets": {"mine": mine | {"section": "split"}}},
        {"datasets": {"mine": {"kind": "synthetic"}}},
        # Somebody needs that section.
        {"grid": {"datasets": ["mine"], "models": ["ours", "tiny"]}},
        {"studies": {"other": {"models": ["tiny"]}}},
    ):
        given = config | good
        given["datasets"] = config["datasets"] | given["datasets"]
        assert complete(given)
    config["models"]["tiny"]["pretraining"]["datasets"] = ["mine"]
    config["models"]["ours"]["base"] = "tiny"
    assert complete(config)


def test_a_configuration_without_a_grid_says_how_to_have_the_paper_s() -> None:
    lines = mistakes({"training": {"epochs": 1}})
    assert lines == [
        f"{key}: missing; write it, or `extends: paper` for what config.yaml says"
        for key in ("grid", "datasets", "models")
    ]


def test_a_folder_is_a_model(tmp_path: Path) -> None:
    config = paper()
    config["models"]["gemma-2-2b"] = {"source": str(tmp_path)}
    at = f"models.gemma-2-2b.source: {str(tmp_path)!r} is not allowed; "
    (line,) = mistakes(config)
    assert line.startswith(f"{at}this folder holds no model (no config.json)")
    (tmp_path / "config.json").touch()
    (tmp_path / "pytorch_model.bin").touch()
    (line,) = mistakes(config)
    assert line.startswith(f"{at}its weights are pickle files (pytorch_model.bin), which can run")
    (tmp_path / "model.safetensors").touch()
    assert complete(config)["models"]["gemma-2-2b"]["revision"] is None


def test_a_gguf_file_is_a_model_if_it_starts_as_one(tmp_path: Path) -> None:
    path, config = tmp_path / "small.Q8_0.gguf", paper()
    config["models"]["gemma-2-2b"] = {"source": str(path)}
    at = f"models.gemma-2-2b.source: {str(path)!r} is not allowed; "
    assert mistakes(config) == [f"{at}no such file"]
    begins = f"{at}it does not start as a GGUF file does; download it again"
    for content in (b"", b"GGUF\3", b"PK\3\4" + bytes(60)):
        path.write_bytes(content)
        assert mistakes(config) == [begins]
    path.write_bytes(b"GGUF\0\0\0\3")
    (line,) = mistakes(config)
    assert line.startswith(f"{at}its GGUF version, 50331648, cannot be read; 2 and 3 can")
    path.write_bytes(b"GGUF\3\0\0\0")
    assert complete(config)["models"]["gemma-2-2b"]["source"] == str(path)


def test_the_head_node_imports_nothing_heavy() -> None:
    code = (
        "import sys, yaml\n"
        "from mamushi.configuration.complete import complete\n"
        "complete(yaml.safe_load(open('config.yaml')))\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "workflow")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("name", ["llama-3.1-8b", "A", "0_x"])
def test_names_that_are_allowed(name: str) -> None:
    config = minimal()
    config["datasets"][name] = {"kind": "synthetic"}
    assert name in complete(config)["datasets"]


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "a;b", "$a", "a'", "ä", "a\n"])
def test_names_are_safe_in_a_shell_and_a_path(name: str) -> None:
    config = minimal()
    config["datasets"][name] = {"kind": "synthetic"}
    [line] = mistakes(config)
    assert "this name is not allowed" in line


@pytest.mark.parametrize(
    ("definition", "measurable"),
    [
        ({"kind": "jigsaw"}, True),
        ({"kind": "synthetic"}, True),
        ({"kind": "newsgroups"}, False),
        ({"kind": "newsgroups", "sections": {"inference": 0.5, "evaluation": 0.5}}, True),
        ({"kind": "table", "forget": {"where": "x > 1"}}, False),
        ({"kind": "table", "forget": {"where": "x > 1"}, "section": "split"}, True),
    ],
)
def test_measuring_needs_an_evaluation_section(definition: Config, measurable: bool) -> None:
    config = minimal()
    config["datasets"]["mine"] = {"sections": {"inference": 1}, **definition}
    reason = grid.unmeasurable(complete(config), "mine", "tiny")
    assert (reason is None) == measurable
    assert measurable or "datasets.mine.sections" in str(reason)


# Unlearning ---------------------------------------------------------------------------------------


def test_unlearning_and_its_probe_take_the_grids_lists() -> None:
    config = minimal()
    config["grid"] |= {"seeds": [3, 4], "selectors": ["random", "lr_cos"]}
    config["unlearning"] = {"selectors": ["random"]}
    full = complete(config)
    assert full["unlearning"]["datasets"] == full["probe"]["datasets"] == ["made"]
    assert full["unlearning"]["models"] == full["probe"]["models"] == ["tiny"]
    assert full["unlearning"]["selectors"] == ["random"]
    assert full["unlearning"]["seeds"] == [3, 4]
    assert full["probe"]["seeds"] == [3]
    assert full["unlearning"]["max_length"] == full["tokens"]["max_length"]


def test_what_is_left_is_asked_of_the_grids_cells() -> None:
    config = minimal()
    config["grid"] |= {"seeds": [3, 4], "selectors": ["random", "lr_cos"]}
    left = complete(config)["left"]
    assert [left[axis] for axis in ("datasets", "models", "seeds")] == [["made"], ["tiny"], [3, 4]]
    assert (left["selectors"], left["unlearners"]) == ([], [])
    config["left"] = {"selectors": ["vmf"], "unlearners": ["npo"]}
    full = complete(config)
    # Those that nothing else asks for have their settings too.
    assert full["selectors"]["vmf"]["kind"] == "vmf"
    assert full["unlearners"]["npo"]["training"] == full["unlearning"]["training"]


def test_what_is_left_is_asked_of_texts_that_are_removed() -> None:
    config = minimal() | {"left": {"selectors": ["softly"]}}
    config["selectors"] = {"softly": {"kind": "lr_cos", "action": "downweight"}}
    assert mistakes(config) == [
        "left.selectors[0]: 'softly' is not allowed, since its action is downweight and no text is "
        "removed whole"
    ]


def test_what_is_planted_is_a_setting_of_its_dataset_alone() -> None:
    config = minimal()
    plain = made("examples", config)
    config["datasets"]["made"]["planted"] = {"texts": 3}
    config["models"]["tiny"]["pretraining"]["domains"] = ["retain"]
    planted = made("examples", config)
    assert planted.planted == {"texts": 3, "repeats": [1, 4, 16]}
    # Data that was made before the key was there is not made again for it.
    assert "planted" not in settings.as_json(plain)
    assert "planted" in settings.as_json(planted)


def test_the_papers_unlearning() -> None:
    full = complete(paper())
    axes = full["unlearning"]
    assert axes["start"] == "beta0"
    assert axes["selectors"] == ["random", "coreset", "mamushi"]
    assert (axes["fine"], axes["retain_cap"], axes["trained_blocks"]) == (0.05, 5.6, 3)
    assert axes["max_length"] == 256
    training = {"epochs": 5.0, "batch_size": 8, "betas": [0.0, 0.999], "gradient_clip": 0.5}
    for name in ("neggrad_plus", "salun"):
        assert training.items() <= full["unlearners"][name]["training"].items()
    assert full["unlearners"]["neggrad_plus"]["learning_rate"] == 1e-5
    assert full["unlearners"]["neggrad_plus"]["beta_ng"] == 0.85
    assert full["unlearners"]["neggrad_plus"]["stop_forget_loss"] == 5
    assert full["unlearners"]["salun"]["learning_rate"] == 3e-6
    assert full["unlearners"]["salun"]["sparsity"] == 0.5
    assert (full["probe"]["budget"], full["probe"]["new_tokens"]) == (0.2, 40)


def test_a_second_version_of_an_unlearner_has_a_training_of_its_own() -> None:
    config = minimal()
    matched = {"kind": "neggrad_plus", "training": {"steps": "matched"}}
    config["unlearning"] = {"unlearners": ["neggrad_plus", "slow"], "training": {"epochs": 2}}
    config["unlearners"] = {"slow": matched}
    found = complete(config)["unlearners"]
    assert found["slow"]["training"] == {
        **found["neggrad_plus"]["training"],
        "steps": "matched",
    }
    assert found["slow"]["training"]["epochs"] == 2.0


def test_a_list_that_the_workflow_writes_may_not_be_there_yet() -> None:
    config = minimal()
    config["unlearning"] = {"lists": {"top": "results/runs/x.parquet"}}
    assert complete(config)["unlearning"]["lists"] == {"top": "results/runs/x.parquet"}


def ready(**changes: Any) -> Config:
    """A model that is already contaminated, with the clean one that it was trained from."""
    config = minimal()
    config["models"]["ours"] = {"source": None, "contaminated": True, "base": "tiny"}
    config["models"]["ours"]["training"] = {"trained_blocks": 2, "precision": "fp32"}
    config["grid"]["models"] = ["ours"]
    config["unlearning"] = changes
    return complete(config)


def test_a_contaminated_model_is_unlearned_as_it_is() -> None:
    assert arms.start(ready(), "ours") == "contaminated"
    assert arms.is_untrained(ready(), "ours", "contaminated")
    assert arms.Arm("contaminated").base(ready(), "ours") == "ours"
    assert arms.Arm("gold").base(ready(), "ours") == "tiny"
    start = made("unlearn", ready(), model="ours", unlearner="salun").start
    assert (start.training, start.precision) == (None, "fp32")
    plain = complete(minimal())
    assert arms.start(plain, "tiny") == "beta0"


def test_endpoints_are_opened_as_they_were_trained() -> None:
    config = ready()
    trained = made("finetune", config, model="ours", role="gold").training
    for opened in (
        made("judge", config, model="ours", arm="gold"),
        made("ask", config, model="ours", arm="gold", asked=["generate"]).model,
    ):
        assert opened.training is not None
        assert vars(opened.training).items() <= vars(trained).items()
        assert opened.training.trained_blocks == 2
        assert opened.precision == trained.precision == "fp32"


def test_code_of_answers_is_no_part_of_plain_unlearning() -> None:
    config = complete(paper())
    cell = {"dataset": "newsgroups", "model": "qwen-2.5-7b", "unlearner": "salun"}
    asking = made("unlearn", config, **cell, asked=["generate"])
    assert asking.code != made("unlearn", config, **cell).code
