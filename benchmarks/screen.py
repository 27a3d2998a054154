"""A screen of a corpus: what it misses, whether its bound holds, and how long a million texts take.

    python benchmarks/screen.py newsgroups=20news-bydate.tar.gz

Each of five newsgroups in turn is the domain: 50, 100 or 300 of its posts are examples, all other
posts the corpus, each of 100 words at most, of which 5, 10 or 20 percent pass. `recall` is the
share of the domain that passes, `estimate` what the examples say of it, and `low_holds` the share
of draws in which it is at least the lower end of their interval. Then texts of 60 words, from two
posts each, are screened as JSON Lines by 100 posts about hockey, of which every hundredth text is.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from mamushi.data.screen import fit, screen
from mamushi.evidence.share import count_bounds
from mamushi.registry import load, plugin
from report import Report, arguments

GROUPS = (
    "rec.sport.hockey",
    "talk.politics.guns",
    "sci.med",
    "comp.graphics",
    "soc.religion.christian",
)
EXAMPLES, PASSED, SAMPLE, MOST = (50, 100, 300), (0.05, 0.1, 0.2), 5000, 20_000
WORDS = 100
"""Of a post, what is read."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("archive", help="newsgroups=FILE")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--texts", type=int, nargs="*", default=[100_000, 1_000_000])
    args = parser.parse_args()
    report = Report("screen", threads=1)
    texts, groups = posts(args.archive.partition("=")[2])
    # Before others take memory.
    for n in args.texts:
        timed(report, texts, groups == GROUPS[0], n)
    short = [" ".join(text.split()[:WORDS]) for text in texts]
    for m in EXAMPLES:
        draws = [(group, draw) for group in GROUPS for draw in range(args.draws)]
        found = [one(short, groups == group, m, draw) for group, draw in draws]
        for share, values in zip(PASSED, np.mean(found, axis=0).tolist(), strict=True):
            for name, value in zip(("recall", "estimate", "low_holds"), values, strict=True):
                report.value(f"{m}_examples_{share:.0%}_{name}", value)
    report.write(args.results)


def posts(path: str) -> tuple[list[str], np.ndarray]:
    """The posts that have words, and their groups."""
    settings = {**plugin("dataset", "newsgroups").defaults, "path": path}
    raw = load("dataset", "newsgroups").load(settings, Path())
    groups = next(values for name, values in raw.labels.items() if "group" in name)
    rows = [row for row, text in enumerate(raw.texts) if len(text.split()) >= 10]
    return [raw.texts[row] for row in rows], np.array([groups[row] for row in rows])


def one(
    texts: list[str], domain: np.ndarray, m: int, draw: int
) -> list[tuple[float, float, float]]:
    """What passes of the domain, what is said of it and whether that holds, by what passes."""
    rng = np.random.default_rng(draw)
    ours = rng.permutation(np.flatnonzero(domain))[:m]
    corpus = np.setdiff1d(np.arange(len(texts)), ours)
    examples = [texts[row] for row in ours]
    fitted = fit(examples, [texts[row] for row in rng.permutation(corpus)[:SAMPLE]])
    found = []
    for share in PASSED:
        screen, rows = replace(fitted), ((r, "", {"text": texts[r]}) for r in corpus.tolist())
        passed = screen.through(rows, "text", round(share * len(corpus)))
        recall = float(domain[[row for row, *_ in passed]].sum() / domain[corpus].sum())
        hits = int((screen.margins(examples) >= 0).sum())
        found.append((recall, hits / m, float(count_bounds(hits, m)[0] <= recall)))
    return found


def timed(report: Report, texts: list[str], domain: np.ndarray, n: int) -> None:
    """Screen ``n`` texts, and report what that took of which planted ones it let pass."""
    rng = np.random.default_rng(0)
    words = [text.split() for text in texts]
    ours, others = (rng.permutation(np.flatnonzero(mask)) for mask in (domain, ~domain))

    def made(rows: np.ndarray) -> str:
        halves = [words[row] for row in rng.choice(rows, 2)]
        starts = [int(rng.integers(max(1, len(half) - 30))) for half in halves]
        return " ".join(
            w for half, at in zip(halves, starts, strict=True) for w in half[at : at + 30]
        )

    def corpus() -> Iterator[str]:
        for row in range(n):
            yield made(others if row % 100 else ours[100:])

    with TemporaryDirectory() as folder:
        path, like = Path(folder, "corpus.jsonl"), Path(folder, "like.jsonl")
        for file, rows in ((path, corpus()), (like, (texts[row] for row in ours[:100]))):
            with file.open("w", encoding="utf-8") as handle:
                handle.writelines(json.dumps({"text": text}) + "\n" for text in rows)
        settings = {"path": path, "text": "text", "forget": {"like": like, "screen": MOST}}
        began = time.process_time()
        table, (_, margins) = screen(settings, ["text"])
        name = f"{n}_texts_{MOST}_passed"
        report.value(f"{name}_cpu_seconds", time.process_time() - began)
    report.value(f"{name}_peak_mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)
    report.value(f"{name}_recall", sum(row % 100 == 1 for row in table.numbers) * 100 / n)
    passes = margins([texts[row] for row in ours[:100]], ()) >= 0
    report.value(f"{name}_recall_low", count_bounds(int(passes.sum()), len(passes))[0])


if __name__ == "__main__":
    main()
