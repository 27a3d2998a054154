"""One clear line for each mistake in a configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.config.reading import ConfigError
from tests.support.configurations import ROOT, Config, minimal, paper

MISTAKES = """
grid.budgets = [0.1, 0.5, 1.2]
    grid.budgets[2]: 1.2 is not allowed; it should be less than 1
grid.budgets = [0.5, "0.50"]
    grid.budgets: [0.5, '0.50'] is not allowed; each entry may stand there once
training.lerning_rate = 1
    training.lerning_rate: unknown key; did you mean 'learning_rate'? known are: batch_size,
training.epochs = "many"
    training.epochs: 'many' is not allowed; it should be a number
training.batch_size = 1.5
    training.batch_size: 1.5 is not allowed; it should be a whole number
training.learning_rate = "inf"
    training.learning_rate: 'inf' is not allowed; it should be a number
data = [1]
    data: [1] is not allowed; it should be a mapping of keys to values
models.gemma-2-2b.training = {"epoch": 1}
    models.gemma-2-2b.training.epoch: unknown key; did you mean 'epochs'?
grid.datasets = ["jigsaws"]
    grid.datasets[0]: unknown dataset 'jigsaws'; did you mean 'jigsaw'? known are: jigsaw,
grid.selectors = ["random", "mamishi"]
    grid.selectors[1]: unknown selector 'mamishi'; did you mean 'mamushi'? known are:
removal.ratio = "random"
    removal.ratio: 'random' is not allowed, since it gives retain texts no score and so
    estimates no density ratio; choose a selector that does, such as mamushi
datasets.jigsaw.kind = "jig"
    datasets.jigsaw.kind: 'jig' is not allowed; did you mean 'jigsaw'? known are: jigsaw,
    newsgroups, synthetic, table
datasets.jigsaw.forget = ["toxic", "sever_toxic"]
    datasets.jigsaw.forget[1]: 'sever_toxic' is not allowed; did you mean 'severe_toxic'? it
    should be 'toxic',
execution.tracker = "wandb"
    execution.tracker: wandb is not installed; pip install wandb
datasets.mine = {"path": "x.csv"}
    datasets.mine.kind: missing; known are: jigsaw, newsgroups, synthetic, table
selectors.mine = {"kind": "best"}
    selectors.mine.kind: 'best' is not allowed; known are: anti_mamushi, auto, coreset,
    cos_mu2,
selectors.anti_mamushi = {"of": "token_random"}
    selectors.anti_mamushi.of: 'token_random' ranks tokens; name a selector of texts
selectors.mamushi = {"folds": 1}
    selectors.mamushi.folds: 1 is not allowed; it should be greater than or equal to 2
selectors.auto = {"depths": [0.3, 1]}
    selectors.auto.depths: 0.3 is not among embedding.depths (0.25, 0.5, 0.75); 1 is the
    embedding
selectors.auto = {"networks": "random"}
    selectors.auto.networks: 'random' is of kind random; networks are those of kind mamushi
selectors.anti_mamushi = {"of": "anti_mamushi"}
    selectors.anti_mamushi: derives from itself (anti_mamushi from anti_mamushi)
datasets.mine = {"kind": "table"}
    datasets.mine.forget: missing; it has no default (What marks the forget domain: a column
    and its values, an expression,
datasets.mine = {"kind": "table", "forget": {"column": "label"}}
    datasets.mine.forget: allowed is one of: column and values, where, like, terms
datasets.jigsaw.sections.inference = 1.0
    datasets.jigsaw.sections: the shares (contamination 0.5, inference 1) sum to 1.5; they must
    sum to 1
models.mine = {}
    models.mine.source: missing; it has no default (Local folder, or an id on the hub such as
    google/gemma-2-2b; or give a family, of which to build a tiny one)
models.gemma-2-2b.revision = null
    models.gemma-2-2b.revision: null is not allowed, since 'google/gemma-2-2b' is no folder
tokens.max_length = 64
    training.max_length: 128 is not allowed; it is at most tokens.max_length, 64
models.gemma-2-2b.training.max_length = 512
    models.gemma-2-2b.training.max_length: 512 is not allowed; it is at most tokens.max_len
grid.selectors = ["random", "oracle"]
    grid.selectors[1]: 'oracle' is not allowed with the dataset 'jigsaw'; it needs the true
    density ratio, which synthetic data has
selectors.anti_mamushi = {"of": "oracle"}
    studies.reverse.selectors[2]: 'anti_mamushi' is not allowed with the dataset 'newsgroups'
datasets.jigsaw.path = "raw/{jigsaw}"
    datasets.jigsaw.path: 'raw/{jigsaw}' is not allowed; what stands in braces is a wildcard
datasets.jigsaw.path = "/no/such/folder"
    datasets.jigsaw.path: '/no/such/folder' is not allowed; no such folder; it names a folder
    with train.csv, test.csv, test_labels.csv (each plain or as .zip)
"""
"""A change of config.yaml, and how the line begins that tells of it."""

SMALL = """
models.tiny.heads = 3
    models.tiny: hidden_size, 64, is no multiple of heads, 3
models.tiny.hidden_size = 12
    models.tiny: hidden_size / heads is 3, but rotary positions turn pairs
models.tiny.max_positions = 100
    models.tiny: pretraining.max_length, 128, is above max_positions, 100
tokens.max_length = 300
    tokens.max_length: 300 is not allowed; the model 'tiny' has positions for 256 tokens; lower it
models.tiny.contaminated = true
    models.tiny.contaminated: true is not allowed;
unlearning.unlearners = [neggrad_plus, salum]
    unlearning.unlearners[1]: unknown unlearner 'salum'; did you mean 'salun'?
unlearning.lists = {mine: /no/such/list.txt}
    unlearning.lists.mine: '/no/such/list.txt' is not allowed; no such file
unlearners.salun = {sparsity: 2}
    unlearners.salun.sparsity: 2 is not allowed; it should be less than 1
evidence.targets = [{target: removal, value: 50}, {target: preservation, value: 2}]
    evidence.targets[0]: a share is at most 1
datasets.made.planted = {texts: 3}
    datasets.made.planted: unknown key; known are: drop_duplicates, kind,
unlearners.retraining = {kind: salun}
    unlearners.retraining: this name is taken in the tables; choose another
"""
"""The same of a configuration that says as little as can be."""


def changes(table: str) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for line in table.strip().splitlines():
        if line.startswith(" "):
            change, beginning = rows.pop()
            rows.append((change, f"{beginning} {line.strip()}".strip()))
        else:
            rows.append((line, ""))
    return rows


def changed(config: Config, change: str) -> Config:
    path, _, value = change.partition(" = ")
    *path_to, last = path.split(".")
    at = config
    for key in path_to:
        at = at.setdefault(key, {})
    at[last] = yaml.safe_load(value)
    return config


@pytest.mark.parametrize(
    ("of", "change", "beginning"),
    [(paper, *row) for row in changes(MISTAKES)] + [(minimal, *row) for row in changes(SMALL)],
)
def test_a_mistake_is_one_line(of: Callable[[], Config], change: str, beginning: str) -> None:
    lines = mistakes(changed(of(), change))
    assert any(line.startswith(beginning) for line in lines), lines
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


def test_a_folder_without_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "train.csv").touch()
    config = paper()
    config["datasets"]["jigsaw"]["path"] = str(tmp_path)
    [line] = mistakes(config)
    assert line.startswith(
        f"datasets.jigsaw.path: '{tmp_path}' is not allowed; test.csv, test_labels.csv not there; "
    )


def test_tokens_are_unlearned_by_loss_alone_where_they_are_asked_for() -> None:
    config = paper()
    config["grid"]["selectors"] = ["random", "token_random"]
    del config["unlearning"]["selectors"]
    assert complete(config)["unlearning"]["selectors"] == ["random"]
    for section in ("unlearning", "probe"):
        unlearners = ["neggrad_plus", "npo", "salun", "simnpo"]
        asked = {"selectors": ["token_random"], "unlearners": unlearners}
        config[section] = {**config.get(section, {}), **asked}
    complete(config)
    config["unlearning"] |= {"unlearners": ["salun", "rmu", "tilt"], "max_length": 100}
    config["left"] = {"selectors": ["token_random"]}
    config["removal"] = {"ratio": "token_unigram"}
    lines = mistakes(config)
    ranks = "unlearning.selectors[0]: 'token_random' ranks "
    assert [line.removeprefix(ranks) for line in lines if line.startswith("unlearning")] == [
        "tokens, and 'rmu' unlearns whole texts alone; leave one of them out of unlearning",
        "tokens, and 'tilt' unlearns whole texts alone; leave one of them out of unlearning",
        "the tokens of texts of 128 tokens (training.max_length); unlearning.max_length is to be "
        "as many",
    ]
    [line] = [candidate for candidate in lines if candidate.startswith("left.selectors")]
    assert line.endswith("is not allowed, since it ranks tokens and lists no text")
    assert any(line.startswith("removal.ratio: 'token_unigram' is not allowed") for line in lines)


def test_tokens_are_ranked_where_there_is_a_tokenizer() -> None:
    config = paper()
    vectors = {"path": str(ROOT / "v.parquet"), "id": "id", "vector": "vector"}
    config["models"]["vectors"] = {"embeddings": vectors}
    config["grid"] |= {"selectors": ["random", "token_random"], "models": ["gemma-2-2b", "vectors"]}
    line = "grid.selectors[1]: 'token_random' ranks tokens, and models.vectors has vectors alone "
    assert line + "and no tokenizer; leave one of them out" in mistakes(config)


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
        changed_config = config | good
        changed_config["datasets"] = config["datasets"] | changed_config["datasets"]
        assert complete(changed_config)
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
    (tmp_path / "adapter_config.json").touch()
    (line,) = mistakes(config)
    assert line.startswith(f"{at}this folder holds adapters (LoRA)")
    (tmp_path / "config.json").touch()
    # Also beside a model: transformers would open the one that the adapters name.
    assert mistakes(config) == [line]
    (tmp_path / "adapter_config.json").unlink()
    (tmp_path / "pytorch_model.bin").touch()
    (line,) = mistakes(config)
    assert line.startswith(f"{at}its weights are pickle files (pytorch_model.bin), which can run")
    (tmp_path / "model.safetensors").touch()
    assert complete(config)["models"]["gemma-2-2b"]["revision"] is None


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "a;b", "$a", "a'", "ä", "a\n"])
def test_names_are_safe_in_a_shell_and_a_path(name: str) -> None:
    config = minimal()
    config["datasets"][name] = {"kind": "synthetic"}
    [line] = mistakes(config)
    assert "this name is not allowed" in line


def mistakes(config: Config) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        complete(config)
    assert str(caught.value) == "\n".join(caught.value.lines)
    return caught.value.lines
