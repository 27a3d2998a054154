"""The digest of the code behind a result, so that a change of code runs again what it may change.

A stage stands for its function, the helpers beside it, and every file of the rooms that compute
which these import, at any depth. Files are parsed and never imported. What a reader alone sees does
not count: comments, docstrings, annotations, messages of errors. Nor do rooms that decide how and
where a stage runs; a change there that moves a number raises the ``VERSION`` of the stage's module,
which the golden test of ``tests/golden`` watches.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = Path(__file__).parents[2]
MESSAGES = {"problem", "remedy", "do"}
"""Variables whose values a user reads when something is wrong."""
COMPUTING = {"data", "lm", "selection", "unlearning", "evaluation", "evidence", "figures"}
"""Rooms of the core whose files count. Of the extras, all do."""


@cache
def of_stage(entry: str, *plug_ins: str) -> str:
    """Return 16 hexadecimal digits for a stage, ``package.module.function``, and for modules that
    it loads by name, ``package.module``. Raises ``OSError`` for a module that is not there."""
    module, _, function = entry.rpartition(".")
    nodes = [node for node in _parsed(module).body if not _is_other_stage(node, function)]
    total = hashlib.sha256("\n".join(map(ast.unparse, nodes)).encode())
    total.update(of_modules(*_imports(nodes), *plug_ins).encode())
    return total.hexdigest()[:16]


def of_modules(*names: str) -> str:
    """Return 16 hexadecimal digits for modules and all that they import of computing rooms."""
    total = hashlib.sha256()
    reached, waiting = set[str](), [*names]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _imported_by(name)
    for name in sorted(reached):
        total.update(f"\n{name}\n{_text(name)}".encode())
    return total.hexdigest()[:16]


def _is_other_stage(node: ast.stmt, function: str) -> bool:
    """Tell whether a definition is no part of this stage: another one, or the class of settings,
    whose values are compared."""
    if isinstance(node, ast.ClassDef):
        return True
    if not isinstance(node, ast.FunctionDef) or node.name == function:
        return False
    return "job" in [argument.arg for argument in node.args.kwonlyargs]


def _imports(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the modules of computing rooms that statements import, within functions too."""
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if _file(name) else node.module for name in names if _counts(name))


@cache
def _imported_by(module: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_imports(_parsed(module).body)))


def _counts(name: str) -> bool:
    package, _, inner = name.partition(".")
    room = inner.partition(".")[0]
    return package == "mamushi_extras" or (package == "mamushi" and room in COMPUTING)


def _file(module: str) -> Path | None:
    path = PACKAGES.joinpath(*module.split("."))
    return next(
        (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None
    )


@cache
def _parsed(module: str) -> ast.Module:
    file = _file(module)
    if file is None:
        raise FileNotFoundError(f"no module {module} in {PACKAGES}")
    tree: ast.Module = _WithoutWords().visit(ast.parse(file.read_bytes()))
    return tree


@cache
def _text(module: str) -> str:
    return ast.unparse(_parsed(module))


class _WithoutWords(ast.NodeTransformer):
    """Takes out what only a reader sees."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant):
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Raise()

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        targets = {target.id for target in node.targets if isinstance(target, ast.Name)}
        return ast.Pass() if targets and targets <= MESSAGES else self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # Of a plug-in: the values are compared.
        return ast.Pass() if node.name == "Settings" else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return node.orelse
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)
