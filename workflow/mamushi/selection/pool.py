"""Embeddings with their domain, which every selector sees, and the scores that it gives back.

Plug-ins import this, so that nothing heavy is imported at its top: see ``registry``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.selection.arrays import Doubles

BLOCK_BYTES = 2 * 2**20
"""Of a block of embeddings in float64, which so stays in a processor's cache."""


@dataclass(frozen=True)
class Scored:
    """``scores`` (n,) in the order of the pool: higher is removed earlier; NaN for retain examples
    that have none. ``fold`` (n,): the fold in which an example was held out. ``order`` (n1,):
    positions of the forget examples, from a selector that defines an order rather than a score.
    ``details`` are ready for JSON."""

    scores: Doubles
    fold: NDArray[np.int16] | None = None
    order: NDArray[np.int64] | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pool:
    """The inference section as one model embeds it.

    ``forget`` (n,) is true for the domain p1; ``embeddings`` (n, d) are read-only. ``truth`` (n,)
    is the exact log p1(x)/p2(x) in nats, of synthetic data. ``base`` are the scores from which a
    selector derives. With ``half``, 0 or 1, one cross-fits on that half of each fold's training
    examples. ``groups`` (n,) are codes of examples that are not independent. ``columns`` (n,) are
    of rooms beside the core, as are the steps.
    """

    ids: NDArray[np.object_]
    forget: NDArray[np.bool_]
    embeddings: NDArray[np.float16]
    truth: Doubles | None = None
    base: Scored | None = None
    half: int | None = None
    texts: NDArray[np.object_] | None = None
    groups: NDArray[np.int64] | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    fold_steps: tuple[Callable[[Any, Any], Any], ...] = ()
    """Of a ``crossfit.Task`` and the pool, another task."""
    score_steps: tuple[Callable[[Scored, Any, bool], Scored], ...] = ()
    """Of the scores, the pool, and whether they are by chance, other scores."""

    @property
    def width(self) -> int:
        """Dimensions d of an embedding."""
        return int(self.embeddings.shape[1])

    def forget_by_id(self) -> NDArray[np.int64]:
        """Return positions of the n1 forget examples, in the order of their ids."""
        positions = self.forget.nonzero()[0]
        return positions[self.ids[positions].argsort(kind="stable")]

    def blocks(self, least: int = 1) -> Iterator[tuple[slice, Doubles]]:
        """Yield consecutive rows with their embeddings in float64, ``BLOCK_BYTES`` at a time, or
        ``least`` rows where these are more."""
        size = max(least, BLOCK_BYTES // (8 * self.width))
        for start in range(0, len(self.ids), size):
            rows = slice(start, min(start + size, len(self.ids)))
            yield rows, self.embeddings[rows].astype("float64")
