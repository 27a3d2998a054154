"""What a file of the package defines, and each definition as text that leaves out what cannot
change a result: see ``identity``.

What a user reads does not count (docstrings, comments, messages of errors, help texts), nor do
annotations that nothing reads at run time, nor the names of local variables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

NOT_COUNTED = {"__version__", "__all__"}
HELP, MESSAGE = {"help", "description", "metavar"}, {"do", "where"}
OPTIONS = {"reads", "writes", "option"}
"""What declares an option of a stage, with its help text first."""
VARIABLE, NAMED, GLOBAL, NONLOCAL = "variable", "named", "global", "nonlocal"
FUNCTION, CLASS, COMPREHENSION = "function", "class", "comprehension"


@dataclass
class Module:
    """What the top level of a file binds, by name, and the statements that do more than that."""

    name: str
    around: str
    """The package that relative imports start from."""
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, list[str]] = field(default_factory=dict)
    """Name -> what it is in full. Several where that depends."""
    typing: set[str] = field(default_factory=set)
    """What only a type checker sees."""
    effects: list[ast.stmt] = field(default_factory=list)

    def read(self, body: Iterable[ast.stmt]) -> None:
        """Sort the statements of the file's top level."""
        for node in body:
            if _says_nothing(node):
                continue
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                unseen = Module(self.name, self.around)
                unseen.read(node.body)
                self.typing.update(unseen.definitions, unseen.imports)
                self.read(node.orelse)
                continue
            names, only_defines = _bound(node)
            for name in names - NOT_COUNTED:
                self.definitions.setdefault(name, []).append(node)
            if not only_defines:
                self.effects.append(node)
            for name, source in _imported(node, self.around):
                self.imports.setdefault(name, []).append(source)


def _bound(node: ast.stmt) -> tuple[set[str], bool]:
    """The names that a statement of the top level binds, and whether it does nothing else."""
    defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    if isinstance(node, defining):
        return {node.name}, True
    if isinstance(node, ast.Import | ast.ImportFrom):
        return set(), node.names[0].name != "*"
    targets: list[ast.AST] = [node]
    if isinstance(node, ast.Assign):
        targets = [*node.targets]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    inner = [each for target in targets for each in ast.walk(target)]
    names = {
        each.id for each in inner if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    names |= {each.name for each in inner if isinstance(each, defining)}
    simple = ast.Name | ast.Tuple | ast.List | ast.Starred | ast.expr_context
    return names, all(isinstance(each, simple) for each in inner)


def _imported(node: ast.AST, around: str) -> Iterator[tuple[str, str]]:
    """The names that an import statement binds, each with what it is in full."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            head = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (head, head)
    elif isinstance(node, ast.ImportFrom):
        parts = around.split(".")
        base = parts[: len(parts) - node.level + 1] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, f"{source}.{alias.name}"


@dataclass(eq=False)
class Scope:
    """What a function, class or comprehension binds: to a variable, whose name means nothing, to
    something whose name matters, to a name of the scopes around it, or to imports (a list)."""

    outer: Scope | None
    kind: str
    bound: dict[str, str | list[str]]

    def owner(self, name: str) -> Scope | None:
        """The scope that a name belongs to, None for the top level of the module.

        What a class binds is seen in its body alone, where it may be, until then, the name around.
        """
        scope: Scope | None = self
        while scope is not None:
            how = scope.bound.get(name)
            if how == GLOBAL:
                return None
            if how and how != NONLOCAL and scope.kind != CLASS:
                return scope
            scope = scope.outer
        return None


class Name(NamedTuple):
    """A name in a normal form, with the attributes that follow it, still to be resolved.

    What a module lacks may be missing if it is ``optional``.
    """

    scope: Scope
    parts: tuple[str, ...]
    optional: bool = False


class Writer:
    """Writes definitions of a module as text: syntax trees in order, without positions.

    ``ast.dump`` would do for most of it, but writes empty fields as well, and those differ between
    versions of Python: an upgrade must not re-run a grid.
    """

    def __init__(self, module: Module, annotated: bool = False) -> None:
        """``annotated`` says whether annotations of the definition are read at run time."""
        self.module = module
        self.annotated = annotated
        self.top = self.scope = Scope(None, CLASS, {})
        self.words: list[str | Name] = []
        self.message = 0
        """How deep in a message this is."""

    def write(self, value: object) -> None:
        if isinstance(value, ast.AST):
            _visitor(type(value).__name__)(self, value)
        elif isinstance(value, list):
            self.words.append("[")
            for item in _said(value):
                self.write(item)
            self.words.append("]")
        else:
            self.words.append(repr(value))

    def generic_visit(self, node: ast.AST) -> None:
        self.words.append(f"({type(node).__name__}")
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                value = _said(value)
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
                self.words.append(name)
                self.write(value)
        self.words.append(")")

    def bind(self, name: str, how: str) -> None:
        self.scope.bound.setdefault(name, how)

    def within(self, kind: str, names: Iterable[str], parts: list[object]) -> None:
        """Write parts in a scope of their own."""
        outer = self.scope
        self.scope = Scope(outer, kind, dict.fromkeys(names, NAMED))
        self.write(parts)
        self.scope = outer

    def visit_Name(self, node: ast.Name) -> None:
        stored = not isinstance(node.ctx, ast.Load)
        if stored:
            self.bind(node.id, VARIABLE)
        # What a class or the top level stores under a name is no use of one.
        name = Name(self.scope, (node.id,))
        self.words.append(node.id if stored and self.scope.kind == CLASS else name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if parts := _parts(node):
            self.words.append(Name(self.scope, parts))
        else:
            self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name is not None:
            self.write(ast.Name(node.name, ast.Store()))
        others = [value for name, value in ast.iter_fields(node) if name != "name"]
        self.write([type(node).__name__, *others])

    visit_MatchAs = visit_MatchStar = visit_ExceptHandler

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Counts where its names are used. Where it is at the top level, it has a condition."""
        for name, source in _imported(node, self.module.around):
            if self.scope.kind == CLASS:
                full = Scope(None, FUNCTION, {name: [source]})
                self.words.append(Name(full, (name,)))
            else:
                before = self.scope.bound.get(name)
                self.scope.bound[name] = [*(before if isinstance(before, list) else []), source]

    visit_ImportFrom = visit_Import

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self.bind(name, GLOBAL if isinstance(node, ast.Global) else NONLOCAL)

    visit_Nonlocal = visit_Global

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        given = node.args
        kinds = [given.posonlyargs, given.args, given.kwonlyargs]
        kinds += [[each] if each else [] for each in (given.vararg, given.kwarg)]
        arguments = [each for kind in kinds for each in kind]
        self.write([type(node).__name__, given.defaults, given.kw_defaults])
        if not isinstance(node, ast.Lambda):
            self.bind(node.name, NAMED)
            self.write([node.name, node.decorator_list])
            if self.annotated and self.scope is self.top:
                self.write([[each.annotation for each in arguments], node.returns])
        self.write([[each.arg for each in kind] for kind in kinds])
        self.within(FUNCTION, [each.arg for each in arguments], [node.body])

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bind(node.name, NAMED)
        self.write(["class", node.name, node.decorator_list, node.bases, node.keywords])
        self.within(CLASS, (), [node.body])

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        # The first iterable belongs to what is around.
        self.write([type(node).__name__, node.generators[0].iter])
        loops = [[each.target, each.ifs, each.is_async] for each in node.generators]
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        iterables = [each.iter for each in node.generators[1:]]
        self.within(COMPREHENSION, (), [loops, iterables, values])

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """An annotation counts in the body of a class, where dataclasses and parsers read it."""
        if self.scope.kind == CLASS and self.scope is not self.top:
            self.generic_visit(node)
        elif node.value is not None:
            self.write(ast.Assign(targets=[node.target], value=node.value))

    def visit_Constant(self, node: ast.Constant) -> None:
        is_text = self.message and isinstance(node.value, str)
        self.words.append("text" if is_text else repr(node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        if self.message:
            self.words.append("text")
        else:
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.message += 1
        self.write(["raise", node.exc])
        self.message -= 1
        self.write(node.cause)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.write(["assert", node.test])

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else None
        said = called == "UserError" or _is_to_stderr(node)
        self.message += said
        ignored = MESSAGE if self.message else set()
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
            self.words.append(Name(self.scope, (*parts, str(arguments[1].value)), True))
            del arguments[:2]
        self.write([arguments, keywords])
        self.message -= said


@cache
def _visitor(kind: str) -> Callable[[Writer, Any], None]:
    found: Callable[[Writer, Any], None] = getattr(Writer, f"visit_{kind}", Writer.generic_visit)
    return found


def _said(nodes: list[Any]) -> list[Any]:
    if nodes and isinstance(nodes[0], ast.stmt):
        return [node for node in nodes if not _says_nothing(node)]
    return nodes


def _says_nothing(node: object) -> bool:
    """Whether a statement is a docstring, ``pass``, or a text printed to stderr."""
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


def _parts(node: ast.expr) -> tuple[str, ...]:
    """A name and the attributes after it; nothing for what does not start with a name."""
    if isinstance(node, ast.Attribute):
        before = _parts(node.value)
        return (*before, node.attr) if before else ()
    return (node.id,) if isinstance(node, ast.Name) else ()
