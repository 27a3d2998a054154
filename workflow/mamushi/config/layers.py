"""Find what is lost without a word when configuration files are read and merged.

Of a key that stands twice in a file YAML keeps the last, and a dataset of one's own is mixed with
one of the same name in an earlier file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mamushi.config.reading import ConfigError


def check_layers(files: Sequence[str | Path]) -> None:
    """Raise ``ConfigError`` with a line for each mistake in the ``files``, of which each is merged
    into those before it."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    lines: list[str] = []
    earlier: dict[str, Any] = {}
    for path in files:
        try:
            root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=loader)
        except (yaml.YAMLError, OSError, UnicodeError):
            # JSON with tabs, or a template: Snakemake has read it, and knows more of it.
            continue
        datasets = _mapping(_mapping(root).get("datasets"))
        pairs = [(name, node, earlier[name]) for name, node in datasets.items() if name in earlier]
        mixed = (line for pair in pairs for line in _mixed(*pair))
        lines += [f"{path}, {line}" for line in (*_twice(root), *mixed)]
        earlier |= datasets
    if lines:
        raise ConfigError(lines)


def _twice(node: Any, at: str = "") -> Iterator[str]:
    if node is None or node.id == "scalar":
        return
    if node.id == "sequence":
        for place, item in enumerate(node.value):
            yield from _twice(item, f"{at}[{place}]")
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        if key.id != "scalar":
            continue
        name, line = f"{at}.{key.value}".lstrip("."), key.start_mark.line + 1
        if name in seen:
            yield f"line {line}: {name} stands there twice, first in line {seen[name]}; keep one"
        seen.setdefault(name, line)
        yield from _twice(value, name)


def _mapping(node: Any) -> dict[str, Any]:
    """Return keys and values of a mapping, nothing of anything else."""
    pairs = node.value if node is not None and node.id == "mapping" else []
    return {key.value: value for key, value in pairs if key.id == "scalar"}


def _mixed(name: str, node: Any, earlier: Any) -> Iterator[str]:
    """Yield whether a dataset and one of the same name in an earlier file are of two kinds."""
    kind, before = (_mapping(dataset).get("kind") for dataset in (node, earlier))
    if kind is not None and before is not None and kind.value != before.value:
        yield (
            f"line {kind.start_mark.line + 1}: datasets.{name} is {kind.value} data, but an "
            f"earlier file has {before.value} data of that name, and what it says would stay; "
            "choose another name for a dataset of your own"
        )
