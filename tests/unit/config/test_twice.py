"""A key that stands twice in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from mamushi.config.reading import ConfigError, check_twice

ROOT = Path(__file__).parents[3]
BASE = ROOT / "config.yaml"


def lines_of(folder: Path, *texts: str) -> list[str]:
    """The lines about these files over config.yaml, with the files as ``0.yaml``, ``1.yaml``..."""
    files = [folder / f"{place}.yaml" for place in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    try:
        check_twice([BASE, *files])
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
        ("grid:\n  seeds: [0]\n  seeds: [1]\n", "line 3: seeds"),
        ("tokens: {}\ngrid: {}\n# more\ntokens: {max_length: 9}\n", "line 4: tokens"),
        ("evidence:\n  targets:\n  - {value: 1, value: 2}\n", "line 3: value"),
        ('{"grid": {"seeds": [0], "seeds": [1]}}', "line 1: seeds"),
    ],
)
def test_a_key_that_stands_twice(text: str, line: str, tmp_path: Path) -> None:
    [line_of_key] = lines_of(tmp_path, text)
    assert line_of_key.startswith(f"0.yaml, {line} stands there twice, first in line ")


def test_the_same_key_in_other_places_is_no_mistake(tmp_path: Path) -> None:
    text = "a: &more {x: 1, y: 2}\nb: {<<: *more, y: 3}\nc: [{x: 1}, {x: 2}]\n"
    assert lines_of(tmp_path, text, text) == []
