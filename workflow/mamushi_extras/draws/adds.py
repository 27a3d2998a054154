"""What this room adds to the core: seeds that draw their texts, ``datasets.NAME.draws``."""

from collections.abc import Iterator, Mapping
from typing import Any

from mamushi.config.kinds import Added, Count, Domain, key
from mamushi.config.sources import is_unlabelled

MEANING = (
    "As `limit`, for comparisons: each seed draws its training sections anew from the texts of "
    "both, and ranks those alone. Intervals over seeds then hold for another draw."
)


def check(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield which datasets have no use for draws."""
    for name, dataset in full["datasets"].items():
        if dataset["draws"] and is_unlabelled(dataset):
            yield f"datasets.{name}.draws: is not allowed, as all of a corpus is ranked"


config = Added({"datasets.draws": (dict[Domain, Count | None], key({}, MEANING))}, check)
