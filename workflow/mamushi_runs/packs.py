"""Packs of short jobs: several that share a job of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from mamushi_runs import internals


def packed(
    workflow: Any, tiny: Collection[str], rule: str, axis: str, values: Iterable[Any]
) -> Callable[[Any], str | None] | None:
    """Return a rule's group.

    Jobs of a ``tiny`` model that differ in the wildcard ``axis`` alone, and have one of ``values``
    there, share a cluster job, in which they run one after the other, since each asks for the
    resource ``pack``, of which a profile gives a cluster job one. How many do is the size that
    a profile's ``group-components`` give the group ``pack``; without it there are no packs. Which
    they are depends on nothing else: Snakemake deals jobs out anew after each checkpoint, and a job
    that runs in one pack must not turn up in another.
    """
    if not tiny:
        return None
    places = {str(value): place for place, value in enumerate(values)}

    def pack(wildcards: Any) -> str | None:
        size = internals.pack_size(workflow)
        place = places.get(getattr(wildcards, axis))
        if size < 2 or place is None or wildcards.model not in tiny:
            return None
        # As many packs as are needed, and all of about the same size.
        number = place * -(-len(places) // size) // len(places)
        others = [value for name, value in wildcards.items() if name != axis]
        # No configured name holds a plus sign, so that no two packs have one name.
        return internals.in_packs(workflow, "+".join([rule, *others, str(number)]))

    return pack
