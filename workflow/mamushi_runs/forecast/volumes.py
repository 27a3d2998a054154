"""How many texts a dataset has in each section, and how many tokens a text: read where it has been
made, else from what is known of the raw data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from mamushi.artifacts import paths
from mamushi.artifacts.domains import DOMAINS, EVALUATION, FORGET, RETAIN, SECTIONS
from mamushi.configuration.complete import files
from mamushi.configuration.grid import Config


class Published(NamedTuple):
    """A public dataset: texts that are divided by the shares of `sections`, their share of forget
    texts, texts of an evaluation section of its own (forget, retain), and mean tokens of a text
    that is cut at so many."""

    texts: int
    forget: float
    evaluation: tuple[int, int] | None
    tokens: Mapping[int, float]


PUBLISHED = {
    # The competition's files; 16,225 of train.csv have a label. Means: the paper's at 128 tokens,
    # the others by the characters of the comments.
    "jigsaw": Published(
        159_571, 0.1017, (6_243, 57_735), {32: 27, 64: 43, 128: 61, 256: 75, 512: 85}
    ),
    # The bydate archive of 18,846 posts, less the 3% that are copies.
    "newsgroups": Published(18_280, 0.139, None, {32: 31.5, 64: 62, 128: 111, 256: 190, 512: 260}),
}
UNKNOWN_TEXTS, UNKNOWN_FORGET, UNKNOWN_TOKENS = 10_000, 0.2, 200.0
BYTES_OF_A_TEXT = 500
"""Of a table of texts that has not been read yet."""


class Volumes:
    """Texts and tokens of the configured datasets; ``root`` is the folder with ``results``."""

    def __init__(self, config: Config, root: str | os.PathLike[str] = ".") -> None:
        self.config, self.root = config, Path(root)
        self._texts: dict[str, tuple[dict[str, dict[str, float]], str]] = {}
        self._tokens: dict[tuple[str, str], _Lengths | None] = {}

    def texts(self, dataset: str, section: str, domains: Iterable[str] = DOMAINS) -> float:
        """Texts of these domains in a section."""
        counts = self._counts(dataset)[0].get(section, {})
        return sum(counts.get(domain, 0) for domain in domains)

    def all_texts(self, dataset: str) -> float:
        """Texts of all sections."""
        return sum(self.texts(dataset, section) for section in SECTIONS)

    def source(self, dataset: str) -> str:
        """Where the numbers of texts are from, for people."""
        return self._counts(dataset)[1]

    def tokens(self, dataset: str, model: str, cut: float) -> float:
        """Mean tokens of a text that is cut at ``cut``."""
        cache = self._lengths(dataset, model)
        if cache is not None:
            return cache.mean(cut)
        definition = self.config["datasets"][dataset]
        if definition["kind"] in PUBLISHED:
            return _between(PUBLISHED[definition["kind"]].tokens, cut)
        if "words" in definition:
            # A tokenizer of a few hundred pieces takes a made-up word for one token or little more.
            return min(cut, 1.2 * sum(definition["words"]) / 2)
        return min(cut, UNKNOWN_TOKENS)

    def longest(self, dataset: str, model: str, cut: float) -> float:
        """Tokens to which a batch of texts is padded: those of the longest, cut at ``cut``."""
        cache = self._lengths(dataset, model)
        if cache is not None:
            return min(cut, cache.longest)
        words = self.config["datasets"][dataset].get("words")
        return min(cut, 1.2 * words[1]) if words else cut

    def _counts(self, dataset: str) -> tuple[dict[str, dict[str, float]], str]:
        if dataset not in self._texts:
            self._texts[dataset] = self._count(dataset)
        return self._texts[dataset]

    def _count(self, dataset: str) -> tuple[dict[str, dict[str, float]], str]:
        try:
            card = json.loads(
                (self.root / paths.DATA_CARD.format(dataset=dataset)).read_text(encoding="utf-8")
            )
            return card["counts"]["sections"], "its card"
        except (OSError, ValueError, KeyError, TypeError):
            pass
        definition = self.config["datasets"][dataset]
        if "sizes" in definition:
            return definition["sizes"], "the configuration"
        known = PUBLISHED.get(definition["kind"])
        if known is not None:
            total, source = float(known.texts), "the published dataset"
            forget = known.forget
        else:
            total, source = self._rows(dataset)
            forget = UNKNOWN_FORGET
        shares = {FORGET: forget, RETAIN: 1 - forget}
        counts: dict[str, dict[str, float]] = {
            section: {domain: total * share * part for domain, part in shares.items()}
            for section, share in definition["sections"].items()
        }
        if known is not None and known.evaluation is not None:
            held = map(float, known.evaluation)
            counts[EVALUATION] = dict(zip((FORGET, RETAIN), held, strict=True))
        for domain, limit in definition["limit"].items():
            for section in counts.values():
                section[domain] = min(section[domain], limit or float("inf"))
        return counts, source

    def _rows(self, dataset: str) -> tuple[float, str]:
        """Texts of a file that has not been read yet, by its size."""
        try:
            raw = files(self.config["datasets"][dataset])
            size = sum(os.stat(path).st_size for path in raw)
        except OSError:
            size = 0
        if size:
            return size / BYTES_OF_A_TEXT, f"the size of its files, {BYTES_OF_A_TEXT} bytes a text"
        return UNKNOWN_TEXTS, f"assumed: {UNKNOWN_TEXTS:,} texts"

    def _lengths(self, dataset: str, model: str) -> _Lengths | None:
        key = dataset, model
        if key not in self._tokens:
            path = self.root / paths.TOKENS.format(dataset=dataset, model=model)
            self._tokens[key] = _Lengths.read(path)
        return self._tokens[key]


class _Lengths(NamedTuple):
    """The histogram of lengths that a token cache carries."""

    edges: list[float]
    counts: list[int]
    tokens: int
    texts: int

    @classmethod
    def read(cls, path: Path) -> _Lengths | None:
        """From the metadata of a token cache; None where there is none.

        Parquet keeps them as plain text in its footer, so that no reader of Parquet, whose import
        alone takes as long as a plan may, has to be loaded for them.
        """
        try:
            with path.open("rb") as handle:
                handle.seek(-8, os.SEEK_END)
                length = int.from_bytes(handle.read(4), "little")
                handle.seek(-8 - length, os.SEEK_END)
                footer = handle.read(length)
            start = footer.index(b"{", footer.index(b"mamushi"))
            text = footer[start:].decode("utf-8", "replace")
            found, _ = json.JSONDecoder().raw_decode(text)
            bins = found["histogram"]
            return cls(bins["edges"], bins["counts"], found["tokens"], found["texts"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def longest(self) -> float:
        """The upper edge of the last bin that is not empty."""
        return max((e for e, n in zip(self.edges[1:], self.counts, strict=True) if n), default=0.0)

    def mean(self, cut: float) -> float:
        """Mean length of texts that are cut at ``cut``: a bin's texts lie at its middle, all moved
        alike such that the uncut mean is the exact one."""
        if not self.texts:
            return 0.0
        middles = [(a + b) / 2 for a, b in zip(self.edges, self.edges[1:], strict=False)]
        by_bins = sum(m * n for m, n in zip(middles, self.counts, strict=True)) / self.texts
        shift = self.tokens / self.texts - by_bins
        moved = zip(middles, self.counts, strict=True)
        return sum(min(m + shift, cut) * n for m, n in moved) / self.texts


def _between(points: Mapping[int, float], at: float) -> float:
    """Linear between the points, from the origin to the first, and flat after the last."""
    before, low = 0.0, 0.0
    for x, y in sorted(points.items()):
        if at <= x:
            return low + (y - low) * (at - before) / (x - before)
        before, low = x, y
    return low
