"""A digest of the code that a stage runs, so that a change of code re-runs just what it affects.

The digest covers the *definitions* (functions, classes, constants) that a stage's ``run`` reaches
by names and by attributes of modules, at any depth. Files are parsed, never imported: it takes
milliseconds and needs no torch. It names no module, so a definition can move. What cannot be
resolved counts whole: a module that is handed on as a value counts with all its definitions, and
top-level statements that do more than define count for all that reach a definition beside them.

It is in ``definitions`` what of a definition counts. One that nothing names counts for nothing: so
none may enter itself in a table, by a decorator for instance.

A plug-in that a stage loads by its name is no reference that one can see: pass it as well, as in
``digest("mamushi.stages.score", "mamushi.selection.selectors.mamushi")``.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mamushi.registry import ENTRIES, FOLDERS
from mamushi.running.definitions import Module, Reference, Writer

PACKAGE = Path(__file__).parents[1]
SILENT = ("errors", "cli", "running")
"""Modules, and rooms of them, that change what a user reads, or who computes when and where; never
what comes out."""
STAGES = "stages"
ENTERED: Mapping[str, Sequence[str]] = {
    STAGES: ("run",),
    **{folder: ENTRIES[kind] for kind, folder in FOLDERS.items()},
}
"""Folder -> the definitions by which the program enters its modules."""
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
        """Return the digest of a unit's normal form, and the units that it refers to, in order."""
        if unit not in self._forms:
            module = self.module(unit.module)
            assert module is not None
            folder = module.name.split(".")[1:-1]
            text, references = "", [Unit(module.name, name) for name in sorted(module.definitions)]
            if unit.name != WHOLE:
                nodes = module.effects if unit.name == EFFECTS else module.definitions[unit.name]
                annotated = folder == [STAGES] and unit.name in ENTERED[STAGES]
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
            text, found = self.resolve([*source.split("."), *word.parts[1:]], word.optional)
            texts.append(text)
            units += found
        if not word.sources:
            known = word.known or hasattr(builtins, word.parts[0])
            text, found = self.inside(module, word.parts, word.optional, known)
            texts.append(text)
            units += found

    def resolve(self, parts: Sequence[str], optional: bool) -> tuple[str, list[Unit]]:
        """Return a full name as it is written, and the units that it refers to.

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
        """Resolve a name as the top level of a module knows it, unless it is ``known``."""
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
        if not (texts or optional or known or head in module.typing or head.startswith("__")):
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
            path = self.package.joinpath(*rest)
            files = [path / "__init__.py", *([path.with_suffix(".py")] if rest else [])]
            file = next((each for each in files if each.is_file()), None)
            found = None
            if head == self.package.name and file is not None:
                found = Module(name, name if file == files[0] else name.rpartition(".")[0])
                found.read(ast.parse(file.read_bytes(), filename=str(file)).body)
            self._modules[name] = found
        return self._modules[name]
