"""The digest of the code behind a result, so that a change of code runs again what it may change.

A stage stands for its function, the helpers beside it, and every file of the rooms that compute
which these import, at any depth. Files are parsed and never imported. What a reader alone sees does
not count: comments, docstrings, messages of errors. Nor do ``config``, ``io`` and ``running``: a
change there that moves a number raises the stage's ``VERSION``, see docs/guide/reruns.md.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = Path(__file__).parents[2]
ROOMS = ("data", "lm", "selection", "unlearning", "evaluation", "evidence", "figures")
COMPUTING = ("mamushi_", *(f"mamushi.{room}" for room in ROOMS))
"""Rooms of the core whose files count. Of the packages beside it, all do."""


@cache
def stage_digest(module: str, function: str, *plug_ins: str) -> str:
    """Return 16 hexadecimal digits for a stage, a function of ``package.module``, and for modules
    that it loads by name. Raises ``FileNotFoundError`` for a module that is not there."""
    nodes = [node for node in _parse(module).body if not _is_other_stage(node, function)]
    return _digest([*map(ast.unparse, nodes), module_digest(*_imports(nodes), *plug_ins)])


def module_digest(*names: str) -> str:
    """Return the same of modules and all that they import of computing rooms."""
    return _digest(f"{name}\n{_module_text(name)}" for name in reachable_modules(*names))


def reachable_modules(*names: str) -> list[str]:
    """Return modules and all that they import of computing rooms, at any depth."""
    reached, waiting = set[str](), [*names]
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += _imported_by(name)
    return sorted(reached)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _is_other_stage(node: ast.stmt, function: str) -> bool:
    """Tell whether a definition is another stage, or settings, whose values are compared."""
    if not isinstance(node, ast.FunctionDef):
        return isinstance(node, ast.ClassDef)
    return node.name != function and "job" in [argument.arg for argument in node.args.kwonlyargs]


def _imports(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the modules of computing rooms that statements import, within functions too."""
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(COMPUTING):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if _module_file(name) else str(node.module) for name in names)


@cache
def _imported_by(module: str) -> list[str]:
    return [*_imports(_parse(module).body)]


def _module_file(module: str) -> Path | None:
    path = PACKAGES.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next(filter(Path.is_file, files), None)


@cache
def _parse(module: str) -> ast.Module:
    """Return the syntax tree of a module without docstrings, messages and imports for types."""
    if (file := _module_file(module)) is None:
        raise FileNotFoundError(f"no module {module} in {PACKAGES}")
    tree: ast.Module = _WithoutWords().visit(ast.parse(file.read_bytes()))
    return tree


@cache
def _module_text(module: str) -> str:
    return ast.unparse(_parse(module))


class _WithoutWords(ast.NodeTransformer):
    """Takes out what only a reader sees, and what is imported for types alone."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Raise()

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        is_for_types = ast.unparse(node.test).endswith("TYPE_CHECKING")
        return node.orelse if is_for_types else self.generic_visit(node)
