"""What holds the project together: linters and types, one lock file, profiles for the rules."""

import os
import re
import runpy
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from tests.support.contract_grid import rules
from tests.support.workflow import ROOT, output_of

BIN = Path(sys.executable).parent
PROFILES = {path.parent.name: path for path in ROOT.glob("profiles/*/profile*.yaml")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CEILINGS: dict[str, int] = PROJECT["tool"]["mamushi"]["lines"]
GENERATOR = runpy.run_path(str(ROOT / "envs" / "generate.py"))
SNAKEFILES = ["Snakefile", "workflow/Snakefile", "workflow/rules"]


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["mypy"],
        ["snakefmt", "--check", *SNAKEFILES],
        ["snakemake", "--lint"],
        ["hadolint", "envs/Dockerfile"],
    ],
    ids=" ".join,
)
def test_linters_are_content(command: list[str]) -> None:
    unset = ("MAMUSHI_JIGSAW", "MAMUSHI_NEWSGROUPS", "SNAKEMAKE_PROFILE")
    env = {key: value for key, value in os.environ.items() if key not in unset}
    output_of(BIN / command[0], *command[1:], cwd=ROOT, env=env)


def locked() -> dict[str, str]:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)
    return dict(line.split("==") for line in lines)


def test_environment_files_come_from_the_lock_file() -> None:
    made = GENERATOR["conda"]((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert (ROOT / "envs" / "mamushi.yaml").read_text(encoding="utf-8") == made
    *_, pip = yaml.safe_load(made)["dependencies"]
    pins = dict(line.split("==") for line in pip["pip"])
    assert pins.items() <= locked().items()
    # What the workflow imports is there, what only its developers use is not.
    assert {"torch", "transformers", "snakemake", "pygments", "jsonschema"} <= pins.keys()
    assert "snakemake-executor-plugin-slurm" in pins
    assert not {"pytest", "mypy", "ruff", "snakefmt"} & pins.keys()


def test_the_lock_file_has_what_the_project_asks_for() -> None:
    pins = locked()
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [*PROJECT["project"]["dependencies"], *extras["slurm"], *extras["dev"]]
    for requirement in map(Requirement, asked):
        name = GENERATOR["canonical"](requirement.name)
        assert Version(pins[name]) in requirement.specifier, requirement


def test_what_is_tested_is_what_is_locked() -> None:
    installed = {name: version(name).split("+")[0] for name in locked()}
    assert installed == locked(), "the environment is not the lock file's: run make test"


@pytest.mark.parametrize("folder", CEILINGS)
def test_no_folder_grows(folder: str) -> None:
    """A lab picks a tool that it can read: the numbers only fall."""
    paths = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    sources = [path for path in paths if path.suffix in (".py", ".smk") or path.name == "Snakefile"]
    assert sources
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources)
    assert lines <= CEILINGS[folder]


def test_every_setting_is_an_option_of_snakemake() -> None:
    """A misspelt key would be dropped without a word if its value is a mapping."""
    from snakemake.cli import get_argument_parser

    known = {
        option for action in get_argument_parser()._actions for option in action.option_strings
    }
    for profile, path in PROFILES.items():
        for key in yaml.safe_load(path.read_text(encoding="utf-8")):
            # The one key that is there for its anchors.
            assert f"--{key}" in known or (profile, key) == ("slurm", "cluster"), (profile, key)


def test_every_command_takes_the_place_of_its_shell() -> None:
    """A shell dies of SIGTERM at once, and Snakemake would end the job while the command saves."""
    assert "retrain" in rules() and len(rules()) > 20
    for name, rule in rules().items():
        assert rule["shell"].startswith("exec python -m mamushi "), name
        assert not re.search(r"&&|\|\||;|\| ", rule["shell"]), name
