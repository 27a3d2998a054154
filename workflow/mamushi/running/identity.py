"""A digest of the code that a stage runs, so that a change of code re-runs just what it affects.

The digest covers the *definitions* (functions, classes, constants) that a stage's ``run`` reaches
by names and by attributes of modules, at any depth. Files are parsed, never imported: it takes
milliseconds and needs no torch. It names no module, so a definition can move. What cannot be
resolved counts whole: a module that is handed on as a value counts with all its definitions, and
top-level statements that do more than define count for all that reach a definition beside them.

What a user reads does not count (docstrings, comments, messages of errors, help texts), nor do
annotations that nothing reads at run time, nor the names of local variables.

A plug-in that a stage loads by its name is no reference that one can see: pass it as well, as in
``digest("mamushi.stages.score", "mamushi.selection.selectors.mamushi")``.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mamushi.registry import ENTRIES, FOLDERS

PACKAGE = Path(__file__).parents[1]
SILENT = ("errors", "cli", "running")
"""Modules, and rooms of them, that change what a user reads, or who computes when and where; never
what comes out."""
STAGES = "stages"
ENTERED: Mapping[str, Sequence[str]] = {
    STAGES: ("run", "shared"),
    **{folder: ENTRIES[kind] for kind, folder in FOLDERS.items()},
}
"""Folder -> the definitions by which the program enters its modules."""
NOT_COUNTED = {"__version__", "__all__"}
WHOLE, EFFECTS = "*", ""


@cache
def digest(*names: str, package: Path = PACKAGE) -> str:
    """16 hexadecimal digits for the definitions that ``names`` reach.

    A name is that of a module, which stands for what the program asks of it (``run`` of a stage,
    the entries of a plug-in, else all its definitions), or that of one definition in a module.
    Raises ``ValueError`` for a name that is neither.
    """
    code = _code(package)
    found = sorted(code.digest(unit) for name in names for unit in code.entries(name))
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


class Unit(NamedTuple):
    """A definition; or all those of a module (``WHOLE``), or its other statements (``EFFECTS``)."""

    module: str
    name: str


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
            for inner in [node] if only_defines else ast.walk(node):
                for name, source in _imported(inner, self.around):
                    if source not in self.imports.setdefault(name, []):
                        self.imports[name].append(source)


@cache
def _code(package: Path) -> Code:
    return Code(package)


class Code:
    """A package's definitions and what they refer to, each read once and only when reached."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self._modules: dict[str, Module | None] = {}
        self._forms: dict[Unit, tuple[bytes, list[Unit]]] = {}
        self._digests: dict[Unit, str] = {}

    def entries(self, name: str) -> list[Unit]:
        """The units that a name stands for. Raises ``ValueError`` for an unknown one."""
        if self.module(name) is None:
            around, _, last = name.rpartition(".")
            outer = self.module(around)
            if outer is None or last not in outer.definitions:
                raise ValueError(f"{name} is no module of {self.package}, nor defined in one")
            return [Unit(around, last)]
        parts = name.split(".")
        asked = ENTERED.get("/".join(parts[1:-1]), ())
        return [unit for each in asked for unit in self.resolve([*parts, each], True)[1]] or [
            Unit(name, WHOLE)
        ]

    def digest(self, start: Unit) -> str:
        """The digest of all that a unit reaches.

        Units are numbered in the order in which they are first referred to: so it tells apart two
        definitions of one name, and names no module.
        """
        if start not in self._digests:
            numbers, total = {start: 0}, hashlib.sha256()
            waiting = [start]
            for unit in waiting:
                form, references = self.form(unit)
                waiting += [new for new in dict.fromkeys(references) if new not in numbers]
                for each in references:
                    numbers.setdefault(each, len(numbers))
                total.update(form + repr([numbers[each] for each in references]).encode())
            self._digests[start] = total.hexdigest()
        return self._digests[start]

    def form(self, unit: Unit) -> tuple[bytes, list[Unit]]:
        """The digest of a unit's normal form, and the units that it refers to, in order."""
        if unit not in self._forms:
            module = self.module(unit.module)
            assert module is not None
            folder = module.name.split(".")[1:-1]
            writer = Writer(module, folder == [STAGES] and unit.name in ENTERED[STAGES])
            references = [Unit(module.name, name) for name in sorted(module.definitions)]
            if unit.name != WHOLE:
                nodes = module.effects if unit.name == EFFECTS else module.definitions[unit.name]
                writer.write(nodes)
                references = []
            text = writer.linked(self, references)
            # What importing the module runs, and before it the packages around it.
            parts = module.name.split(".") if unit.name != EFFECTS else []
            for outer in (self.module(".".join(parts[: i + 1])) for i in range(len(parts))):
                if outer is not None and outer.effects:
                    references.append(Unit(outer.name, EFFECTS))
            self._forms[unit] = hashlib.sha256(text.encode()).digest(), references
        return self._forms[unit]

    def resolve(self, parts: Sequence[str], optional: bool) -> tuple[str, list[Unit]]:
        """A full name as it is written, and the units that it refers to.

        What a module of the package lacks is nothing if ``optional``, else all of the module.
        """
        if parts[0] != self.package.name:
            return f"={'.'.join(parts)}", []
        module, rest = self.module(parts[0]), parts[1:]
        assert module is not None
        while rest and rest[0] not in module.definitions and rest[0] not in module.imports:
            inner = self.module(f"{module.name}.{rest[0]}")
            if inner is None:
                break
            module, rest = inner, rest[1:]
        inside = module.name.partition(".")[2]
        if any(f"{inside}.".startswith(f"{room}.") for room in SILENT):
            return f"={'.'.join(rest)}", []
        return self.inside(module, rest, optional) if rest else ("@", [Unit(module.name, WHOLE)])

    def inside(
        self, module: Module, parts: Sequence[str], optional: bool, known: bool = False
    ) -> tuple[str, list[Unit]]:
        """The same for a name as the top level of a module knows it. Builtins are ``known``."""
        head, texts, units = parts[0], [], []
        if head in module.definitions:
            texts.append(f"@{'.'.join(parts)}")
            units.append(Unit(module.name, head))
        for source in module.imports.get(head, ()):
            text, found = self.resolve([*source.split("."), *parts[1:]], optional)
            texts.append(text)
            units += found
        if not (texts or optional or known or head in module.typing or head.startswith("__")):
            units = [Unit(module.name, WHOLE)]
        return "|".join(texts) or ".".join(parts), units

    def module(self, name: str) -> Module | None:
        """A module of the package by its dotted name, None for anything else."""
        if name not in self._modules:
            head, *rest = name.split(".")
            path = self.package.joinpath(*rest)
            files = [path / "__init__.py", *([path.with_suffix(".py")] if rest else [])]
            file = next((each for each in files if each.is_file()), None)
            found = None
            if head == self.package.name and file is not None:
                found = Module(name, name if file == files[0] else name.rpartition(".")[0])
                found.read(ast.parse(file.read_bytes(), filename=str(file)).body)
            self._modules[name] = found
        return self._modules[name]


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


# The normal form ----------------------------------------------------------------------------------

HELP, MESSAGE = {"help", "description", "metavar"}, {"do", "where"}
VARIABLE, NAMED, GLOBAL, NONLOCAL = "variable", "named", "global", "nonlocal"
FUNCTION, CLASS, COMPREHENSION = "function", "class", "comprehension"


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


class Writer(ast.NodeVisitor):
    """Writes definitions of a module as text: syntax trees in order, without positions.

    ``ast.dump`` would do for most of it, but writes empty fields as well, and those differ between
    versions of Python: an upgrade must not re-run a grid.
    """

    def __init__(self, module: Module, annotated: bool) -> None:
        """``annotated`` says whether annotations of the definition are read at run time."""
        self.module = module
        self.annotated = annotated
        self.top = self.scope = Scope(None, CLASS, {})
        self.words: list[str | Name] = []
        self.message = 0
        """How deep in a message this is."""

    def linked(self, code: Code, references: list[Unit]) -> str:
        """The text with its names resolved; the units that they refer to are added."""
        numbers: dict[tuple[Scope, str], int] = {}
        texts = []
        for word in self.words:
            if isinstance(word, str):
                texts.append(word)
                continue
            (name, *attributes), owner = word.parts, word.scope.owner(word.parts[0])
            how = owner.bound[name] if owner else None
            if isinstance(how, list):
                found = [code.resolve([*s.split("."), *attributes], word.optional) for s in how]
            elif owner:
                if how == VARIABLE:
                    name = f"${numbers.setdefault((owner, name), len(numbers))}"
                found = [(".".join([name, *attributes]), [])]
            else:
                known = name in word.scope.bound or hasattr(builtins, name)
                found = [code.inside(self.module, word.parts, word.optional, known)]
            for text, units in found:
                texts.append(text)
                references += units
        return " ".join(texts)

    def write(self, value: object) -> None:
        if isinstance(value, ast.AST):
            self.visit(value)
        elif isinstance(value, list):
            self.words.append("[")
            for item in value:
                if not _says_nothing(item):
                    self.write(item)
            self.words.append("]")
        else:
            self.words.append(repr(value))

    def generic_visit(self, node: ast.AST) -> None:
        self.words.append(f"({type(node).__name__}")
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                value = [item for item in value if not _says_nothing(item)]
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
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id, VARIABLE)
        self.words.append(Name(self.scope, (node.id,)))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if parts := _parts(node):
            self.words.append(Name(self.scope, parts))
        else:
            self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.write([":=", node.value])
        inner = self.scope
        while self.scope.kind == COMPREHENSION and self.scope.outer:
            self.scope = self.scope.outer
        self.write(node.target)
        self.scope = inner

    def visit_ExceptHandler(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name is not None:
            self.visit(ast.Name(node.name, ast.Store()))
        others = [value for name, value in ast.iter_fields(node) if name != "name"]
        self.write([type(node).__name__, *others])

    visit_MatchAs = visit_MatchStar = visit_ExceptHandler

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Counts where its names are used. Where it is at the top level, it has a condition."""
        for name, source in _imported(node, self.module.around):
            if self.scope.kind == CLASS:
                full = Scope(None, FUNCTION, {name: [source]})
                self.words.append(Name(full, (name,)))
            elif (before := self.scope.bound.get(name)) != GLOBAL:
                others = before if isinstance(before, list) else []
                self.scope.bound[name] = [*others, source]

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
            self.visit(ast.Assign(targets=[node.target], value=node.value))
        elif isinstance(node.target, ast.Name):
            self.bind(node.target.id, VARIABLE)

    def visit_Constant(self, node: ast.Constant) -> None:
        is_text = self.message and isinstance(node.value, str)
        self.words.append("text" if is_text else repr(node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        if self.message:
            self.words.append("text")
        else:
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        said = isinstance(node.exc, ast.Call)
        self.message += said
        self.write(["raise", node.exc])
        self.message -= said
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
        self.write(["call", node.func])
        parts = _parts(arguments[0]) if called == "getattr" else ()
        if parts and isinstance(arguments[1], ast.Constant):
            self.words.append(Name(self.scope, (*parts, str(arguments[1].value)), True))
            del arguments[:2]
        self.write([arguments, keywords])
        self.message -= said


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
