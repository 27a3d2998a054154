"""The digest of the code that a stage runs: what changes it and what does not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mamushi.running import identity
from mamushi.running.identity import digest

STAGE = "mamushi.stages.examples.run"
FILES = {
    "__init__.py": '__version__ = "1"\n',
    "errors.py": "class UserError(Exception):\n    line = 1\n",
    "running/__init__.py": "",
    "running/locks.py": "from mamushi.unused import four\n\ndef lock():\n    return four()\n",
    "unused.py": "def four():\n    return 4\n",
    "paths.py": "DATA = 'results/data'\n",
    "data/__init__.py": "import os\n",
    "data/numbers.py": "ONE = 1\nFIVE = 5\nSIX = 6\nTWO, THREE = 2, 3\nFOUR = 4\nFOUR += 0\n",
    "data/table.py": '''
import numpy as np
from mamushi import paths
from mamushi.data.shapes import Shape as Form, plain
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from mamushi.data.hints import Hint
else:
    SEEN = 1

def decorated(function):
    return function

class Base:
    size = 1

class Row(Base):
    kind: Form
    hint: Hint = None
    unread: int = 0
    paths: str = ""
    def read(self):
        return paths.DATA

DEFAULT = 5

def unread():
    return 1

@decorated
def load(texts, length=DEFAULT, *, seed: int = 0) -> Row:
    """Load them."""
    found = [text for text in texts if np.mean(text) > length]
    total = {}
    total[1] = SEEN
    try:
        total[0] = sum(found)
    except ValueError as error:
        raise ValueError(f"{texts}: no number") from error
    return plain(Row, found, total, sort=True)
''',
    "data/shapes.py": """
SIDES = 4
class Shape:
    edges: int
def plain(*args, sort):
    return [SIDES for SIDES in SIDES]
""",
    "data/hints.py": "class Hint:\n    pass\n",
    "data/methods.py": "def near():\n    return 1\ndef far():\n    return 2\n",
    "data/again.py": """
from mamushi.data.methods import near
from mamushi.data.stars import *
def star():
    return STAR
""",
    "data/whole.py": "def first():\n    return 1\ndef second():\n    return 2\n",
    "data/effects.py": """
from mamushi.data import switches
def effective():
    return 1
if switches.ON:
    def chosen():
        return 2
else:
    def chosen():
        return 3
""",
    "data/switches.py": "ON = True\n",
    "data/stars.py": "STAR = 1\n",
    "data/dynamic.py": """
def dynamic():
    global counted, later
    counted = 1
    return counted + later
def beside():
    global later
    later = 7
""",
    "selection/__init__.py": "",
    "selection/selectors/__init__.py": "",
    "selection/selectors/mine.py": """
SETTINGS = {"size": {"default": 1}}
BY_CHANCE = False
def score(pool, settings):
    return helped(pool)
def helped(pool):
    return pool
""",
    "stages/__init__.py": "",
    "stages/examples.py": '''"""The stage."""
import sys
from dataclasses import dataclass
import mamushi.data.methods
from mamushi import __version__
from mamushi.errors import UserError
from mamushi.running import locks
from ..data.table import load as read
from mamushi.data import again, dynamic

@dataclass
class Settings:
    size: int
    out: str = reads("what it reads", role="input")

HELP = "text"

def settings(config):
    return Settings(config, "out")

def reads(about, role):
    pass

def write(what, help=""):
    pass

def arguments(parser):
    parser.add_argument("--out", help="what to write")

def run(args, settings: Settings) -> None:
    """Run it."""
    import mamushi.data.numbers as numbers
    from mamushi.data import whole
    from mamushi.data.effects import chosen

    with locks.lock():
        value = numbers.ONE + 2  # three
    for name in args:
        value += mamushi.data.methods.near() + again.near()
    if args:
        print(f"skipped {value}", file=sys.stderr)
    choice = getattr(whole, value)
    if not value:
        raise UserError("no value", where=args, do="give one")
    assert args, "nothing"
    write(settings.size)
    match args:
        case {"what": matched}:
            write(matched)
    write(value, help="of the table")
    print("done")
    print("of", args, file=sys.stderr)
    failed = UserError("failed", do="try again")
    write(__version__, failed)
    if args:
        from mamushi.data.numbers import FIVE as which
    else:
        from mamushi.data.numbers import SIX as which
    write(which)
    def inner(left: int, right):
        nonlocal value
        value = left
        return [left for left in right]
    write(dynamic.dynamic() + again.star())
    return read(args), choice, numbers.TWO, numbers.FOUR, chosen, inner
''',
}


Change = tuple[str, str, str]
"""A file, a text in it (none: its end), and what stands there instead."""


def made(folder: Path, *changes: Change) -> Path:
    """A package of ``FILES`` in a folder of its own, with some of it changed."""
    files = dict(FILES)
    for name, old, new in changes:
        assert old in files[name], old
        files[name] = files[name].replace(old, new) if old else files[name] + new
    package = folder / f"copy{len(list(folder.iterdir()))}" / "mamushi"
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    return package


def of(folder: Path, *changes: Change, names: tuple[str, ...] = (STAGE,)) -> str:
    return digest(*names, package=made(folder, *changes))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the stage as it is."""
    return of(tmp_path_factory.mktemp("before"))


def test_it_is_sixteen_digits_and_does_not_depend_on_the_place(tmp_path: Path) -> None:
    first = of(tmp_path)
    assert len(first) == 16
    assert int(first, 16) >= 0
    assert of(tmp_path) == first


TABLE, RUN = "data/table.py", "stages/examples.py"
NOTHING: dict[str, Change] = {
    "a comment": (RUN, "# three", "# 3"),
    "a docstring": (RUN, "Run it.", "Run the stage."),
    "a docstring less": (RUN, '    """Run it."""\n', ""),
    "a docstring more": ("data/__init__.py", "", '"""Data."""\n'),
    "pass": (RUN, "    if not value:\n", "    pass\n    if not value:\n"),
    "formatting": (RUN, "numbers.ONE + 2", "(numbers.ONE\n  + 2)"),
    "quotes": ("paths.py", "'results/data'", '"results/data"'),
    "the version": ("__init__.py", '"1"', '"2"'),
    "what is offered": (TABLE, "", "__all__ = ['load']\n"),
    "an annotation": (TABLE, "seed: int", "seed: float"),
    "what is returned": (TABLE, " -> Row:", ":"),
    "the annotation of a variable": (TABLE, "total = {}", "total: dict[int, int] = {}"),
    "one without a value": (TABLE, "    total = {}", "    found: int\n    total = {}"),
    "the annotation of a constant": (TABLE, "DEFAULT = 5", "DEFAULT: int = 5"),
    "a message": (TABLE, "{texts}: no number", "not a {length}"),
    "a user's error": (RUN, '"no value", where=args, do="give one"', '"none"'),
    "a help text": (RUN, 'help="of the table"', 'help="another"'),
    "no help text": (RUN, ', help="of the table"', ""),
    "the class of errors": ("errors.py", "line = 1", "line = 2"),
    "who runs when": ("running/locks.py", "return four()", "return 5"),
    "what only that needs": ("unused.py", "4", "5"),
    "the alias of a module": (TABLE, "np", "num"),
    "what only a type checker sees": ("data/hints.py", "pass", "size = 1"),
    "an import": ("paths.py", "", "import os\n"),
    "the help text of an option": (RUN, "what it reads", "what is read"),
    "a longer one": (RUN, 'help="of the table"', 'help="of the " + "tables"'),
    "an error that is kept": (RUN, '"failed", do="try again"', '"lost"'),
    "the annotation of a nested function": (RUN, "left: int", "left: float"),
    "a function called like a field": (TABLE, "return 1", "return 2"),
    "options": (RUN, '"--out"', '"--to"'),
    "a constant that nothing uses": (RUN, 'HELP = "text"', "HELP = len([])"),
    "a function beside": ("data/methods.py", "return 2", "return 3"),
    "a function called like a parameter": (RUN, '"out")', '"to")'),
    "more definitions": (TABLE, "", "\nMORE = DEFAULT\ndef more(text):\n    return MORE\n"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_changes_nothing(tmp_path: Path, before: str, name: str) -> None:
    assert of(tmp_path, NOTHING[name]) == before


SOMETHING: dict[str, Change] = {
    "the stage itself": (RUN, "numbers.ONE + 2", "numbers.ONE + 3"),
    "a constant": ("paths.py", "results/data", "results/texts"),
    "the type of a number": ("data/numbers.py", "ONE = 1", "ONE = 1.0"),
    "one of two constants": ("data/numbers.py", "2, 3", "4, 3"),
    "a constant that is added to": ("data/numbers.py", "+= 0", "+= 1"),
    "either of two imports": ("data/numbers.py", "FIVE = 5", "FIVE = 6"),
    "or the other": ("data/numbers.py", "SIX = 6", "SIX = 7"),
    "what a type checker does not see": (TABLE, "SEEN = 1", "SEEN = 2"),
    "the order of statements": (RUN, "value = left\n        return", "return"),
    "a function by its module": ("data/methods.py", "return 1", "return 2"),
    "a decorator": (TABLE, "return function", "return None"),
    "no decorator": (TABLE, "@decorated\n", ""),
    "a base class": (TABLE, "size = 1", "size = 2"),
    "a method": (TABLE, "def read(self):", "def read(self, more):"),
    "a field": (TABLE, "kind: Form", "kind: int"),
    "the class of a field": ("data/shapes.py", "edges: int", "edges: float"),
    "a default": (TABLE, "DEFAULT = 5", "DEFAULT = 6"),
    "a parameter's name": (TABLE, "seed", "start"),
    "a keyword": (TABLE, "sort=True", "by=True"),
    "an external function": (TABLE, "np.mean", "np.median"),
    "the kind of an error": (TABLE, "raise ValueError", "raise KeyError"),
    "another variable": (TABLE, "plain(Row, found, total", "plain(Row, total, found"),
    "a module that is handed on": ("data/whole.py", "return 2", "return 3"),
    "what is only defined in it": ("data/whole.py", "", "NEW = 1\n"),
    "a definition under a condition": ("data/effects.py", "return 3", "return 4"),
    "the condition": ("data/switches.py", "ON = True", "ON = False"),
    "a statement that defines nothing": ("data/effects.py", "", "print(effective())\n"),
    "one of the package around": ("data/__init__.py", "", "os.umask(0)\n"),
    "what a star imports": ("data/stars.py", "STAR = 1", "STAR = 2"),
    "a name that cannot be resolved": ("data/dynamic.py", "later = 7", "later = 8"),
    "a global variable": ("data/dynamic.py", "global counted, later", "global later"),
    "what an option is": (RUN, '"input"', '"output"'),
    "the settings of run": (RUN, "size: int", "size: float"),
    "a variable of another scope": (RUN, "        nonlocal value\n", ""),
    "a nested function": (RUN, "value = left", "value = right"),
    "an iterable of its own": ("data/shapes.py", "SIDES = 4", "SIDES = 5"),
    "a text that is no message": (RUN, '"what"', '"that"'),
    "a text to stdout": (RUN, 'print("done")', 'print("ready")'),
}


@pytest.mark.parametrize("name", SOMETHING)
def test_what_changes_the_digest(tmp_path: Path, before: str, name: str) -> None:
    assert of(tmp_path, SOMETHING[name]) != before


MOVES: dict[str, list[Change]] = {
    "a constant": [
        ("paths.py", "DATA = 'results/data'\n", ""),
        ("unused.py", "", "DATA = 'results/data'\n"),
        (TABLE, "from mamushi import paths", "from mamushi import unused as files"),
        (TABLE, "paths.DATA", "files.DATA"),
    ],
    "a class": [
        ("data/shapes.py", "class Shape:\n    edges: int\n", ""),
        ("data/hints.py", "", "class Shape:\n    edges: int\n"),
        (TABLE, "from mamushi.data.shapes import Shape as Form, plain", ""),
        (TABLE, "import numpy as np", "import mamushi.data.hints\nimport numpy"),
        (TABLE, "np.mean", "numpy.mean"),
        (TABLE, "kind: Form", "kind: mamushi.data.hints.Shape"),
        (TABLE, "DEFAULT = 5", "DEFAULT = 5\nfrom .shapes import plain as flat"),
        (TABLE, "return plain(", "return flat("),
    ],
    "a function": [
        ("data/methods.py", "def near():\n    return 1\n", "from mamushi.unused import near\n"),
        ("unused.py", "", "def near():\n    return 1\n"),
    ],
    "a function with what it needs": [
        ("data/shapes.py", "SIDES = 4", '"""'),
        ("data/shapes.py", "SIDES]", 'SIDES]\n"""'),
        ("data/hints.py", "", FILES["data/shapes.py"]),
        (TABLE, "from mamushi.data.shapes", "from mamushi.data.hints"),
    ],
}


@pytest.mark.parametrize("name", MOVES)
def test_moving_a_definition_changes_nothing(tmp_path: Path, before: str, name: str) -> None:
    assert of(tmp_path, *MOVES[name]) == before


def test_two_definitions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Which of them is called counts, though both are reached and neither's module is named."""
    both = "from mamushi.{} import same as a\nfrom mamushi.{} import same as b\n"
    code = [("unused.py", "", "def same():\n    return 1\n")]
    code.append(("paths.py", "", "def same():\n    return 2\n"))
    call = (RUN, "return read(args), choice", "return a() - b(), choice")
    one = of(tmp_path, *code, call, (RUN, "import sys\n", both.format("unused", "paths")))
    other = of(tmp_path, *code, call, (RUN, "import sys\n", both.format("paths", "unused")))
    assert one != other


SELECTOR = "mamushi.selection.selectors.mine"


def test_a_plugin_counts_where_it_is_named_by_what_is_asked_of_it(tmp_path: Path) -> None:
    package = made(tmp_path)
    named = digest(STAGE, SELECTOR, package=package)
    assert named != digest(STAGE, package=package)
    assert named == digest(SELECTOR, STAGE, package=package)
    file = "selection/selectors/mine.py"
    settings: Change = (file, '{"default": 1}', '{"default": 2}')
    assert of(tmp_path, settings, names=(STAGE, SELECTOR)) == named
    for old, new in {"BY_CHANCE = False": "BY_CHANCE = True", "return pool": "return 1"}.items():
        assert of(tmp_path, (file, old, new)) == of(tmp_path)
        assert of(tmp_path, (file, old, new), names=(STAGE, SELECTOR)) != named


def test_a_definition_can_be_named(tmp_path: Path) -> None:
    near, both = "mamushi.data.methods.near", "mamushi.data.methods"
    other: Change = ("data/methods.py", "return 2", "return 3")
    assert of(tmp_path, other, names=(near,)) == of(tmp_path, names=(near,))
    assert of(tmp_path, other, names=(both,)) != of(tmp_path, names=(both,))


@pytest.mark.parametrize("name", ["mamushi.none", "numpy", "mamushi.data.methods.none", "none"])
def test_a_name_of_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no module"):
        of(tmp_path, names=(name,))


def test_meanings_of_columns_change_nothing() -> None:
    declared = 'T = table("""scores: {}\nid string\nrank int64?: {}{}""")'
    forms = []
    for words in (("A", "Place", ""), ("B", "Its place.", ""), ("A", "Place", "\nfold int16")):
        module = identity.Module("mamushi.tables", "mamushi")
        module.read(ast.parse(declared.format(*words)).body)
        forms.append(identity.Writer(module, module.definitions["T"][0]).words)
    assert forms[0] == forms[1] != forms[2]
