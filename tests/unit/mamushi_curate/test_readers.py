"""Reading tables: every format gives the same, and every kind of damage is told with its place."""

import os
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi_curate.tables import lines, readers


def test_half_of_a_character_is_no_damage_of_the_file() -> None:
    with pytest.raises(UserError, match=r"not valid UTF-8 \(surrogates not allowed: \\ud800"):
        lines.check_text("a\ud800", "a.jsonl, row 1")
    lines.check_text("a\U0001f600", "a.jsonl, row 1")


def test_a_name_that_is_not_utf8_is_shown_with_escapes(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xe9.csv"))
    path.write_text("id\n1\n")
    table = readers.read_file_columns(path, ["id"])
    assert table.file == r"d\xe9.csv" and table.places == [r"d\xe9.csv, row 1 (line 2)"]
    assert [*table.digests] == [path.name]
