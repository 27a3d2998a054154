"""One clear line for each mistake in a configuration."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.config.kinds import ConfigError
from tests.support.configurations import Config, minimal, paper

MISTAKES = """
grid.budgets = [0.1, 0.5, 1.2]
    grid.budgets[2]: Input should be less than 1 (got 1.2)
training.lerning_rate = 1
    training.lerning_rate: unknown key; did you mean 'learning_rate'?
training.epochs = "many"
    training.epochs: Input should be a valid number, unable to parse string as a number (got
grid.datasets = ["jigsaws"]
    grid.datasets[0]: unknown dataset 'jigsaws'; did you mean 'jigsaw'? known are: jigsaw,
grid.selectors = ["random", "mamishi"]
    grid.selectors[1]: unknown selector 'mamishi'; did you mean 'mamushi'? known are:
removal.ratio = "random"
    removal.ratio: 'random' is not allowed; it scores no retain texts; choose a selector that
datasets.jigsaw.kind = "jig"
    datasets.jigsaw.kind: 'jig' is not allowed; did you mean 'jigsaw'? known are: jigsaw,
    newsgroups, synthetic, table
selectors.anti_mamushi = {"of": "token_random"}
    selectors.anti_mamushi.of: 'token_random' ranks tokens; name a selector of texts
selectors.mamushi = {"folds": 1}
    selectors.mamushi.folds: Input should be greater than or equal to 2 (got 1)
datasets.mine = {"kind": "table"}
    datasets.mine.forget: Field required
datasets.jigsaw.sections.inference = 1.0
    datasets.jigsaw.sections: the shares sum to 1.5; they must sum to 1
tokens.max_length = 64
    training.max_length: 128 is not allowed; it is at most tokens.max_length, 64
datasets.jigsaw.path = "raw/{jigsaw}"
    datasets.jigsaw.path: what stands in braces is a wildcard
"""
"""A change of config.yaml, and how the line begins that tells of it."""

SMALL = """
unlearning.lists = {mine: /no/such/list.txt}
    unlearning.lists.mine: '/no/such/list.txt' is not allowed; no such file
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


def test_tokens_are_unlearned_by_loss_alone() -> None:
    config = paper()
    config["grid"]["selectors"] = ["random", "token_random"]
    del config["unlearning"]["selectors"]
    assert complete(config)["unlearning"]["selectors"] == ["random"]
    config["unlearning"] |= {"selectors": ["token_random"], "unlearners": ["salun", "tilt"]}
    [line] = mistakes(config)
    assert "ranks tokens, and 'tilt' unlearns whole texts alone" in line


def test_a_contaminated_model_wants_all_texts_ranked() -> None:
    config = minimal()
    config["datasets"]["mine"] = {"kind": "table", "forget": {"where": "x > 1"}}
    config["models"]["ours"] = {"source": None, "contaminated": True}
    config["grid"] = {"datasets": ["mine"], "models": ["ours"]}
    [line] = mistakes(config)
    assert line.startswith("datasets.mine.sections: no model is trained on the contamination sec")
    ranked = config["datasets"]["mine"] | {"sections": {"inference": 0.8, "evaluation": 0.2}}
    assert complete({**config, "datasets": config["datasets"] | {"mine": ranked}})
    # Somebody needs that section.
    assert complete({**config, "studies": {"other": {"models": ["tiny"]}}})


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "a;b", "$a", "a'", "ä", "a\n"])
def test_names_are_safe_in_a_shell_and_a_path(name: str) -> None:
    config = minimal()
    config["datasets"][name] = {"kind": "synthetic"}
    [line] = mistakes(config)
    assert "String should match pattern" in line


def mistakes(config: Config) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        complete(config)
    assert str(caught.value) == "\n".join(caught.value.lines)
    return caught.value.lines
