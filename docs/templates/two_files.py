"""A folder with two text files, a text a line: forget.txt and retain.txt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import PlaceOrNull, Section, key

if TYPE_CHECKING:
    from mamushi.data.raw import Raw

FILES = {"path": ["forget.txt", "retain.txt"]}


class Settings(Section):
    """Settings of this dataset."""

    path: PlaceOrNull = key(None, "The folder.")


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read both files."""
    import numpy as np

    from mamushi.data.raw import Raw

    texts = {
        name: (Path(settings["path"]) / name).read_text(encoding="utf-8").splitlines()
        for name in FILES["path"]
    }
    places = [f"{name}, line {i + 1}" for name, lines in texts.items() for i in range(len(lines))]
    return Raw(
        ids=places,
        texts=[text for lines in texts.values() for text in lines],
        forget=np.array([place.startswith("forget") for place in places], dtype=bool),
        section=[None] * len(places),
        stratum=[""] * len(places),
        places=places,
    )


# What a loader may declare beside Settings:
#   FILES                        the setting that is a path, and the files in that folder (`[]`: it
#                                is a file itself), which enter by digest
#   EVALUATION_SECTION = True    rows come with that section
#   KNOWS_TRUTH = True           it gives `log_density_ratio`
#   DOWNLOADS = True             it needs no path
