"""What this room adds to the core: a corpus that nobody labelled, ranked by examples beside it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mamushi.config.kinds import Added
from mamushi.config.selectors import scores_both
from mamushi.config.sources import is_unlabelled


def reading_steps(settings: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Read a corpus with the examples beside it, or what a screen lets through, and say which of
    its texts a blocklist hits."""

    def read(settings: Mapping[str, Any]) -> Any:
        from mamushi_extras.unlabelled.like import read_corpus_rows

        return read_corpus_rows(settings)

    def mark(raw: Any, settings: Mapping[str, Any]) -> Any:
        from mamushi_extras.unlabelled.like import mark_hits

        return mark_hits(raw, settings)

    return {"read": read, "mark": mark} if is_unlabelled(settings) else {}


def pool_step(pool: Any, metadata: Mapping[str, Any], column: Callable[[str], Any]) -> Any:
    """Give a pool what a screen said of the words of each text, by a fit without it."""
    if "screened" not in metadata or pool.texts is None:
        return pool
    from mamushi_extras.unlabelled.like import SCREEN

    words = column(f"label_{SCREEN}").astype(float)
    return replace(pool, columns={**pool.columns, "words": words})


def check(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield what such a corpus has no use for: it takes rankings of texts with a score of each."""
    corpora = {name: one for name, one in full["datasets"].items() if is_unlabelled(one)}
    for name, dataset in corpora.items():
        if dataset.get("retain") is not None:
            yield f"datasets.{name}.retain: is not allowed beside examples; use forget.unlike"
        if dataset.get("windows") and any(map(dataset["forget"].get, ("screen", "screened"))):
            yield f"datasets.{name}.windows: is not allowed with a screen, which reads whole texts"
    ranked = [name for name in corpora if name in full["grid"]["datasets"]]
    for place, name in enumerate(full["grid"]["selectors"] if ranked else ()):
        if not scores_both(full, name):
            yield (
                f"grid.selectors[{place}]: {name!r} is not allowed with the dataset {ranked[0]!r}, "
                "in which nobody marked the domain; name one that scores every text, such as "
                "mamushi_words"
            )


config = Added(check=check)
