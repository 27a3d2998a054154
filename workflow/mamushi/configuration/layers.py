"""What is lost without a word when configuration files are read and laid over each other.

Snakemake reads them, and merges mapping into mapping: of a key that stands twice in a file the last
one wins, and a dataset of one's own becomes a mixture with one of the same name. Both are looked
for here, in the files themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mamushi.configuration.complete import ConfigError


def check(files: Sequence[str | Path]) -> None:
    """Raise ``ConfigError`` with a line for each mistake in the ``files``, of which each is laid
    over those before it."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    lines: list[str] = []
    below: list[tuple[str | Path, dict[str, Any]]] = []
    for path in files:
        try:
            root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=loader)
        except (yaml.YAMLError, OSError, UnicodeError):
            # JSON with tabs, or a template: Snakemake has read it, and knows more of it.
            continue
        lines += [f"{path}, {line}" for line in _twice(root)]
        datasets = _mapping(_mapping(root).get("datasets"))
        for earlier, others in below:
            for name in datasets.keys() & others.keys():
                lines += [
                    f"{path}, {line}"
                    for line in _mixed(name, datasets[name], earlier, others[name])
                ]
        below.append((path, datasets))
    if lines:
        raise ConfigError(lines)


def _mapping(node: Any) -> dict[str, Any]:
    """Keys and values of a mapping, empty for anything else."""
    pairs = node.value if node is not None and node.id == "mapping" else []
    return {key.value: value for key, value in pairs if key.id == "scalar"}


def _twice(node: Any, at: str = "") -> Iterator[str]:
    """A line for each key that a mapping has more than once."""
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


def _mixed(name: str, own: Any, file: str | Path, other: Any) -> Iterator[str]:
    """What a dataset and one of the same name in an earlier ``file`` cannot be together."""
    at = f"datasets.{name}"
    kind, before = (_mapping(each).get("kind") for each in (own, other))
    sections = _mapping(own).get("sections")
    shares, kept = _shares(sections), _shares(_mapping(other).get("sections"))
    both = sum({**kept, **shares}.values())
    if kind is not None and before is not None and kind.value != before.value:
        yield (
            f"line {kind.start_mark.line + 1}: {at} is {kind.value} data, but {file} has "
            f"{before.value} data of that name, and what it says would stay; choose another name"
        )
    elif sections and shares and abs(sum(shares.values()) - 1) < 1e-9 and abs(both - 1) > 1e-9:
        left = ", ".join(f"{key} {value:g}" for key, value in kept.items() if key not in shares)
        yield (
            f"line {sections.start_mark.line + 1}: {at}.sections: {file} has a dataset of that "
            f"name, whose {left} would stay; set these to 0, or choose another name for a dataset "
            "of your own"
        )


def _shares(node: Any) -> dict[str, float]:
    found = {}
    for key, value in _mapping(node).items():
        try:
            found[key] = float(value.value)
        except (TypeError, ValueError):
            return {}
    return found
