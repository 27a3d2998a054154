"""Which modules of the package a stage imports, at any depth and whether or not it uses them."""

import ast
import importlib.util
from pathlib import Path

from mamushi.running.identity import PACKAGE, SILENT

MODULES: dict[str, Path] = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
SURROUNDING = tuple(f"mamushi.{name}." for name in SILENT)


def imported(*names: str) -> set[str]:
    """``names`` and the modules of the package that they import directly or through others, but
    for those that surround a command, which the command line has imported."""
    around = {name for name in MODULES if f"{name}.".startswith(SURROUNDING)}
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found |= waiting
        # What the package itself imports is for whoever asks it for that.
        named = (directly(name) for name in waiting - {PACKAGE.name})
        waiting = {each for names in named for each in names} & MODULES.keys() - found - around
    return found


def directly(name: str) -> set[str]:
    """Return what a module imports, at its top or within its functions, by full names."""
    path, named = MODULES[name], set()
    around = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), around)
            named |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return named
