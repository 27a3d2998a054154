"""How many texts a dataset has in each section, and how many tokens a text: read where it has been
made, else from what is known of the raw data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths
from mamushi.artifacts.domains import DOMAINS, EVALUATION, FORGET, RETAIN, SECTIONS
from mamushi.configuration.grid import Config
from mamushi.configuration.sources import files
from mamushi_runs.forecast.rates import TABLE

PUBLISHED: dict[str, dict[str, Any]] = TABLE["datasets"]
UNKNOWN_TEXTS, UNKNOWN_FORGET, UNKNOWN_TOKENS = 10_000, 0.2, 200.0
BYTES_OF_A_TEXT = 500
"""Of a table of texts that has not been read yet."""
Counts = Mapping[str, Mapping[str, float]]


class Volumes:
    """Texts and tokens of the configured datasets; ``root`` is the folder with ``results``."""

    def __init__(self, config: Config, root: str | os.PathLike[str] = ".") -> None:
        self.config, self.root = config, Path(root)
        self._counts = cache(self._count)
        self._lengths = cache(self._histogram)

    def texts(self, dataset: str, section: str, domains: Iterable[str] = DOMAINS) -> float:
        """Return texts of these domains in a section."""
        counts = self._counts(dataset)[0].get(section, {})
        return sum(counts.get(domain, 0) for domain in domains)

    def all_texts(self, dataset: str) -> float:
        """Return texts of all sections."""
        return sum(self.texts(dataset, section) for section in SECTIONS)

    def source(self, dataset: str) -> str:
        """Return where the numbers of texts are from, for people."""
        return self._counts(dataset)[1]

    def tokens(self, dataset: str, model: str, cut: float) -> float:
        """Return mean tokens of a text that is cut at ``cut``."""
        cached = self._lengths(dataset, model)
        if cached:
            return _mean(cached, cut)
        definition = self.config["datasets"][dataset]
        if definition["kind"] in PUBLISHED:
            points = PUBLISHED[definition["kind"]]["tokens"]
            for (before, low), (after, high) in pairwise(points):
                if cut <= after:
                    return float(low + (high - low) * (cut - before) / (after - before))
            return float(points[-1][1])
        if "words" in definition:
            # A tokenizer of a few hundred pieces takes a made-up word for one token or little more.
            return min(cut, 1.2 * sum(definition["words"]) / 2)
        return min(cut, UNKNOWN_TOKENS)

    def _count(self, dataset: str) -> tuple[Counts, str]:
        card = self.root / paths.DATA_CARD.format(dataset=dataset)
        try:
            found = json.loads(card.read_text(encoding="utf-8"))
            return found["counts"]["sections"], "its card"
        except (OSError, ValueError, KeyError, TypeError):
            pass
        definition = self.config["datasets"][dataset]
        if "sizes" in definition:
            return definition["sizes"], "the configuration"
        known = PUBLISHED.get(definition["kind"])
        total, source = (known["texts"], "the published dataset") if known else _rows(definition)
        shares = {FORGET: known["forget"] if known else UNKNOWN_FORGET}
        shares[RETAIN] = 1 - shares[FORGET]
        counts = {
            section: {domain: total * part * share for domain, share in shares.items()}
            for section, part in definition["sections"].items()
        }
        if known and "evaluation" in known:
            counts[EVALUATION] = known["evaluation"]
        most = definition["limit"]
        limited = {
            section: {domain: min(n, most.get(domain) or n) for domain, n in each.items()}
            for section, each in counts.items()
        }
        return limited, source

    def _histogram(self, dataset: str, model: str) -> dict[str, Any]:
        """Return what the token cache says of the lengths of its texts; empty where there is none.

        Parquet keeps metadata as plain text in its footer, so that no reader of Parquet, whose
        import alone takes as long as a plan may, has to be loaded for them.
        """
        try:
            with (self.root / paths.TOKENS.format(dataset=dataset, model=model)).open("rb") as file:
                file.seek(-8, os.SEEK_END)
                length = int.from_bytes(file.read(4), "little")
                file.seek(-8 - length, os.SEEK_END)
                footer = file.read(length)
            start = footer.index(b"{", footer.index(b"mamushi"))
            found = json.JSONDecoder().raw_decode(footer[start:].decode("utf-8", "replace"))[0]
            return {name: found[name] for name in ("histogram", "tokens", "texts")}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def _rows(definition: Mapping[str, Any]) -> tuple[float, str]:
    """Return texts of a file that has not been read yet, by its size."""
    try:
        size = sum(os.stat(path).st_size for path in files(definition))
    except OSError:
        size = 0
    if size:
        return size / BYTES_OF_A_TEXT, f"the size of its files, {BYTES_OF_A_TEXT} bytes a text"
    return UNKNOWN_TEXTS, f"assumed: {UNKNOWN_TEXTS:,} texts"


def _mean(cached: Mapping[str, Any], cut: float) -> float:
    """Return mean length of texts that are cut at ``cut``: a bin's texts lie at its middle, all
    moved alike such that the uncut mean is the exact one."""
    edges, counts = cached["histogram"]["edges"], cached["histogram"]["counts"]
    texts = max(1, cached["texts"])
    bins = [((a + b) / 2, n) for a, b, n in zip(edges, edges[1:], counts, strict=False)]
    shift = (cached["tokens"] - sum(middle * n for middle, n in bins)) / texts
    return float(sum(min(middle + shift, cut) * n for middle, n in bins) / texts)
