"""Quoted cells that have swallowed rows, and those that are texts with line ends."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import pytest

from mamushi.data import readers
from mamushi.errors import UserError

SENTENCES = ["The boat left.", "We will be back", "said nobody at all.", "and then we ate."]


def told(number: int) -> dict[str, Any]:
    """Cells of the row of a number."""
    digest = hashlib.sha256(str(number).encode()).hexdigest()[:12]
    return {"score": number / 7, "day": number % 28 + 1, "hash": digest}


def swallowing(form: list[str], separator: str, before: int = 12) -> str:
    """Return a table in which a quote opens in one row and closes in the one after the next."""
    texts = [SENTENCES[0]] * before + [f'"{SENTENCES[1]}', SENTENCES[2], f'{SENTENCES[3]}"']
    lines = [separator.join(f"c{at}" for at in range(len(form)))]
    for number, text in enumerate([*texts, SENTENCES[0]], 1):
        label = "train" if number % 3 else "test"
        cells = [
            each.format(n=number, text=text, label=number % 2, word=label, **told(number))
            for each in form
        ]
        lines.append(separator.join(cells))
    return "\n".join(lines) + "\n"


FORMS = (
    ["r{n}", "{text}"],
    ["{n}", "{text}"],
    ["{n:06d}-ab", "{text}", "{label}"],
    ["{n}", "{text}", "{label}"],
    ["{text}", "{label}"],
    ["{text}", "{score:.3f}"],
    ["{label}", "{text}"],
    ["{n}", "{label}", "{text}"],
    ["{n}", "{text}", "{word}"],
    # What tells is a column made all alike, behind the text or in front of it.
    ["{text}", "2024-03-{day:02d}"],
    ["{text}", "2024-03-{day:02d}", "u{n}"],
    ["{text}", "{hash}"],
)


@pytest.mark.parametrize("form", FORMS, ids="-".join)
@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t")])
def test_rows_in_a_quoted_cell_are_refused_with_its_lines(
    tmp_path: Path, form: list[str], name: str, separator: str
) -> None:
    data = tmp_path / name
    data.write_text(swallowing(form, separator))
    message = r"a\...v, row 13: a quoted cell, of lines 14 to 16, holds .* \(line 15\).*quote none"
    with pytest.raises(UserError, match=message):
        readers.read_file_columns(data, ["c0"])
    assert len(readers.read_file_columns(data, ["c0"], quote=False).places) == 16


@pytest.mark.parametrize("separator", [",", "\t"])
def test_rows_are_known_from_the_first_on(tmp_path: Path, separator: str) -> None:
    data = tmp_path / ("a.csv" if separator == "," else "a.tsv")
    data.write_text(swallowing(["r{n}", "{text}", "{label}"], separator, before=0))
    with pytest.raises(UserError, match="row 1: a quoted cell, of lines 2 to 4"):
        readers.read_file_columns(data, ["c0"])
    data.write_text(f'id{separator}"text{separator}label\nr1{separator}a{separator}0"\n')
    with pytest.raises(UserError, match=r"row|header"):
        readers.read_file_columns(data, ["id"])


TEXTS = [
    "Hello,\nyes, I think so\n\nand, well, no",
    "In 2008, it cost\n10,000 people, or\n1,500,000 of them",
    "1, first\n2, second\n3, third",
    "a list:\n\t- one\n\t- two\n",
    'He said "no",\nand "yes, then"\n"good"',
    "costs 2,5\nor so",
    "x\r\ny, z\r\n",
    "def f(a, b):\n    return a, b\n",
    "1999, what a year\n17, said he",
]


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("form", [form for form in FORMS if form[0] != "r{n}"], ids="-".join)
def test_texts_with_line_ends_are_read(tmp_path: Path, form: list[str], separator: str) -> None:
    data = tmp_path / ("a.csv" if separator == "," else "a.tsv")
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=separator, lineterminator="\n")
    writer.writerow(f"c{at}" for at in range(len(form)))
    texts = ["plain"] * 12 + TEXTS * 3
    for number, text in enumerate(texts, 17):
        known = dict(n=number * 7 % 1000, label=number % 2, word="train", **told(number))
        writer.writerow(each.format(text=text, **known) for each in form)
    data.write_bytes(sink.getvalue().encode())
    name = f"c{form.index('{text}')}"
    assert readers.read_file_columns(data, [name]).columns[name] == texts


def test_real_comments_are_read() -> None:
    """Of 20,000 the half has line ends, and many have as many commas as columns."""
    folder = Path(os.environ.get("MAMUSHI_JIGSAW") or "absent")
    if not (folder / "train.csv").is_file():
        pytest.skip("MAMUSHI_JIGSAW names no folder with train.csv")
    for name in ("train.csv", "test.csv"):
        table = readers.read_file_columns(folder / name, ["id", "comment_text"])
        assert len({*table.columns["id"]}) == len(table.places)
