"""What the stages say of themselves: what they write, what they read, who gets a GPU."""

from __future__ import annotations

import argparse
import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from mamushi import cli
from tests.support.rules import gpu_rules
from tests.support.workflow import ROOT

NEITHER = {"state", "trunk", "cache", "root", "tables"}
"""Paths that are no input and no output: what only saves time, and where results are looked for."""


def called() -> dict[str, list[str]]:
    """The stage commands of the rules: options with names, by stage."""
    found: dict[str, list[str]] = {}
    for path in ROOT.glob("workflow/rules/*.smk"):
        for stage in re.findall(r"python -m mamushi ([a-z-]+)", path.read_text(encoding="utf-8")):
            found.setdefault(stage, []).append(path.name)
    return found


def test_no_shell_stands_around_a_stage() -> None:
    """It would end at once at the signal for which a training loop saves its state."""
    for path in ROOT.glob("workflow/rules/*.smk"):
        text = path.read_text(encoding="utf-8")
        assert text.count("python -m mamushi") == text.count('"exec python -m mamushi'), path


def module(stage: str) -> ModuleType:
    return importlib.import_module(f"mamushi.stages.{stage.replace('-', '_')}")


def paths_of(stage: str) -> set[str]:
    """The options of a stage that take paths."""
    parser = argparse.ArgumentParser()
    module(stage).arguments(parser)
    return {action.dest for action in parser._actions if action.type is Path}


@pytest.mark.parametrize("stage", sorted(called()))
def test_every_path_of_a_stage_is_read_or_written(stage: str) -> None:
    of = module(stage)
    writes, reads = set(of.WRITES), set(of.READS or ())
    assert writes and not writes & reads
    assert writes | reads <= paths_of(stage)
    rest = paths_of(stage) - writes - reads
    assert rest <= NEITHER, f"{rest}: inputs or outputs?"
    if of.READS is not None:
        # A folder of results, or a cache, would be read without being looked at.
        assert not rest & {"root", "tables", "cache"}
        assert reads


def test_all_stages_of_rules_are_claimed_and_no_others() -> None:
    claimed = {name for name in cli.names() if hasattr(module(name), "WRITES")}
    assert claimed == called().keys()
    assert cli.names() == sorted({*claimed, "advise", "export", "verify"})


def test_the_literals_can_be_read_without_importing() -> None:
    for stage in called():
        tree = ast.parse(Path(str(module(stage).__file__)).read_text(encoding="utf-8"))
        found = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in ("WRITES", "READS", "GPU")
        }
        assert {"WRITES", "READS"} <= found.keys()


def test_the_stages_that_compute_on_a_gpu_are_those_of_the_rules_that_ask_for_one() -> None:
    start = re.compile(
        r"^(?:use rule (\w+) as (\w+) with|(?:rule|checkpoint) (\w+)):", re.MULTILINE
    )
    stage_of: dict[str, str] = {}
    made_from: dict[str, str] = {}
    for path in ROOT.glob("workflow/rules/*.smk"):
        text = path.read_text(encoding="utf-8")
        starts = [*start.finditer(text)]
        ends = [*(match.start() for match in starts), len(text)][1:]
        for match, end in zip(starts, ends, strict=True):
            base, derived, own = match.groups()
            if base:
                made_from[derived] = base
            command = re.search(r"python -m mamushi ([a-z-]+)", text[match.end() : end])
            if command:
                stage_of[derived or own] = command[1]

    def stage(rule: str) -> str:
        return stage_of[rule] if rule in stage_of else stage(made_from[rule])

    asking = {stage(rule) for rule in gpu_rules()}
    others = {stage(rule) for rule in {*stage_of, *made_from} - gpu_rules()}
    assert asking == {name for name in cli.names() if getattr(module(name), "GPU", False)}
    assert asking and not asking & others
