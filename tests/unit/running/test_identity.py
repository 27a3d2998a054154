"""What moves the digest of a stage's code, on a copy of the package: numbers do, words do not."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.registry import plugin
from mamushi.running import identity
from mamushi.running.stage import stages
from tests.support.workflow import ROOT

CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
TRAINING = "mamushi/lm/training.py"
Edit = Callable[[str, Callable[[str], str]], None]
"""Rewrites the text of a file, by its path below ``workflow``."""


def forget() -> None:
    """Let the next digest read its files anew."""
    for cached in ("stage_digest", "_parse", "_module_text", "_imports"):
        getattr(identity, cached).cache_clear()


def digests() -> dict[str, str]:
    """The digest of every stage without plug-ins, by the code as it is now."""
    forget()
    return {
        name: identity.stage_digest(stage.module.__name__, stage.function.__name__)
        for name, stage in stages().items()
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, which nobody else changes meanwhile."""
    folder = tmp_path_factory.mktemp("copy")
    for package in ("mamushi", "mamushi_curate", "mamushi_extras"):
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(identity.PACKAGES / package, folder / package, ignore=without)
    return folder


@pytest.fixture(scope="module")
def before(copy: Path) -> Iterator[dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "PACKAGES", copy)
        yield digests()


@pytest.fixture
def edit(copy: Path, before: dict[str, str]) -> Iterator[Edit]:
    """Change files of the copy, of which digests are taken, for one test."""
    originals = {}

    def rewrite(name: str, change: Callable[[str], str]) -> None:
        originals[name] = text = (copy / name).read_text(encoding="utf-8")
        changed = change(text)
        assert changed != text
        (copy / name).write_text(changed, encoding="utf-8")

    yield rewrite
    for name, text in originals.items():
        (copy / name).write_text(text, encoding="utf-8")
    forget()


def moved(before: dict[str, str]) -> set[str]:
    """The stages that have another digest than before."""
    return {name for name, digest in digests().items() if digest != before[name]}


def reworded(text: str) -> str:
    """Return a file's text with another comment, docstring and message of errors."""
    text = re.sub(r'^( *)"""', r'\1"""Another text. ', text, count=1)
    return "# A comment.\n" + re.sub(r'(raise \w+\(f?")', r"\1other ", text)


def test_words_for_a_reader_change_no_digest(edit: Edit, before: dict[str, str]) -> None:
    for name in (TRAINING, "mamushi/stages/train.py", "mamushi/selection/removals.py"):
        edit(name, reworded)
    edit("mamushi/io/columns.py", lambda text: text.replace("Id of the", "The id of the"))
    assert moved(before) == set()


def test_a_calculation_of_the_training_changes_what_trains(
    edit: Edit, before: dict[str, str]
) -> None:
    edit(TRAINING, lambda text: re.sub(r" \+ ", " - ", text))
    changed = moved(before)
    assert {"finetune", "base-model"} <= changed
    assert not changed & {"remove", "geometry", "score", "embed", "evaluate", "tables"}


def test_a_stage_is_not_the_one_beside_it(edit: Edit, before: dict[str, str]) -> None:
    words = '"trained_tensors": sum(', '"tensors": sum('
    edit("mamushi/stages/train.py", lambda text: text.replace(*words))
    assert moved(before) == {"finetune"}


def test_a_selector_s_file_changes_the_scores_of_its_kind_alone(edit: Edit) -> None:
    def scores() -> dict[str, str]:
        forget()
        score, config = stages()["score"], complete(CONFIG)
        kinds = ("random", "mamushi")
        return {kind: score.settings_text(config, selector=kind, seed=0) for kind in kinds}

    was = scores()
    file = plugin("selector", "random").code.__name__.replace(".", "/")
    edit(f"{file}.py", lambda text: text + "\nMORE = 1\n")
    assert {kind for kind, text in scores().items() if text != was[kind]} == {"random"}


def test_a_raised_version_changes_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    config, stage = complete(CONFIG), stages()["tokens"]
    was = json.loads(stage.settings_text(config))
    monkeypatch.setattr(stage.module, "VERSION", {"tokens": 2}, raising=False)
    assert json.loads(stage.settings_text(config)) == was | {"version": 2}
