"""Long documents with one unwanted paragraph: whether windows find it, and whether they cut it.

    python -m studies.windows.run /data/20news-bydate.tar.gz

Documents are made of paragraphs of 20 Newsgroups: a forget document of one of the domain (guns,
hockey) at a random place among N of other groups, and a retain document of N + 1 of other groups;
no paragraph is there twice. ``mixed`` has documents of all lengths, also the paragraph alone. A
window is labelled as its document, embedded by LSA and scored by ``mamushi_lr``, cross-fitted by
documents. ``first`` reads the first 100 words of a document, about as many as 128 tokens.

``DOMAIN_N_paragraphs_logmeanexp_auc`` and ``_ap`` (average precision) tell forget documents from
retain documents. ``_cut`` is the precision, and the recall, of a list of windows as long as all
that was planted, in characters of the forget documents; ``_cut_ap`` their average precision. A
character has the score of the best of its windows. Without more, an estimator learns from all
windows;
``_best``, as Mamushi does, of a forget document in training from the window alone that scores
highest by a fit that saw neither it nor what is scored. ``_like`` scores the windows of all
documents, as a corpus that nobody labelled, by 100 other paragraphs of the domain; its ``_cut`` is
of all documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score, roc_auc_score

from mamushi.commands import init
from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool
from mamushi_extras.windows.windows import window_spans
from studies.lib.cheap import LEAST
from studies.lib.report import Report, arguments

Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
DOMAINS = {
    "guns": ("talk.politics.guns", "talk.politics"),
    "hockey": ("rec.sport.hockey", "rec.sport"),
}
"""The unwanted group, and how those begin that take no part beside it."""
OTHERS = (1, 5, 20, 50)
DOCUMENTS = 300
"""Of a domain, in each draw; of ``mixed`` divided among the lengths."""
DRAWS = 3
EXAMPLES = 100
"""Of the domain, beside a corpus of all the documents in which nobody marked any."""
WORDS = range(20, 201)
"""Of a paragraph that is used."""
FIRST, FOLDS, WIDTH = 100, 5, 100
HOW = plugin("selector", "mamushi_lr").defaults
WINDOW = 100, 0, "blank_line"
"""Words, overlap and paragraphs of ``spans``."""


class Document(NamedTuple):
    """A text, where the unwanted paragraph is in it, None in a retain document, and among how many
    others it was planted."""

    text: str
    planted: tuple[int, int] | None
    beside: int


def paragraphs(path: Path, domain: str, near: str) -> tuple[list[str], list[str]]:
    """Return the paragraphs of the domain and of others."""
    settings = {**plugin("dataset", "newsgroups").defaults, "path": str(path)}
    raw = load("dataset", "newsgroups").load(settings, Path("unused"))
    parts_of: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for text, group in zip(raw.texts, raw.labels["group"], strict=True):
        if group == domain or not group.startswith(near):
            for part in re.split(r"\n\s*\n", text):
                if len(part.split()) in WORDS:
                    parts_of[group != domain][part.strip()] = None
    return list(parts_of[False]), list(parts_of[True])


def documents(
    paragraphs_of: Sequence[list[str]], numbers: Sequence[int], draw: int
) -> tuple[list[Document], list[str]]:
    """Return documents with these numbers of others, one after the other: as many of the forget
    domain as of the retain domain; and examples of the domain that are in none."""
    rng, docs = np.random.default_rng(draw), []
    unwanted, harmless = (
        iter([texts[i] for i in rng.permutation(len(texts))]) for texts in paragraphs_of
    )
    for i in range(2 * DOCUMENTS):
        forget, n = i % 2 == 0, numbers[i // 2 % len(numbers)]
        parts = [next(harmless) for _ in range(n + (not forget))]
        at = int(rng.integers(n + 1))
        if forget:
            parts.insert(at, next(unwanted))
        start = sum(len(part) + 2 for part in parts[:at])
        planted = (start, start + len(parts[at])) if forget else None
        docs.append(Document("\n\n".join(parts), planted, n))
    return docs, [next(unwanted) for _ in range(EXAMPLES)]


def pool_of(texts: list[str], forget: Bools, groups: NDArray[np.int64]) -> Pool:
    """Return texts with the leading components of their tf-idf."""
    counted = TfidfVectorizer(sublinear_tf=True, min_df=LEAST).fit_transform(texts)
    vectors = TruncatedSVD(WIDTH, random_state=0, n_iter=2).fit_transform(counted)
    ids = np.array([f"{i:06}" for i in range(len(texts))], dtype=object)
    return Pool(ids, forget, (vectors / vectors.std()).astype(np.float16), groups=groups)


def by_examples(examples: list[str], texts: list[str], groups: NDArray[np.int64]) -> Doubles:
    """Return the scores of the windows of a corpus by examples, as `mamushi rank --like` does."""
    apart = np.concatenate([-1 - np.arange(len(examples)), groups])
    pool = pool_of([*examples, *texts], apart < 0, apart)
    return scored(pool, **init.HITS["mamushi_lr"])[len(examples) :]


def scored(pool: Pool, **settings: float | str) -> Doubles:
    """Return the cross-fitted scores of windows."""
    every = {**HOW, "solver": "newton-cholesky", "folds": FOLDS, **settings}
    return load("selector", "mamushi_lr").score(pool, every, 0).scores


def aggregate(scores: Doubles) -> float:
    """Return a document's score: the log of the mean ratio of its windows, as Mamushi has it."""
    return float(np.logaddexp.reduce(scores) - np.log(len(scores)))


def cut(
    docs: list[Document], at: list[tuple[int, int, int]], scores: Doubles, *, corpus: bool
) -> dict[str, float]:
    """Return the average precision of characters, and precision at as many as were planted: of
    forget documents, or of a ``corpus`` of both."""
    best = [np.full(len(doc.text), -np.inf, np.float32) for doc in docs]
    for (doc, start, stop), score in zip(at, scores, strict=True):
        np.maximum(best[doc][start:stop], score, out=best[doc][start:stop])
    truth, scored_ = [], []
    for document, values in zip(docs, best, strict=True):
        if document.planted is not None or corpus:
            here = np.zeros(len(values), bool)
            here[slice(*(document.planted or (0, 0)))] = True
            truth.append(here)
            scored_.append(values)
    y = np.concatenate(truth)
    place = np.unique(np.concatenate(scored_), return_inverse=True)[1]
    total, hits = np.bincount(place)[::-1], np.bincount(place, y)[::-1]
    size, hit = np.cumsum(total), np.cumsum(hits)
    end = np.searchsorted(size, y.sum())
    return {
        "cut": float(hit[end] / size[end]),
        "cut_ap": float((hits / hit[-1] * hit / size).sum()),
    }


def measure(docs: list[Document], examples: list[str]) -> dict[str, float]:
    """Return what is found in some documents."""
    measured: dict[str, float] = {}
    label = np.array([doc.planted is not None for doc in docs])
    length = np.array([doc.beside for doc in docs])

    def judge(name_: str, values: Doubles) -> None:
        measured[f"{name_}_auc"] = float(roc_auc_score(label, values))
        measured[f"{name_}_ap"] = float(average_precision_score(label, values))
        lengths = np.unique(length)
        for n in lengths if len(lengths) > 1 else ():
            inside = length == n
            measured[f"{name_}_of_{n}_auc"] = float(roc_auc_score(label[inside], values[inside]))

    first = [" ".join(doc.text.split()[:FIRST]) for doc in docs]
    judge("first", scored(pool_of(first, label, np.arange(len(docs)))))
    at = [(i, *span) for i, doc in enumerate(docs) for span in window_spans(doc.text, *WINDOW)]
    groups = np.array([i for i, *_ in at])
    texts = [docs[i].text[start:stop] for i, start, stop in at]
    pool = pool_of(texts, label[groups], groups)
    fits = {
        "": scored(pool),
        "_best": scored(replace(pool, documents=groups)),
        "_like": by_examples(examples, texts, groups),
    }
    for fit, scores in fits.items():
        parts = np.split(scores, np.flatnonzero(np.diff(groups)) + 1)
        judge(f"paragraphs{fit}_logmeanexp", np.array([aggregate(part) for part in parts]))
        both = cut(docs, at, scores, corpus=fit == "_like")
        measured |= {f"paragraphs{fit}_{name}": value for name, value in both.items()}
    return measured


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("archive", type=Path)
    args = parser.parse_args()
    report = Report("windows")
    sets = {**{str(n): [n] for n in OTHERS}, "mixed": [0, *OTHERS]}
    for domain, groups in DOMAINS.items():
        paragraphs_of = paragraphs(args.archive, *groups)
        for name, numbers in sets.items():
            drawn = [measure(*documents(paragraphs_of, numbers, draw)) for draw in range(DRAWS)]
            for key in drawn[0]:
                values = np.array([row[key] for row in drawn])
                report.value(f"{domain}_{name}_{key}", float(values.mean()))
                spread = float(values.std(ddof=1) / len(values) ** 0.5)
                report.value(f"{domain}_{name}_{key}_se", spread)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
