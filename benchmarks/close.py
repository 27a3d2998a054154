"""Texts that restate removed ones: which of those that were planted are found, and what else.

    python benchmarks/close.py newsgroups=20news-bydate.tar.gz jigsaw=jigsaw

Of the forget texts 200 are removed; the others and the retain texts stay, and among them stand, of
50 removed texts each:

- ``order``: the sentences shuffled, and the words of each;
- ``quote``: 30 consecutive words in the middle of a text that stays;
- ``reworded_30``, ``reworded_50``: a fifth of the words left out, and of the telling ones 30 or 50%
  replaced by the nearest word, by vectors of the words' texts (latent semantic analysis).

``found`` is the share that is found with the text that it was made from. ``found_unplanted`` are
texts that stay, were not planted, and are found. ``found_null`` are those of as many texts whose
words were dealt out anew among the texts of a domain: these have the domain's words, and restate
nothing. The same for a threshold on the cosine of texts' vectors by latent semantic analysis, which
finds as many in the null texts.

Then the same texts in documents of ten: ``documents`` are searched whole, for removed texts, and
``windows`` are theirs, of 100 words at most and within a paragraph, for windows of removed texts. A
text is found with one of its windows, and ``found_unplanted`` counts texts, or documents.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from mamushi.data.duplicates import find_duplicates
from mamushi.data.windows import spans
from mamushi.evidence.close import close
from mamushi.registry import load, plugin
from report import Report, arguments

SEED, REMOVED, PLANTED, QUOTED = 0, 200, 50, 30
KINDS = ("order", "quote", "reworded_30", "reworded_50")
WORDS = (40, 400)
"""Of the texts: those that are shorter say too little to be planted."""
DIMENSIONS, NULL_RATE = 200, 0.005
PARTS, WINDOW = 10, 100
"""Texts of a document, and words of a window."""


def read(kind: str, path: str) -> tuple[list[str], NDArray[np.bool_]]:
    """The texts of a dataset, no two of them alike, and whether each is of the forget domain."""
    settings = {**plugin("dataset", kind).defaults, "path": path}
    raw = load("dataset", kind).load(settings, Path())
    forget = np.asarray(raw.forget, dtype=bool)
    kept = find_duplicates(raw.texts, forget, threshold=0.9, words=3).kept
    lengths = np.array([len(text.split()) for text in raw.texts])
    kept &= (lengths >= WORDS[0]) & (lengths <= WORDS[1])
    return [raw.texts[i] for i in np.flatnonzero(kept)], forget[kept]


def main() -> None:
    parser = arguments(__doc__)
    about = "loaders of datasets, each with the path of its raw files"
    parser.add_argument("datasets", nargs="+", metavar="KIND=PATH", help=about)
    args = parser.parse_args()
    report = Report("close", threads=1)
    for each in args.datasets:
        measure(report, *each.split("=", 1))
    report.write(args.results)


def measure(report: Report, kind: str, path: str) -> None:
    """Report what is found in a dataset."""
    rng = np.random.default_rng(SEED)
    texts, forget = read(kind, path)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    matrix = vectorizer.fit_transform(texts)
    svd = TruncatedSVD(DIMENSIONS, random_state=SEED).fit(matrix)
    nearest = Nearest(vectorizer, svd)

    removed = rng.permutation(np.flatnonzero(forget))[:REMOVED]
    stays = np.setdiff1d(np.arange(len(texts)), removed)
    sources = rng.permutation(removed)[: PLANTED * len(KINDS)].reshape(len(KINDS), PLANTED)
    planted, origin = [], []
    for way, rows in zip(KINDS, sources, strict=True):
        for row in rows:
            planted.append(restated(way, texts[row], texts[rng.choice(stays)], nearest, rng))
            origin.append(int(np.flatnonzero(removed == row)[0]))
    kept = [texts[row] for row in stays] + planted
    ours = [texts[row] for row in removed]

    began = time.process_time()
    found = close(ours, kept)
    report.value(f"{kind}_texts_removed", len(ours))
    report.value(f"{kind}_texts_kept", len(kept))
    report.value(f"{kind}_cpu_seconds", time.process_time() - began)
    by_kept = {each.kept: each.removed for each in found}
    shown(report, f"{kind}_lexical", by_kept, origin, len(stays))
    null = dealt([texts[row] for row in stays], forget[stays], rng)
    report.value(f"{kind}_lexical_found_null", len(close(ours, null)))
    in_documents(report, kind, ours, kept, origin)

    def vectors(these: list[str]) -> NDArray[np.float64]:
        x = svd.transform(vectorizer.transform(these))
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)

    a, b, c = vectors(ours), vectors(kept), vectors(null)
    threshold = float(np.quantile((c @ a.T).max(axis=1), 1 - NULL_RATE))
    similar = b @ a.T
    best = similar.argmax(axis=1)
    near = np.flatnonzero(similar.max(axis=1) > threshold)
    report.value(f"{kind}_vectors_threshold", threshold)
    shown(report, f"{kind}_vectors", {int(k): int(best[k]) for k in near}, origin, len(stays))
    report.value(f"{kind}_vectors_found_null", int(((c @ a.T).max(axis=1) > threshold).sum()))


def shown(report: Report, by: str, found: dict[int, int], origin: list[int], stays: int) -> None:
    """Report which of the planted texts were found, and how many others."""
    right = np.array([found.get(stays + i) == each for i, each in enumerate(origin)])
    for kind, own in zip(KINDS, right.reshape(len(KINDS), PLANTED), strict=True):
        report.value(f"{by}_found_{kind}", float(own.mean()))
    report.value(f"{by}_found_unplanted", sum(k < stays for k in found))


def in_documents(
    report: Report, kind: str, ours: list[str], kept: list[str], origin: list[int]
) -> None:
    """Report what is found where what stays are documents, the first of which have a text that was
    planted, each one, and these are searched whole or in windows."""
    stays = len(kept) - len(origin)
    rng = np.random.default_rng(SEED)
    parts = [[*rows] for rows in np.array_split(rng.permutation(stays), stays // PARTS)]
    for row, of in enumerate(parts[: len(origin)]):
        of.insert(int(rng.integers(PARTS + 1)), stays + row)
    found = close(ours, ["\n\n".join(kept[row] for row in of) for of in parts])
    # By the text that was planted in a document, or the document, beginning with 0.
    names = [*range(stays, len(kept)), *range(len(parts) - len(origin))]
    shown(report, f"{kind}_documents", {names[f.kept]: f.removed for f in found}, origin, stays)

    (of_removed, gone), (of_kept, there) = windows(ours), windows(kept)
    best: dict[int, int] = {}
    for each in close(gone, there):
        best.setdefault(of_kept[each.kept], of_removed[each.removed])
    report.value(f"{kind}_windows_kept", len(there))
    shown(report, f"{kind}_windows", best, origin, stays)


def windows(texts: list[str]) -> tuple[list[int], list[str]]:
    """The windows of texts, and of which text each is."""
    rows, found = [], []
    for row, text in enumerate(texts):
        for start, stop in spans(text, WINDOW, 0, "blank_line"):
            rows.append(row)
            found.append(text[start:stop].strip())
    return rows, found


class Nearest:
    """The nearest other word of each, by the vectors of the words' texts."""

    def __init__(self, vectorizer: Any, svd: Any) -> None:
        self.words = vectorizer.get_feature_names_out()
        self.place = {word: i for i, word in enumerate(self.words)}
        x = (svd.components_ * svd.singular_values_[:, None]).T
        self.vectors = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)

    def __call__(self, word: str) -> str | None:
        place = self.place.get(word.lower())
        if place is None:
            return None
        alike = self.vectors @ self.vectors[place]
        alike[place] = -1
        return str(self.words[alike.argmax()])


def restated(kind: str, text: str, host: str, nearest: Nearest, rng: np.random.Generator) -> str:
    """A text that says what ``text`` does."""
    if kind == "order":
        sentences = [each.split() for each in re.split(r"(?<=[.!?])\s+", text) if each.split()]
        shuffled = [" ".join(rng.permutation(each)) for each in sentences]
        return " ".join(rng.permutation(shuffled))
    words = text.split()
    if kind == "quote":
        begin = int(rng.integers(0, max(len(words) - QUOTED, 1)))
        around = host.split()
        half = len(around) // 2
        return " ".join([*around[:half], *words[begin : begin + QUOTED], *around[half:]])
    share = int(kind.removeprefix("reworded_")) / 100
    left = [word for word in words if rng.random() > 0.2]
    found = []
    for word in left:
        other = nearest(word) if rng.random() < share else None
        found.append(other or word)
    return " ".join(found)


def dealt(texts: list[str], forget: NDArray[np.bool_], rng: np.random.Generator) -> list[str]:
    """As many texts of the same lengths, with the words of each domain dealt out anew."""
    found = list(texts)
    for domain in (True, False):
        rows = np.flatnonzero(forget == domain)
        words = rng.permutation([word for row in rows for word in texts[row].split()])
        ends = np.cumsum([len(texts[row].split()) for row in rows])
        for row, part in zip(rows, np.split(words, ends[:-1]), strict=True):
            found[row] = " ".join(part)
    return found


if __name__ == "__main__":
    main()
