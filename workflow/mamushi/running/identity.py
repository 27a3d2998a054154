"""A digest of the code that a stage runs, so that a change of code re-runs just what it affects.

The digest covers the *definitions* (functions, classes, constants) that a stage reaches
by names and by attributes of modules, at any depth. Files are parsed, never imported: it takes
milliseconds and needs no torch. It names no module, so a definition can move. What cannot be
resolved counts whole: a module that is handed on as a value counts with all its definitions, and
top-level statements that do more than define count for all that reach a definition beside them.
What a user reads does not count (docstrings, comments, error messages, help texts, meanings of
columns), nor do annotations that nothing reads at run time.

A definition that nothing names counts for nothing: so none may enter itself in a table, by
a decorator for instance. A plug-in that a stage loads by its name is no reference that one can see:
pass it as well, as in ``digest(stage.entry("score"), "mamushi.selection.selectors.mamushi")``.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.io.columns import signature
from mamushi.registry import ENTRIES, FOLDERS

PACKAGE = Path(__file__).parents[1]
SILENT = ("errors", "cli", "running")
"""Modules, and rooms of them, that change what a user reads, or who computes when and where; never
what comes out."""
STAGES = "stages"
ENTERED: Mapping[str, Sequence[str]] = {folder: ENTRIES[kind] for kind, folder in FOLDERS.items()}
"""Folder -> the definitions by which the program enters its modules."""
WHOLE, EFFECTS = "*", ""


@cache
def digest(*names: str, package: Path = PACKAGE) -> str:
    """16 hexadecimal digits for the definitions that ``names`` reach. A name is that of a module,
    which stands for what the program asks of it (the entries of a plug-in, else all its
    definitions), or that of one definition in a module. Raises ``ValueError`` for a name that is
    neither."""
    code = _code(package)
    found = sorted(code.digest(unit) for name in names for unit in code.entries(name))
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


class Unit(NamedTuple):
    """A definition; or all those of a module (``WHOLE``), or its other statements (``EFFECTS``)."""

    module: str
    name: str


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
        """Return the units that a name stands for. Raises ``ValueError`` for an unknown one."""
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
        """Return the digest of all that a unit reaches. Units are numbered in the order in which
        they are first referred to: so it tells apart two definitions of one name, and names no
        module."""
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
        """Return the digest of a unit's normal form, and the units that it refers to, in order."""
        if unit not in self._forms:
            module = self.module(unit.module)
            assert module is not None
            folder = module.name.split(".")[1:-1]
            text, references = "", [Unit(module.name, name) for name in sorted(module.definitions)]
            if unit.name != WHOLE:
                nodes = module.effects if unit.name == EFFECTS else module.definitions[unit.name]
                annotated = folder == [STAGES]
                texts: list[str] = []
                references = []
                for node in nodes:
                    for word in Writer(module, node, annotated).words:
                        self._link(module, word, texts, references)
                text = " ".join(texts)
            # What importing the module runs, and before it the packages around it.
            parts = module.name.split(".") if unit.name != EFFECTS else []
            for outer in (self.module(".".join(parts[: i + 1])) for i in range(len(parts))):
                if outer is not None and outer.effects:
                    references.append(Unit(outer.name, EFFECTS))
            self._forms[unit] = hashlib.sha256(text.encode()).digest(), references
        return self._forms[unit]

    def _link(
        self, module: Module, word: str | Reference, texts: list[str], units: list[Unit]
    ) -> None:
        """Add a word of a normal form with its name resolved, and the units that it refers to."""
        if isinstance(word, str):
            texts.append(word)
            return
        for source in word.sources:
            text, found = self.resolve([*source.split("."), *word.parts[1:]])
            texts.append(text)
            units += found
        if not word.sources:
            text, found = self.inside(module, word.parts, hasattr(builtins, word.parts[0]))
            texts.append(text)
            units += found

    def resolve(self, parts: Sequence[str], optional: bool = False) -> tuple[str, list[Unit]]:
        """Return a full name as it is written, and the units that it refers to: what a module of
        the package lacks is nothing if ``optional``, else all of the module."""
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
        self, module: Module, parts: Sequence[str], optional: bool
    ) -> tuple[str, list[Unit]]:
        """Resolve a name as the top level of a module knows it, which may lack it if
        ``optional``."""
        head, texts, units = parts[0], [], []
        if head in module.definitions:
            texts.append(f"@{'.'.join(parts)}")
            units.append(Unit(module.name, head))
        sources = module.imports.get(head, ())
        if not texts and not sources:
            sources = [f"{star}.{head}" for star in module.stars if self._has(star, head)]
        for source in sources:
            text, found = self.resolve([*source.split("."), *parts[1:]], optional)
            texts.append(text)
            units += found
        if not (texts or optional or head in module.typing or head.startswith("__")):
            units = [Unit(module.name, WHOLE)]
        return "|".join(texts) or ".".join(parts), units

    def _has(self, name: str, head: str) -> bool:
        """Return whether a star of this module would import the name; of a foreign one it may."""
        module = self.module(name)
        if module is None or head in module.definitions or head in module.imports:
            return module is not None or name.partition(".")[0] != self.package.name
        return any(self._has(star, head) for star in module.stars)

    def module(self, name: str) -> Module | None:
        """Return a module of the package by its dotted name, None for anything else."""
        if name not in self._modules:
            head, *rest = name.split(".")
            path = self.package.parent.joinpath(head, *rest)
            files = [path / "__init__.py", *([path.with_suffix(".py")] if rest else [])]
            file = next((each for each in files if each.is_file()), None)
            found = None
            ours = (self.package.name, f"{self.package.name}_extras")
            if head in ours and file is not None:
                found = Module(name, name if file == files[0] else name.rpartition(".")[0])
                found.read(ast.parse(file.read_bytes(), filename=str(file)).body)
            self._modules[name] = found
        return self._modules[name]


# One file ----------------------------------------------------------------------------------------

NOT_COUNTED = {"__version__", "__all__"}
HELP, MESSAGE = {"help", "description", "metavar"}, {"do", "where"}
OPTIONS = {"reads", "writes", "option"}
"""What declares an option of a stage, with its help text first."""
SOURCE = "setting"
"""What declares where a setting comes from: the value itself is what counts."""
TABLES = {"table", "group"}
"""What declares the columns of a table, with their meanings."""
TOP, CLASS, FUNCTION = "top", "class", "function"
DEFINING = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CALLABLE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


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
                seen = (_imported(each, self.package) for each in node.body)
                self.typing |= {name for names in seen for name, _ in names}
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


class Writer:
    """Writes a definition as text: its syntax tree in order, without positions. ``ast.dump`` would
    do for most of it, but writes empty fields as well, and those differ between versions of Python:
    an upgrade must not re-run a grid. A name that the module defines counts as a reference to that,
    also where a local variable hides it."""

    def __init__(self, module: Module, node: ast.AST, annotated: bool = False) -> None:
        """``annotated``: annotations of a function with settings are read at run time."""
        self.annotated = annotated
        self.place = TOP
        self.words: list[str | Reference] = []
        self.in_message = self.in_table = False
        self.imports: dict[str, list[str]] = {}
        inner = list(ast.walk(node))
        for each in inner:
            for name, source in _imported(each, module.package):
                self.imports.setdefault(name, []).append(source)
        bound = _stored(inner) | {each.name for each in inner if isinstance(each, DEFINING)}
        bound |= {each.arg for each in inner if isinstance(each, ast.arg)}
        self.local = bound - {*self.imports, *module.definitions, *module.imports}
        own = ast.iter_child_nodes(node.args) if isinstance(node, CALLABLE) else ()
        self.parameters = {each.arg for each in own if isinstance(each, ast.arg)}
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
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                value = [each for each in value if not _is_silent(each)]
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
                self.words.append(name)
                self.write(value)
        self.words.append(")")

    def refer(self, parts: tuple[str, ...]) -> None:
        """Write a name with its attributes: a local one as it is, else as a reference."""
        name = parts[0]
        if name in self.local or (self.place == FUNCTION and name in self.parameters):
            self.words.append(".".join(parts))
        else:
            self.words.append(Reference(parts, tuple(self.imports.get(name, ()))))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.refer((node.id,))
        else:
            self.words.append(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if parts := _parts(node):
            self.refer(parts)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Count an import where its names are used; at the top level it has a condition."""
        if self.place == TOP:
            self.words += [Reference((name,), (self.imports[name][0],)) for name in self.imports]

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        given = node.args
        kinds = [given.posonlyargs, given.args, given.kwonlyargs]
        kinds += [[each] if each else [] for each in (given.vararg, given.kwarg)]
        self.write([type(node).__name__, given.defaults, given.kw_defaults])
        if not isinstance(node, ast.Lambda):
            self.write([node.name, node.decorator_list])
            has_settings = any(each.arg == "settings" for kind in kinds for each in kind)
            if self.annotated and has_settings and self.place == TOP:
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

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else None
        before = self.in_message, self.in_table
        self.in_message |= called == "UserError"
        self.in_table |= called in TABLES
        ignored = MESSAGE if self.in_message else set()
        keywords = [
            each
            for each in node.keywords
            if each.arg not in ignored and not (each.arg in HELP and _is_text(each.value))
        ]
        arguments = list(node.args)
        if called == SOURCE or (called in OPTIONS and arguments and _is_text(arguments[0])):
            del arguments[0]
        self.write(["call", node.func])
        self.write([arguments, keywords])
        self.in_message, self.in_table = before


def _is_silent(node: object) -> bool:
    """Return whether a statement is a docstring or ``pass``."""
    value = node.value if isinstance(node, ast.Expr) else None
    text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return text or isinstance(node, ast.Pass)


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
