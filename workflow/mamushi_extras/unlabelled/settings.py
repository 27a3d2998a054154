"""What the configuration of a corpus that nobody labelled takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mamushi.config.checks import comparisons
from mamushi.config.sections import axes_sections
from mamushi.config.selectors import scores_both
from mamushi.config.sources import unlabelled


def check_unlabelled(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield what such a corpus has no use for: it takes rankings of texts with a score of each."""
    corpora = [name for name, dataset in full["datasets"].items() if unlabelled(dataset)]
    for name in corpora:
        dataset = full["datasets"][name]
        if dataset.get("retain") is not None:
            yield f"datasets.{name}.retain: is not allowed beside examples; use forget.unlike"
        screens = (dataset["forget"].get(key) for key in ("screen", "screened"))
        if dataset.get("windows") and any(screens):
            yield f"datasets.{name}.windows: is not allowed with a screen, which reads whole texts"
    for where, axes in comparisons(full):
        # What is measured against gold is refused as a whole, where it is asked for.
        measured = where in axes_sections()
        here = [name for name in corpora if name in axes["datasets"] and not measured]
        for place, name in enumerate(axes["selectors"] if here else ()):
            # What others take over from the grid is told of there.
            in_grid = where != "grid" and name in full["grid"]["selectors"]
            if not in_grid and not scores_both(full, name):
                yield (
                    f"{where}.selectors[{place}]: {name!r} is not allowed with the dataset "
                    f"{here[0]!r}, in which nobody marked the domain; name one that scores every "
                    "text, such as mamushi_words"
                )
