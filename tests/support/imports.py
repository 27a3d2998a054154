"""What the modules of the packages import, at any place in their text."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from tests.support.workflow import ROOT

PACKAGES = ("mamushi", "mamushi_curate", "mamushi_extras", "mamushi_runs")


def module_name(path: Path) -> str:
    """Return the name under which a file of `workflow` is imported."""
    parts = path.relative_to(ROOT / "workflow").with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES: dict[str, Path] = {
    module_name(path): path
    for package in PACKAGES
    for path in sorted((ROOT / "workflow" / package).rglob("*.py"))
}


def direct_imports(module: str) -> set[str]:
    """Return the full names that a module imports, at its top or within its functions."""
    path, names = MODULES[module], set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return names


def strings(module: str) -> Iterator[str]:
    """Yield the texts that a module holds: it may import what they name when it runs."""
    for node in ast.walk(ast.parse(MODULES[module].read_bytes())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
