"""Names say what they stand for: no empty words, one public name for one thing, verbs first.

names.json lists what is left of older code. Its counts may only shrink.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("workflow", "studies", "benchmarks")
ALLOWED: dict[str, dict[str, int]] = json.loads(
    Path(__file__).with_name("names.json").read_text(encoding="utf-8")
)

EMPTY = frozenset(
    re.findall(
        r"\w+",
        "about again asked each found given got had has how it known made more one other others "
        "own said stuff such that there these thing things this those told wanted way what",
    )
)
"""Words that say nothing about a value, when a name is made of one of them alone."""

INTERFACES = frozenset(
    {
        "arguments",
        "draw",
        "edit",
        "load",
        "loss",
        "main",
        "run",
        "score",
        "score_tokens",
        "Settings",
    }
    | {"GPU", "VERSION"}
)
"""Names that plug-ins, commands and stages have by contract."""
OF_EACH_ROOM = frozenset({"__main__", "adds", "schemas", "settings", "stages"})
"""Modules that any room may have."""
NO_VERB = frozenset(
    re.findall(
        r"\w+",
        "a all an any as at by every for from how if in its no of one only that the these this "
        "those what when where whether which who whose with",
    )
)
"""Words with which no sentence about what a function does begins."""

SNAKEMAKE_NAMES = re.compile(r"\b(?:def|for|lambda) +(\w+)|\b(\w+) *=(?!=)")


def python_files() -> Iterator[Path]:
    """Yield all files of Python source, in order."""
    for place in PLACES:
        yield from sorted((ROOT / place).rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    """Parse a file."""
    return ast.parse(path.read_bytes())


def assigned_names(tree: ast.AST) -> Iterator[str]:
    """Yield each variable, parameter, attribute and function at each place that assigns it."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.alias(asname=str(name)):
                yield name


def empty_words() -> dict[str, Counter[str]]:
    """Count the empty names of each file of Python or rules."""
    counts = {}
    for path in python_files():
        counts[path] = Counter(assigned_names(parsed(path)))
    rules = sorted((ROOT / "workflow").rglob("*.smk"))
    for path in [*rules, ROOT / "workflow/Snakefile"]:
        matches = SNAKEMAKE_NAMES.findall(path.read_text(encoding="utf-8"))
        counts[path] = Counter(first or second for first, second in matches)
    return {
        str(path.relative_to(ROOT)): empty
        for path, names in counts.items()
        if (empty := Counter({n: k for n, k in names.items() if n.strip("_") in EMPTY}))
    }


def public_names(tree: ast.Module) -> set[str]:
    """Return the functions, classes and constants of a module that others may import."""
    names = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")} - INTERFACES


def declares_plugin(path: Path) -> bool:
    """Tell whether a module is a plug-in: named by users, with declarations that each may have."""
    return path.parent.name in {"loaders", "selectors", "unlearners", "gallery"}


def shared_names() -> dict[str, list[str]]:
    """Return public names, and module names, that more than one module of the package has."""
    modules = defaultdict(list)
    for path in sorted((ROOT / "workflow").rglob("*.py")):
        where = str(path.relative_to(ROOT / "workflow"))
        if path.stem not in {"__init__", *OF_EACH_ROOM} and not declares_plugin(path):
            modules[f"module {path.stem}"].append(where)
        # What an extra adds, and what a plug-in declares, has the names of their interface.
        for name in public_names(parsed(path)) if path.stem != "adds" else ():
            if not (declares_plugin(path) and name.isupper()):
                modules[name].append(where)
    return {name: places for name, places in sorted(modules.items()) if len(places) > 1}


def without_verb() -> dict[str, list[str]]:
    """Return the public functions of each file whose docstring opens with no verb."""
    functions = defaultdict(list)
    for path in sorted((ROOT / "workflow").rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                first = ((ast.get_docstring(node) or "Has none").split() or ["the"])[0]
                if first.lower().strip("`,.") in NO_VERB or not first[0].isupper():
                    functions[str(path.relative_to(ROOT))].append(node.name)
    return dict(functions)


RULES: dict[str, Callable[[], dict[str, Counter[str]] | dict[str, list[str]]]] = {
    "empty_words": empty_words,
    "shared_names": shared_names,
    "without_verb": without_verb,
}


def offences(rule: str) -> dict[str, int]:
    """Count what breaks a rule, by file or name."""
    by_place = RULES[rule]().items()
    return {k: v.total() if isinstance(v, Counter) else len(v) for k, v in by_place}


@pytest.mark.parametrize("rule", RULES)
def test_no_new_name_breaks_the_rule(rule: str) -> None:
    allowed, offenders = ALLOWED[rule], RULES[rule]()
    counts = offences(rule)
    assert not {k: offenders[k] for k, n in counts.items() if n > allowed.get(k, 0)}


def test_rules_see_what_they_are_about() -> None:
    tree = ast.parse("def f(each, *, own=1):\n    self.found = [x for it in each]\nA: int = 1\n")
    names = Counter(assigned_names(tree))
    assert {*names} & EMPTY == {"each", "own", "found", "it"}
    assert public_names(tree) == {"f", "A"}
    assert SNAKEMAKE_NAMES.findall("own = lambda each: each == 1") == [("", "own"), ("each", "")]
