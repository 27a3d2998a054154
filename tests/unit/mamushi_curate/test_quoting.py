"""Quoted cells that have swallowed rows, and those that are texts with line ends."""

import csv
import io
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi_curate.tables import readers
from mamushi_curate.tables.lines import Dialect

SENTENCES = ["The boat left.", "We will be back", "said nobody at all.", "and then we ate."]
FORMS = (["r{n}", "{text}"], ["{n}", "{text}", "{n}"], ["{text}", "2024-03-01"])
NAMES = {",": "a.csv", "\t": "a.tsv"}


@pytest.mark.parametrize("form", FORMS, ids="-".join)
@pytest.mark.parametrize("separator", NAMES)
def test_rows_in_a_quoted_cell_are_refused_with_its_lines(
    tmp_path: Path, form: list[str], separator: str
) -> None:
    """A quote opens in one row and closes in the one after the next."""
    before = 12
    texts = [SENTENCES[0]] * before + [f'"{SENTENCES[1]}', SENTENCES[2], f'{SENTENCES[3]}"']
    lines = [separator.join(f"c{at}" for at in range(len(form)))]
    for n, text in enumerate([*texts, SENTENCES[0]], 1):
        lines.append(separator.join(each.format(n=n, text=text) for each in form))
    data = tmp_path / NAMES[separator]
    data.write_text("\n".join(lines) + "\n")
    message = rf"row {before + 1}: a quoted cell, of lines {before + 2} to {before + 4}, .*quote n"
    with pytest.raises(UserError, match=message):
        readers.read_file_columns(data, ["c0"])
    assert len(readers.read_file_columns(data, ["c0"], Dialect(quote=False)).places) == before + 4


TEXTS = [
    "Hello,\nyes, I think so\n\nand, well, no",
    "In 2008, it cost\n10,000 people, or\n1,500,000 of them",
    "1, first\n2, second\n3, third",
    "a list:\n\t- one\n\t- two\n",
    'He said "no",\nand "yes, then"\n"good"',
    "x\r\ny, z\r\n",
    "def f(a, b):\n    return a, b\n",
]


@pytest.mark.parametrize("separator", NAMES)
@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_texts_with_line_ends_are_read(tmp_path: Path, form: list[str], separator: str) -> None:
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=separator, lineterminator="\n")
    writer.writerow(f"c{at}" for at in range(len(form)))
    for n, text in enumerate(TEXTS):
        writer.writerow(each.format(text=text, n=n) for each in form)
    data = tmp_path / NAMES[separator]
    data.write_bytes(sink.getvalue().encode())
    name = f"c{form.index('{text}')}"
    assert [*readers.read_file_columns(data, [name]).columns[name]] == TEXTS
