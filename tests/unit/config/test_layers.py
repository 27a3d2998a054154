"""What would be lost without a word when configuration files are merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from mamushi.config.layers import check_layers
from mamushi.config.reading import ConfigError

ROOT = Path(__file__).parents[3]
BASE = ROOT / "config.yaml"


def lines_of(folder: Path, *texts: str) -> list[str]:
    """The lines about these files over config.yaml, with the files as ``0.yaml``, ``1.yaml``..."""
    files = [folder / f"{place}.yaml" for place in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    try:
        check_layers([BASE, *files])
    except ConfigError as error:
        short = {f"{folder}/": "", f"{ROOT}/": ""}
        lines = []
        for line in error.lines:
            for long, name in short.items():
                line = line.replace(long, name)
            lines.append(line)
        return lines
    return []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("grid:\n  seeds: [0]\n  seeds: [1]\n", "line 3: grid.seeds"),
        ("tokens: {}\ngrid: {}\n# more\ntokens: {max_length: 9}\n", "line 4: tokens"),
        ("evidence:\n  targets:\n  - {value: 1, value: 2}\n", "line 3: evidence.targets[0].value"),
        ('{"grid": {"seeds": [0], "seeds": [1]}}', "line 1: grid.seeds"),
    ],
)
def test_a_key_that_stands_twice(text: str, line: str, tmp_path: Path) -> None:
    [line_of_key] = lines_of(tmp_path, text)
    assert line_of_key.startswith(f"0.yaml, {line} stands there twice, first in line ")


def test_the_same_key_in_other_places_is_no_mistake(tmp_path: Path) -> None:
    text = "a: &more {x: 1, y: 2}\nb: {<<: *more, y: 3}\nc: [{x: 1}, {x: 2}]\n"
    assert lines_of(tmp_path, text, text) == []


@pytest.mark.parametrize(
    "text", ["", "- a\n", "a: [", "\ta: 1", "datasets: 3\n", "? [a, b]\n: 1\n"]
)
def test_shapes_of_all_sorts_are_left_to_others(text: str, tmp_path: Path) -> None:
    assert lines_of(tmp_path, text) == []


@pytest.mark.parametrize(
    ("dataset", "line"),
    [
        ("jigsaw: {kind: table}", "datasets.jigsaw is table data, but an earlier file has jigsaw "),
        ("newsgroups: {kind: newsgroups, path: here.tar.gz}", None),
        ("newsgroups: {sections: {inference: 1}}", None),
        ("newsgroups: null", None),
    ],
)
def test_a_dataset_is_changed_but_not_mixed(dataset: str, line: str | None, tmp_path: Path) -> None:
    lines = lines_of(tmp_path, f"datasets:\n  {dataset}\n")
    if line is None:
        assert lines == []
    else:
        assert len(lines) == 1
        assert lines[0].startswith(f"0.yaml, line 2: {line}")


def test_the_files_of_the_project_are_content() -> None:
    for profile in ("demo", "lab", "small"):
        check_layers([BASE, ROOT / f"profiles/{profile}/science.yaml"])
