"""What this room adds to the core: a corpus that nobody labelled, ranked by examples beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.sources import unlabelled as applies
from mamushi_extras.unlabelled.settings import check_unlabelled as config_checks
from mamushi_extras.unlabelled.shown import describe_cell

if TYPE_CHECKING:
    from mamushi.data.raw import Raw
    from mamushi.selection.pool import Pool

__all__ = ["applies", "config_checks", "describe_cell", "mark_rows", "pool_step", "read_rows"]


def read_rows(settings: Mapping[str, Any]) -> Raw:
    """Read a corpus with the examples beside it, or what a screen lets through."""
    from mamushi_extras.unlabelled.like import read_corpus_rows

    return read_corpus_rows(settings)


def mark_rows(raw: Raw, settings: Mapping[str, Any]) -> Raw:
    """Say which texts of a corpus a blocklist hits, and what a screen says of them."""
    from mamushi_extras.unlabelled.like import mark_texts

    return mark_texts(raw, settings)


def pool_step(pool: Pool, metadata: Mapping[str, Any], column: Callable[[str], Any]) -> Pool:
    """Give a pool what a screen said of the words of each text, by a fit without it."""
    if "screened" not in metadata or pool.texts is None:
        return pool
    from mamushi_extras.unlabelled.like import SCREEN

    return pool.with_columns(words=column(f"label_{SCREEN}").astype(float))
