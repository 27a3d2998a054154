"""The definitions in a file of the package, each as text without what changes no result.

What a user reads does not count (docstrings, comments, error messages, help texts, meanings of
columns), nor do annotations that nothing reads at run time, nor the names of local variables. See
``identity`` for what the texts are for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mamushi.artifacts.columns import signature

NOT_COUNTED = {"__version__", "__all__"}
HELP, MESSAGE = {"help", "description", "metavar"}, {"do", "where"}
OPTIONS = {"reads", "writes", "option"}
"""What declares an option of a stage, with its help text first."""
TABLES = {"table", "group"}
"""What declares the columns of a table, with their meanings."""
TOP, CLASS, FUNCTION = "top", "class", "function"
DEFINING = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CALLABLE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSION = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass
class Module:
    """The names that the top level of a file binds, and the statements that do more than that."""

    name: str
    package: str
    """The package that relative imports start from."""
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, list[str]] = field(default_factory=dict)
    """Name -> what it is in full. Several where that depends."""
    stars: list[str] = field(default_factory=list)
    """Modules of which it has all names."""
    typing: set[str] = field(default_factory=set)
    """Names for a type checker alone."""
    effects: list[ast.stmt] = field(default_factory=list)

    def read(self, body: Iterable[ast.stmt]) -> None:
        """Sort the statements of the file's top level."""
        for node in body:
            if _is_silent(node):
                continue
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                unseen = Module(self.name, self.package)
                unseen.read(node.body)
                self.typing.update(unseen.definitions, unseen.imports)
                self.read(node.orelse)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for name, source in _imported(node, self.package):
                    if name == "*":
                        self.stars.append(source.removesuffix(".*"))
                    else:
                        self.imports.setdefault(name, []).append(source)
            else:
                names, only_defines = _bound(node)
                for name in names - NOT_COUNTED:
                    self.definitions.setdefault(name, []).append(node)
                if not only_defines:
                    self.effects.append(node)


def _bound(node: ast.stmt) -> tuple[set[str], bool]:
    """Return the names that a statement of the top level binds, and whether it does only that."""
    if isinstance(node, DEFINING):
        return {node.name}, True
    targets: list[ast.AST] = [node]
    if isinstance(node, ast.Assign):
        targets = [*node.targets]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    inner = [each for target in targets for each in ast.walk(target)]
    simple = ast.Name | ast.Tuple | ast.List | ast.Starred | ast.expr_context
    names = {each.name for each in inner if isinstance(each, DEFINING)}
    return names | _stored(inner), all(isinstance(each, simple) for each in inner)


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that these nodes assign."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
    return found


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield the names that an import statement binds, each with what it is in full."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            head = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (head, head)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".")
        base = parts[: len(parts) - node.level + 1] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, f"{source}.{alias.name}"


class Reference(NamedTuple):
    """A name with the attributes that follow it, still to be resolved."""

    parts: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """What the name is in full, where an import within the definition says so."""
    known: bool = False
    """Whether the definition binds the name itself."""
    optional: bool = False
    """Whether the module may lack the attribute."""


class Writer:
    """Writes a definition as text: its syntax tree in order, without positions.

    ``ast.dump`` would do for most of it, but writes empty fields as well, and those differ between
    versions of Python: an upgrade must not re-run a grid. A name that the module defines counts as
    a reference to that, also where a local variable hides it.
    """

    def __init__(self, module: Module, node: ast.AST, annotated: bool = False) -> None:
        """``annotated`` says whether annotations of the definition are read at run time."""
        self.annotated = annotated
        self.place = TOP
        self.words: list[str | Reference] = []
        self.in_message = self.in_table = False
        self.imports: dict[str, list[str]] = {}
        inner = list(ast.walk(node))
        for each in inner:
            for name, source in _imported(each, module.package):
                self.imports.setdefault(name, []).append(source)
        named = {each.arg for each in inner if isinstance(each, ast.arg)}
        named |= {each.name for each in inner if isinstance(each, DEFINING)}
        rebound = {
            *self.imports,
            *(name for each in inner if isinstance(each, ast.Global) for name in each.names),
        }
        shared = rebound | {*module.definitions, *module.imports}
        own = ast.iter_child_nodes(node.args) if isinstance(node, CALLABLE) else ()
        self.parameters = {each.arg for each in own if isinstance(each, ast.arg)} - rebound
        self.known = (named | _stored(inner)) - shared
        within = (each for each in inner if isinstance(each, CALLABLE | COMPREHENSION))
        self.variables = {name for each in within for name in _stored(ast.walk(each))}
        self.variables -= named | shared
        self.numbers: dict[str, int] = {}
        self.write(node)

    def write(self, value: object, place: str | None = None) -> None:
        """Write a node, a list of them or a constant, which stands in a ``place``."""
        before, self.place = self.place, place or self.place
        if isinstance(value, ast.AST):
            visit = getattr(self, f"visit_{type(value).__name__}", self.generic_visit)
            visit(value)
        elif isinstance(value, list):
            self.words.append("[")
            for item in value:
                if not _is_silent(item):
                    self.write(item)
            self.words.append("]")
        else:
            self.words.append(repr(value))
        self.place = before

    def generic_visit(self, node: ast.AST) -> None:
        self.words.append(f"({type(node).__name__}")
        place = FUNCTION if isinstance(node, COMPREHENSION) else None
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                value = [each for each in value if not _is_silent(each)]
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
                self.words.append(name)
                self.write(value, place)
        self.words.append(")")

    def refer(
        self, parts: tuple[str, ...], *, stored: bool = False, optional: bool = False
    ) -> None:
        """Write a name with its attributes: a variable by its number, else as a reference."""
        name = parts[0]
        if self.place == FUNCTION and name in self.variables:
            number = self.numbers.setdefault(name, len(self.numbers))
            self.words.append(".".join([f"${number}", *parts[1:]]))
        elif stored:
            self.words.append(name)
        elif self.place == FUNCTION and name in self.parameters:
            self.words.append(".".join(parts))
        else:
            sources = tuple(self.imports.get(name, ()))
            self.words.append(Reference(parts, sources, name in self.known, optional))

    def visit_Name(self, node: ast.Name) -> None:
        self.refer((node.id,), stored=not isinstance(node.ctx, ast.Load))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if parts := _parts(node):
            self.refer(parts)
        else:
            self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name is not None:
            self.refer((node.name,), stored=True)
        others = [value for name, value in ast.iter_fields(node) if name != "name"]
        self.write([type(node).__name__, *others])

    visit_MatchAs = visit_MatchStar = visit_ExceptHandler

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Count an import where its names are used; at the top level it has a condition."""
        if self.place == TOP:
            self.words += [Reference((name,), (self.imports[name][0],)) for name in self.imports]

    visit_ImportFrom = visit_Import

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            self.refer((name,), stored=True)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        given = node.args
        kinds = [given.posonlyargs, given.args, given.kwonlyargs]
        kinds += [[each] if each else [] for each in (given.vararg, given.kwarg)]
        self.write([type(node).__name__, given.defaults, given.kw_defaults])
        if not isinstance(node, ast.Lambda):
            self.write([node.name, node.decorator_list])
            if self.annotated and self.place == TOP:
                self.write([[each.annotation for kind in kinds for each in kind], node.returns])
        self.write([[each.arg for each in kind] for kind in kinds])
        self.write(node.body, FUNCTION)

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.write(["class", node.name, node.decorator_list, node.bases, node.keywords])
        self.write(node.body, CLASS)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Count an annotation in the body of a class, where dataclasses and parsers read it."""
        if self.place == CLASS:
            self.generic_visit(node)
        elif node.value is not None:
            self.write(ast.Assign(targets=[node.target], value=node.value))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and self.in_message:
            self.words.append("text")
        elif isinstance(node.value, str) and self.in_table:
            self.words.append(signature(node.value) or repr(node.value))
        else:
            self.words.append(repr(node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        if self.in_message:
            self.words.append("text")
        else:
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        before, self.in_message = self.in_message, True
        self.write(["raise", node.exc])
        self.in_message = before
        self.write(node.cause)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.write(["assert", node.test])

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else None
        before = self.in_message, self.in_table
        self.in_message |= called == "UserError" or _is_to_stderr(node)
        self.in_table |= called in TABLES
        ignored = MESSAGE if self.in_message else set()
        keywords = [
            each
            for each in node.keywords
            if each.arg not in ignored and not (each.arg in HELP and _is_text(each.value))
        ]
        arguments = list(node.args)
        if called in OPTIONS and arguments and _is_text(arguments[0]):
            del arguments[0]
        self.write(["call", node.func])
        parts = _parts(arguments[0]) if called == "getattr" else ()
        if parts and isinstance(arguments[1], ast.Constant):
            self.refer((*parts, str(arguments[1].value)), optional=True)
            del arguments[:2]
        self.write([arguments, keywords])
        self.in_message, self.in_table = before


def _is_silent(node: object) -> bool:
    """Return whether a statement is a docstring, ``pass``, or a text printed to stderr."""
    if not isinstance(node, ast.Expr):
        return isinstance(node, ast.Pass)
    if isinstance(node.value, ast.Call) and _is_to_stderr(node.value):
        return all(map(_is_text, node.value.args))
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_to_stderr(node: ast.Call) -> bool:
    if not (isinstance(node.func, ast.Name) and node.func.id == "print"):
        return False
    return any(k.arg == "file" and _parts(k.value) == ("sys", "stderr") for k in node.keywords)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) and _is_text(node.right)
    return isinstance(getattr(node, "value", None), str) or isinstance(node, ast.JoinedStr)


def _parts(node: Any) -> tuple[str, ...]:
    """Return a name and the attributes after it; nothing for what does not start with a name."""
    if isinstance(node, ast.Attribute):
        before = _parts(node.value)
        return (*before, node.attr) if before else ()
    return (node.id,) if isinstance(node, ast.Name) else ()
