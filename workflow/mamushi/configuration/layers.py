"""Keys that stand twice in a configuration file, of which YAML keeps the last without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mamushi.configuration.complete import ConfigError


def check(files: Sequence[str | Path]) -> None:
    """Raise ``ConfigError`` with a line for each key that stands twice in one of the ``files``."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    lines: list[str] = []
    for path in files:
        try:
            root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=loader)
        except (yaml.YAMLError, OSError, UnicodeError):
            # JSON with tabs, or a template: Snakemake has read it, and knows more of it.
            continue
        lines += [f"{path}, {line}" for line in _twice(root)]
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
