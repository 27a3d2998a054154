"""The first look at a corpus: how much of it has to be embedded, and how long a million texts take.

    python benchmarks/screen.py newsgroups=20news-bydate.tar.gz --texts 1000000

Each of five newsgroups in turn is the domain: 50, 100 or 300 of its posts are examples, and all
other posts are the corpus. Reported are the AUC, by which share of the corpus has to pass for 95
and 99% of the domain in it to pass, and how often, over draws of the examples, the lower bound of
that share of the domain holds at the cut that lets a tenth of the corpus pass. Then the time and
the memory for a corpus of so many texts, which are the posts again and again with their words
shuffled.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mamushi.data.screen import fit
from mamushi.registry import load, plugin
from mamushi.selection.metrics import auc
from report import Report, arguments

GROUPS = (
    "rec.sport.hockey",
    "talk.politics.guns",
    "sci.med",
    "comp.graphics",
    "soc.religion.christian",
)
EXAMPLES, DRAWS, SAMPLE, PASSED = (50, 100, 300), 20, 5000, 0.1


def posts(path: str) -> tuple[list[str], np.ndarray]:
    """The posts that have words, and their groups."""
    settings = {**plugin("dataset", "newsgroups").defaults, "path": path}
    raw = load("dataset", "newsgroups").load(settings, Path())
    groups = next(values for name, values in raw.labels.items() if "group" in name)
    rows = [row for row, text in enumerate(raw.texts) if len(text.split()) >= 10]
    return [raw.texts[row] for row in rows], np.array([groups[row] for row in rows])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("path", help="the archive of 20 Newsgroups")
    parser.add_argument("--texts", type=int, default=1_000_000)
    args = parser.parse_args()
    report = Report("screen", threads=1)
    texts, groups = posts(args.path)
    for m in EXAMPLES:
        found: dict[str, list[float]] = {"auc": [], "for_95": [], "for_99": [], "held": []}
        for group in GROUPS:
            for draw in range(DRAWS // 4 if m == EXAMPLES[-1] else DRAWS):
                one(texts, groups == group, m, draw, found)
        for name, values in found.items():
            report.value(f"{m}_{name}", float(np.mean(values)))
    timed(report, texts, args.texts)
    report.write(args.results)


def one(
    texts: list[str], domain: np.ndarray, m: int, draw: int, found: dict[str, list[float]]
) -> None:
    rng = np.random.default_rng(draw)
    rows = np.flatnonzero(domain)
    ours = rng.permutation(rows)[:m]
    corpus = np.setdiff1d(np.arange(len(texts)), ours)
    sample = rng.permutation(corpus)[:SAMPLE]
    screen = fit([texts[row] for row in ours], [texts[row] for row in sample], draw)
    # A part of the corpus will do for what is measured here.
    read = rng.permutation(corpus)[:SAMPLE]
    read = np.concatenate([read, np.setdiff1d(rng.permutation(rows)[:400], [*ours, *read])])
    scores, inside = screen.scores(texts[row] for row in read), domain[read]
    found["auc"].append(auc(scores.astype(np.float64), inside))
    for share in (0.95, 0.99):
        cut = np.quantile(scores[inside], 1 - share)
        found[f"for_{share:.2f}".replace("0.", "")].append(float((scores >= cut)[:SAMPLE].mean()))
    cut = float(np.quantile(scores[:SAMPLE], 1 - PASSED))
    found["held"].append(float((scores[inside] >= cut).mean() >= screen.passed(cut)[1]))


def timed(report: Report, texts: list[str], n: int) -> None:
    rng = np.random.default_rng(0)
    words = [text.split()[:400] for text in texts[:2000]]

    def corpus() -> Iterator[str]:
        for number in range(n):
            own = words[number % len(words)]
            begin = int(rng.integers(len(own)))
            yield " ".join([*own[begin:], *own[:begin]])

    screen = fit(texts[:300], texts[300:5300], 0)
    began = time.process_time()
    characters = sum(map(len, corpus()))
    reading = time.process_time() - began
    began = time.process_time()
    scores = screen.scores(corpus())
    report.value("texts", len(scores))
    report.value("characters_a_text", characters / n)
    report.value("cpu_seconds", time.process_time() - began - reading)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    report.value("mebibytes", peak)


if __name__ == "__main__":
    main()
