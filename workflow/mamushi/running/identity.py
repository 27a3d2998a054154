"""A digest of the code that a stage runs, so that a change of code re-runs just what it affects.

The digest covers a module and everything of this package that it imports, at any level and inside
functions. Files are parsed, never imported: it costs milliseconds and needs no torch. Formatting,
comments and docstrings do not count, nor do modules that change no result.

A plug-in that a stage loads by its name is no import that one can see: pass it as well, as in
``digest("mamushi.stages.score", "mamushi.selection.selectors.mamushi")``.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
MESSAGES = frozenset(
    {
        *("errors", "running.progress", "cli"),
        # Who computes, when, on which GPU, and when it stops to go on later: never what comes out.
        *("running.claims", "running.leases", "running.locks", "running.interruption"),
    }
)
"""Modules that change what a user reads or when something runs, and never a result."""


@cache
def digest(*modules: str, package: Path = PACKAGE) -> str:
    """16 hexadecimal digits for the import closure of ``modules``, given by their dotted names.

    Raises ``ValueError`` for a name that is no module of the package.
    """
    total = hashlib.sha256()
    for name in sorted(closure(*modules, package=package)):
        total.update(f"{name} {_digest(name, package)}\n".encode())
    return total.hexdigest()[:16]


def closure(*modules: str, package: Path = PACKAGE) -> set[str]:
    """``modules``, the modules of the package that they import directly or through others, and
    the packages around them, which Python runs first."""
    for name in modules:
        if _file(name, package) is None:
            raise ValueError(f"{name} is no module of {package}")
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name in {f"{package.name}.{module}" for module in MESSAGES}:
            continue
        found.add(name)
        waiting.extend(_imports(name, package))
    return found


def _file(name: str, package: Path) -> Path | None:
    """The file of a module of the package, None for anything else."""
    head, *rest = name.split(".")
    if head != package.name:
        return None
    path = package.joinpath(*rest)
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file() and (rest or candidate.name == "__init__.py"):
            return candidate
    return None


@cache
def _tree(name: str, package: Path) -> ast.Module:
    path = _file(name, package)
    assert path is not None
    return ast.parse(path.read_bytes(), filename=str(path))


@cache
def _imports(name: str, package: Path) -> tuple[str, ...]:
    """The modules of the package that a module names in its import statements, and its parents."""
    path = _file(name, package)
    assert path is not None
    parts = name.split(".")
    around = parts if path.name == "__init__.py" else parts[:-1]
    named = {".".join(parts[:depth]) for depth in range(1, len(parts))}
    for node in _statements(_tree(name, package)):
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = around[: len(around) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            # `from mamushi.lm import embed` may name a module or something inside one.
            named.update([source, *(f"{source}.{alias.name}" for alias in node.names)])
    return tuple(sorted(found for found in named if _file(found, package) is not None))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a syntax tree at any depth. Expressions, most of it, hold none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from _statements(child)


@cache
def _digest(name: str, package: Path) -> str:
    words: list[str] = []
    _spell(_tree(name, package), words)
    return hashlib.sha256("".join(words).encode()).hexdigest()


def _spell(value: object, words: list[str]) -> None:
    """Append a syntax tree as text: types and values in order, without positions.

    ``ast.dump`` would do, but writes empty fields as well, and those differ between versions of
    Python: an upgrade must not re-run a grid.
    """
    if isinstance(value, ast.AST):
        words.append(f"({type(value).__name__}")
        for field in value._fields:
            child = getattr(value, field, None)
            if isinstance(child, list):
                child = [item for item in child if not _silent(item)]
            if child is not None and child != []:
                words.append(f" {field}=")
                _spell(child, words)
        words.append(")")
    elif isinstance(value, list):
        words.append("[")
        for item in value:
            _spell(item, words)
        words.append("]")
    else:
        words.append(repr(value))


def _silent(node: object) -> bool:
    """Whether a statement does nothing (a docstring, any string that stands alone, ``pass``) or
    sets the version."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        return isinstance(target, ast.Name) and target.id == "__version__"
    return isinstance(node, ast.Pass)
