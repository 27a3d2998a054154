"""The table of docs/science/paper.md, from docs/paper.yaml: where each claim of the paper is.

python docs/paper.py
"""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

DOCS = Path(__file__).parent
PAGE = DOCS / "science" / "paper.md"
BEGIN, END = "<!-- made by docs/paper.py -->", "<!-- end of docs/paper.py -->"


class Claim(NamedTuple):
    """A definition, statement or display of the paper.

    It has LaTeX labels, what it says, the code that has it, the test or artifact that shows it, and
    where we differ.
    """

    labels: str
    says: str
    code: str
    shown: str
    remark: str


def claims() -> dict[str, list[Claim]]:
    """Return the claims by the part of the paper."""
    parts = yaml.safe_load((DOCS / "paper.yaml").read_text(encoding="utf-8"))
    return {part: [Claim(*row) for row in rows] for part, rows in parts.items()}


def table() -> str:
    """Return the table in Markdown, a section for each part."""
    lines = []
    for part, rows in claims().items():
        lines += [f"### {part}", "", "| the paper | label | code | shown by | remark |"]
        lines += ["|---|---|---|---|---|"]
        for claim in rows:
            labels = " ".join(f"`{label}`" for label in claim.labels.split())
            shown = re.sub(r"^(\w+):(\w+)$", r"\1 `\2`", claim.shown)
            shown = shown if shown != claim.shown else f"`{shown.rpartition('::')[2]}`"
            says = claim.says.replace("||", "\\|\\|")
            lines.append(f"| {says} | {labels} | `{claim.code}` | {shown} | {claim.remark} |")
        lines.append("")
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page with its table made again."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
