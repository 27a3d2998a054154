"""Markdown section for a model card: which training data was removed, and how it was chosen"""

from __future__ import annotations

from pathlib import Path

from mamushi.commands._source import Source

FOLDER = False
TEXTS = False


def write(source: Source, out: Path) -> None:
    """Raises ``UserError`` for a list without a manifest."""
    about = source.manifest()
    expected = about["expected"]
    if expected["withheld"]:
        effect = f"not estimated: {expected['withheld']}"
    else:
        here = expected["at_this_budget"]
        effect = (
            f"KL(forget || trained) {here['removal']:.3g} nats, "
            f"KL(retain || trained) {here['preservation']:.3g} nats, from the scores"
        )
    removed = (
        f"{about['removed']:,} of {about['n_forget']:,} texts of the forget domain "
        f"({about['beta']:.0%}), and {about['copies']:,} copies of them"
    )
    lines = {
        "Removed": removed,
        "Left in": f"{about['cross_posts']:,} texts that stood in both domains",
        "Dataset": about["dataset"],
        "Ranked by": f"{about['selector']} on embeddings of {about['model']}, seed {about['seed']}",
        "Separation": about["verdict"],
        "Expected": effect,
        "List (SHA-256 of its ids)": f"`{about['ids_sha256']}`",
        "Made with": f"Mamushi {about['provenance']['versions']['mamushi']}",
    }
    rows = "".join(
        f"| {name} | {str(value).replace('|', '&#124;')} |\n" for name, value in lines.items()
    )
    text = f"## Removed training data\n\n| | |\n|---|---|\n{rows}"
    out.write_text(text, encoding="utf-8")
