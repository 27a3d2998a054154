"""The digest of the code behind a result, so that a change of code runs again what it may change.

A stage stands for its function, the helpers beside it, and every file of the rooms that compute
which these import, at any depth. Files are parsed and never imported. What a reader alone sees does
not count: comments, docstrings, messages of errors. Nor do ``config``, ``io`` and ``running``: a
change there that moves a number raises the stage's ``VERSION``, see docs/guide/reruns.md.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = Path(__file__).parents[2]
ROOMS = ("data", "lm", "selection", "unlearning", "evaluation", "evidence", "figures")
COMPUTING = ("mamushi_", *(f"mamushi.{room}" for room in ROOMS))
"""Rooms of the core whose files count. Of the packages beside it, all do."""
IMPORT = re.compile(r"^ *from (mamushi[\w.]*) import (.+)$", re.MULTILINE)  # of `ast.unparse`


@cache
def stage_digest(module: str, function: str, *plug_ins: str) -> str:
    """Return 16 hexadecimal digits for a stage, a function of ``package.module``, and for modules
    that it loads by name. Raises ``FileNotFoundError`` for a module that is not there."""
    nodes = [node for node in _parse(module).body if not _is_other_stage(node, function)]
    text = "\n".join(map(ast.unparse, nodes))
    return _digest([text, module_digest(*_imports(text), *plug_ins)])


def module_digest(*names: str) -> str:
    """Return the same of modules and all that they import of computing rooms."""
    return _digest(f"{name}\n{_module_text(name)}" for name in reachable_modules(*names))


def reachable_modules(*names: str) -> list[str]:
    """Return modules and all that they import of computing rooms, at any depth."""
    reached, waiting = set[str](), [*names]
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += _imports(_module_text(name))
    return sorted(reached)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _is_other_stage(node: ast.stmt, function: str) -> bool:
    """Tell whether a definition is another stage, or settings, whose values are compared."""
    if not isinstance(node, ast.FunctionDef):
        return isinstance(node, ast.ClassDef)
    return node.name != function and "job" in [argument.arg for argument in node.args.kwonlyargs]


@cache
def _imports(text: str) -> list[str]:
    """Return the modules of computing rooms that code imports, within functions too."""
    lines = [line for line in IMPORT.findall(text) if line[0].startswith(COMPUTING)]
    pairs = [(room, name.split(" ")[0]) for room, names in lines for name in names.split(", ")]
    return [f"{room}.{name}" if _module_file(f"{room}.{name}") else room for room, name in pairs]


def _module_file(module: str) -> Path | None:
    path = PACKAGES.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next(filter(Path.is_file, files), None)


@cache
def _parse(module: str) -> ast.Module:
    """Return the syntax tree of a module without docstrings, messages and imports for types."""
    if (file := _module_file(module)) is None:
        raise FileNotFoundError(f"no module {module} in {PACKAGES}")
    return ast.Module([*_without_words(ast.parse(file.read_bytes()).body)], [])


@cache
def _module_text(module: str) -> str:
    return ast.unparse(_parse(module))


def _without_words(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Take out of statements what only a reader sees, and what is imported for types alone."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield ast.Pass()
        elif isinstance(node, ast.Raise):
            yield ast.Raise()
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from node.orelse
        else:
            for inner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                for field in {"body", "orelse", "finalbody"} & {*inner._fields}:
                    setattr(inner, field, [*_without_words(getattr(inner, field))])
            yield node
