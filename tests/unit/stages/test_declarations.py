"""What the stages declare is what the rules of the workflow give them."""

import re

from mamushi.running import stage
from tests.support.rules import rules


def called() -> dict[str, str]:
    """The stage command of each rule. No shell stands around it: that would end at once at the
    signal for which a training loop saves its state."""
    found = {
        name: re.match("exec python -m mamushi (\\S+) ", r["shell"]) for name, r in rules().items()
    }
    assert [name for name, match in found.items() if match is None] == []
    return {name: match[1] for name, match in found.items() if match}


def test_every_stage_is_that_of_a_rule() -> None:
    assert {*called().values()} == {*stage.stages()}


def test_a_rule_has_the_files_of_its_stage_under_the_same_names() -> None:
    for name, command in called().items():
        rule, declared = rules()[name], stage.declared(stage.Loaded(command))
        roles = {
            role: {each[0] for each in declared if each[1] == role} for _, role, _, _ in declared
        }
        assert roles["output"], f"{command} writes nothing"
        asked = re.findall(r"\{(input|output)\.(\w+)", rule["shell"])
        for role in ("input", "output"):
            assert {each for kind, each in asked if kind == role} <= {*rule[f"{role}s"]}, name
        if "input" in roles and "root" not in roles:
            # What it would read without a declaration would be no part of what it was made from.
            # The shards of a table are what it is itself made of, whatever their number.
            assert {*rule["inputs"]} - {"shards"} == roles["input"], name


def test_the_stages_that_compute_on_a_gpu_are_those_of_the_rules_that_ask_for_one() -> None:
    for name, command in called().items():
        assert rules()[name]["gpu"] == stage.Loaded(command).gpu, name
    assert {True, False} == {rule["gpu"] for rule in rules().values()}
