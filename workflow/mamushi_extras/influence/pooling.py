"""What was measured of each text, in the order in which somebody else has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mamushi.io.tables import read_table
from mamushi_extras.influence.schemas import TOKEN_INFLUENCE


def read_influence(path: Path, ids: Sequence[str]) -> list[NDArray[np.float32]]:
    """Return the influence of each text's tokens, in the order of ``ids``. Raises ``KeyError`` for
    an id that was not measured."""
    table = read_table(path, TOKEN_INFLUENCE, ["id", "influence"])
    places = {name: place for place, name in enumerate(table["id"].to_pylist())}
    values = table["influence"].combine_chunks()
    return [values[places[name]].values.to_numpy() for name in ids]
