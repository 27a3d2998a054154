"""One clear line for each mistake in a configuration."""

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.errors import UserError
from tests.support.configurations import Config, minimal, paper

OF_PAPER = """
grid.budgets = [0.1, 0.5, 1.2]
    grid.budgets[2]: Input should be less than 1 (got 1.2)
training.lerning_rate = 1
    training.lerning_rate: unknown key; did you mean 'learning_rate'?
grid.datasets = ["jigsaws"]
    grid.datasets: unknown dataset 'jigsaws'; did you mean 'jigsaw'? known are: jigsaw,
removal.ratio = "random"
    removal.ratio: 'random' is not allowed; it scores no retain texts; choose a selector that
datasets.jigsaw.kind = "jig"
    datasets.jigsaw.kind: 'jig' is not allowed; did you mean 'jigsaw'? known are: jigsaw,
selectors.anti_mamushi = {"of": "token_random"}
    selectors.anti_mamushi.of: 'token_random' ranks tokens; name a selector of texts
datasets.mine = {"kind": "table"}
    datasets.mine.forget: Field required
datasets.jigsaw.sections.inference = 1.0
    datasets.jigsaw.sections: the shares sum to 1.5; they must sum to 1
tokens.max_length = 64
    training.max_length: 128 is above tokens.max_length, 64
datasets.jigsaw.path = "raw/{jigsaw}"
    datasets.jigsaw.path: what stands in braces is a wildcard
unlearning = {"selectors": ["token_random"], "unlearners": ["salun", "tilt"]}
    unlearning.selectors[0]: 'token_random' ranks tokens, and 'tilt' unlearns whole texts alone
"""
"""A change of config.yaml, and how the line begins that tells of it."""


def mistakes(config: Config) -> list[str]:
    with pytest.raises(UserError) as caught:
        complete(config)
    return str(caught.value).splitlines()


LINES = OF_PAPER.split("\n")[1:-1]


@pytest.mark.parametrize(("change", "beginning"), [*zip(LINES[::2], LINES[1::2], strict=True)])
def test_a_mistake_is_one_line(change: str, beginning: str) -> None:
    config = at = paper()
    path, _, value = change.partition(" = ")
    *path_to, last = path.split(".")
    for key in path_to:
        at = at.setdefault(key, {})
    at[last] = yaml.safe_load(value)
    assert any(line.startswith(beginning.strip()) for line in mistakes(config))


@pytest.mark.parametrize("name", ["", ".", "-x", "a/b", "a b", "$a", "a'", "ä", "a\n"])
def test_names_are_safe_in_a_shell_and_a_path(name: str) -> None:
    config = minimal()
    config["datasets"][name] = {"kind": "synthetic"}
    [line] = mistakes(config)
    assert "String should match pattern" in line
