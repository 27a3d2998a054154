"""Every measured number in a table of the documentation is that of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.measured import problems

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
PAGE = """
<!-- numbers
file: one.txt
rows: [a, b]
columns: ["{}_auc", "{}_less {}_low {}_high"]
-->

| | AUC | less `other` 3 |
|---|---|---|
| `a` | 0.94 | **-0.1 [-0.2, +0.0]** |
| b | 91% | |

<!-- numbers
{file: rows.csv, prose: ["area?seed=0&of=x", "area?of=x-y", "n@one"], files: {one: one.txt},
 also: [95%]}
-->

With 1,000 texts of `5` the area is 3.5, less by 1.5 [1.0, 2.0] at 95%.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A page's files."""
    lines = ["# n 5", "n 1000", "a_auc 0.9449", "a_less -0.1 [-0.2, +0.04] seeds 3"]
    (tmp_path / "one.txt").write_text("\n".join([*lines, "a_low 1", "b_auc 0.912", ""]))
    areas = ["seed,of,area", "0,x,3.5", "1,x,3.5", "0,y,2.0393518", "1,y,1.9606482"]
    (tmp_path / "rows.csv").write_text("\n".join(areas))
    return tmp_path


def test_a_number_that_is_not_in_its_file_is_found(folder: Path) -> None:
    page = PAGE.replace("{}_less {}_low {}_high", "{}_less")
    assert problems(page, folder) == []
    for right, wrong in (
        ("0.94 ", "0.95 "),
        ("91%", "92%"),
        ("+0.0]", "+0.1]"),
        ("| |\n\n<!--", "| 0.5 |\n\n<!--"),
        ("| b | 91% | |\n", ""),
        ("1,000", "1,001"),
        ("3.5,", "3.6,"),
        ("1.5 [", "1.4 ["),
    ):
        assert right in page
        changed = page.replace(right, wrong)
        if wrong == "| 0.5 |\n\n<!--":
            with pytest.raises(KeyError, match="b_less is not in"):
                problems(changed, folder)
        else:
            assert len(problems(changed, folder)) == 1, wrong
    assert problems(page.replace("numbers\nfile", "of\nfile"), folder)[0].startswith("no file")
    none = "<!-- numbers: none, as asked -->\n\n| | b |\n|---|---|\n| a | 1 |\n"
    assert problems(none, folder) == []
    assert len(problems(none[34:], folder)) == 1


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_measured_table_is_that_of_its_file(page: Path) -> None:
    assert not problems(page.read_text(encoding="utf-8"), ROOT)
