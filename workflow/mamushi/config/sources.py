"""What lies on the disk at the paths of a dataset, to declare as inputs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.io import tabular
from mamushi.registry import additions, plugin


def is_unlabelled(dataset: Mapping[str, Any]) -> bool:
    """Return whether nobody marked the domain in a dataset: there are examples of it, or terms."""
    forget = dataset.get("forget")
    return isinstance(forget, Mapping) and bool({"like", "terms"} & forget.keys())


def local_path(place: str) -> Path:
    """Return where what a configuration names lies here, as rooms know it."""
    for added in additions("config"):
        place = added.local(place)
    return Path(place)


def files(dataset: Mapping[str, Any]) -> list[str]:
    """Return the paths of a dataset's raw files, whether they exist or not. In a folder they are
    those that ``tabular.find`` finds or that the loader wants, plain or as .zip. A URL has those of
    its local copy. Raises ``UserError`` as ``tabular.find``."""
    loader, paths = plugin("dataset", dataset["kind"]), list[Path]()
    for key in (*loader.files, *loader.beside):
        value: Any = dataset
        for name in key.split("."):
            value = (value or {}).get(name)
        if names := value and loader.files.get(key):
            packed = {Path(value, name): Path(value, f"{name}.zip") for name in names}
            paths += [zipped if zipped.is_file() else plain for plain, zipped in packed.items()]
        elif value:
            place = local_path(value)
            is_several = place.is_dir() or ("*" in place.name and place.parent.is_dir())
            paths += tabular.find(place) if is_several else [place]
    return list(map(str, paths))
