"""Every rule can be read as it stands: a literal environment, and a shell line with its files."""

import re
from functools import cache

import pytest

from mamushi.running.stage import stages
from tests.support.workflow import ROOT

FILES = [*ROOT.glob("workflow/rules/*.smk"), *ROOT.glob("workflow/mamushi_*/*/rules.smk")]
RULE = re.compile(
    r"^(?:    )?(?:use )?rule (\w+)(?: as (\w+) with)?:\n((?:(?:        |    ).*\n|\n)+)", re.M
)
SECTION = re.compile(r"^    (\w+):(.*\n(?:        .*\n|\n)*)", re.M)


@cache
def rules() -> dict[str, dict[str, str]]:
    """The sections of each rule with an output, by name; what ``use rule`` takes over included."""
    every: dict[str, dict[str, str]] = {}
    for path in FILES:
        for name, alias, body in RULE.findall(path.read_text(encoding="utf-8")):
            every[alias or name] = every.get(name, {}) | dict(SECTION.findall(body))
    return {name: sections for name, sections in every.items() if "shell" in sections}


def line(name: str) -> str:
    """The shell line of a rule, without the quotes around its parts."""
    parts = re.findall(r"^ *([\"'])(.*)\1$", rules()[name]["shell"], re.M)
    return "".join(text for _, text in parts)


def names(section: str) -> set[str]:
    """The names of a rule's files, those of an arm among them."""
    of_arms = re.search(r"\barm_files\(([^)]*)\)", section)
    arm_names = re.findall(r'(?<!=)"(\w+)"', of_arms[1]) if of_arms else ()
    return {*re.findall(r"^        (\w+)=", section, re.M), *arm_names}


def called(name: str) -> str:
    """The stage of a rule. No shell stands around it: that would end at once at the signal for
    which a training loop saves its state."""
    match = re.match(r"exec python -m mamushi (\S+) ", line(name))
    assert match, name
    return match[1]


def test_all_rules_were_read_and_every_stage_is_that_of_one() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    assert len(rules()) > 30
    # And two of loops.
    assert {*map(called, rules())} | {"publish", "figure"} == {*stages()}
    assert not re.search(r"^ *checkpoint ", text, re.M), "a dry run would hide what comes after it"


@pytest.mark.parametrize("name", rules())
def test_a_rule_has_its_environment_and_gpu_and_says_where_each_file_goes(name: str) -> None:
    sections, stage = rules()[name], stages()[called(name)]
    assert re.fullmatch(r'\s*"(\.\./)+envs/mamushi\.yaml"\s*', sections["conda"])
    assert ("**on_gpu(" in sections.get("resources", "")) == stage.is_on_gpu
    assert line(name).endswith(" --settings {params.settings:q} > {log:q} 2>&1")
    parameters = {parameter.name.replace("_", "-"): parameter for parameter in stage.parameters}
    options = re.findall(r" --([\w-]+)", line(name))
    assert len(options) == len({*options})
    required = {option for option, p in parameters.items() if p.is_required}
    assert required <= {*options} - {"settings"} <= parameters.keys()
    files = re.findall(r'--([\w-]+) "?(?:\$\(dirname )?\{(input|output)\.(\w+):q\}', line(name))
    for option, role, _ in files:
        assert parameters[option].role == role
    for role in ("input", "output"):
        unnamed = names(sections.get(role, "")) - {
            file for _, place, file in files if place == role
        }
        # What lies beside a named output is written.
        assert not unnamed or (role == "output" and "dirname" in line(name)), unnamed
