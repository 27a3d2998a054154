"""Toxic comments in a corpus of 3,000 that nobody labelled, by 100 and 300 examples.

    python benchmarks/comments.py jigsaw/train.csv results/base/smollm2_frozen/card.json

Of the comments all toxic ones are used, and as many others as a corpus takes. They are embedded as
the posts of `benchmarks/groups.py`, and kept in ``--vectors``. What is reported is that of
``benchmarks/positive.py``, for a corpus of which 1, 5 or 20 percent are toxic.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from groups import SHORTEST, embedder, read
from positive import SHARES, WANTED, Source, of_setting

from mamushi.running.threads import one_for_arithmetic
from report import Report, arguments

CORPUS, SIZES = 3000, (100, 300)


def comments(path: Path) -> tuple[list[str], np.ndarray]:
    """The texts, of equal ones the first, and which are toxic."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = {
            row["comment_text"]: row["toxic"] == "1" for row in reversed([*csv.DictReader(file)])
        }
    texts = [text for text in reversed(rows) if len(text) > SHORTEST]
    toxic = np.array([rows[text] for text in texts])
    kept = np.sort(
        np.concatenate([np.flatnonzero(toxic), np.flatnonzero(~toxic)[: CORPUS + WANTED]])
    )
    return [texts[row] for row in kept], toxic[kept]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("table", type=Path)
    embedder(parser, "comments.npy")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--compared", type=int, default=5, help="draws for the other rankings")
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("comments", threads=1)
    texts, toxic = comments(args.table)
    x, words = read(texts, args)
    source = Source(x, toxic, words)
    report.value("comments", len(texts))
    report.value("toxic", int(toxic.sum()))
    for n1 in SIZES:
        for a in SHARES:
            of_setting(report, f"jigsaw_{n1}_{a:.0%}", source, CORPUS, n1, a, args)
    report.write(args.results)


if __name__ == "__main__":
    main()
