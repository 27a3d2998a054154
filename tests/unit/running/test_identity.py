"""The digest of the code that a stage runs: what changes it and what does not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mamushi.running.identity import PACKAGE, closure, digest

FILES = {
    "__init__.py": '"""A package."""\n__version__ = "1"\n',
    "errors.py": "class UserError(Exception):\n    pass\n",
    "progress.py": "from mamushi.unrelated import four\n",
    "paths.py": "DATA = 'results/data'\n",
    "unrelated.py": "def four():\n    return 4\n",
    "data/__init__.py": "",
    "data/table.py": "from mamushi import paths\n\n\ndef load():\n    return paths.DATA\n",
    "data/hidden.py": "ONE = 1\n",
    "stages/__init__.py": "",
    "stages/examples.py": (
        '"""The stage."""\n'
        "import argparse\n"
        "from mamushi.errors import UserError\n"
        "from .. import progress\n"
        "from ..data.table import load\n\n\n"
        "def run(args):\n"
        '    """Run it."""\n'
        "    import mamushi.data.hidden as hidden\n\n"
        "    return load(), hidden.ONE + 2  # three\n"
    ),
}
STAGE = "mamushi.stages.examples"


def made(folder: Path, **changes: str) -> Path:
    """A package of ``FILES`` in a folder of its own, some with other content."""
    package = folder / f"copy{len(list(folder.iterdir()))}" / "mamushi"
    for name, text in {**FILES, **changes}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    return package


def of(folder: Path, name: str = STAGE, **changes: str) -> str:
    return digest(name, package=made(folder, **changes))


def test_the_closure_has_what_is_imported_anywhere(tmp_path: Path) -> None:
    assert closure(STAGE, package=made(tmp_path)) == {
        "mamushi",
        "mamushi.stages",
        STAGE,
        "mamushi.data",
        "mamushi.data.table",
        "mamushi.data.hidden",
        "mamushi.artifacts.paths",
    }


def test_it_is_sixteen_digits_and_does_not_depend_on_the_place(tmp_path: Path) -> None:
    first = of(tmp_path)
    assert len(first) == 16
    assert int(first, 16) >= 0
    assert of(tmp_path) == first


RUN = FILES["stages/examples.py"]
NOTHING = {
    "a comment": ("stages/examples.py", RUN.replace("# three", "# 3")),
    "a docstring": ("stages/examples.py", RUN.replace("Run it.", "Run the stage.")),
    "a docstring less": ("stages/examples.py", RUN.replace('    """Run it."""\n', "")),
    "a docstring more": ("data/__init__.py", '"""Data."""\n'),
    "formatting": ("stages/examples.py", RUN.replace("hidden.ONE + 2", "(hidden.ONE\n  + 2)")),
    "the quotes": ("paths.py", 'DATA = "results/data"\n'),
    "the version": ("__init__.py", '"""A package."""\n__version__ = "2"\n'),
    "a message": ("errors.py", "class UserError(Exception):\n    line = 2\n"),
    "a module behind a message": ("unrelated.py", "def four():\n    return 5\n"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_changes_nothing(tmp_path: Path, name: str) -> None:
    file, text = NOTHING[name]
    assert text != FILES[file]
    assert of(tmp_path, **{file: text}) == of(tmp_path)


SOMETHING = {
    "the stage itself": ("stages/examples.py", RUN.replace("+ 2", "+ 3")),
    "the order of statements": ("data/hidden.py", "TWO = 2\nONE = 1\n"),
    "an import of an import": ("paths.py", "DATA = 'results/texts'\n"),
    "an import inside a function": ("data/hidden.py", "ONE = 11\n"),
    "a package around a module": ("data/__init__.py", "import os\n"),
    "the type of a number": ("data/hidden.py", "ONE = 1.0\n"),
    "a name": ("data/hidden.py", "One = 1\n"),
    "a decorator": (
        "data/table.py",
        FILES["data/table.py"].replace("def load", "@staticmethod\ndef load"),
    ),
}


@pytest.mark.parametrize("name", SOMETHING)
def test_what_changes_the_digest(tmp_path: Path, name: str) -> None:
    file, text = SOMETHING[name]
    assert text != FILES[file]
    assert of(tmp_path, **{file: text}) != of(tmp_path)


def test_other_stages_keep_their_digest(tmp_path: Path) -> None:
    change = {"stages/examples.py": RUN.replace("+ 2", "+ 3")}
    assert of(tmp_path, "mamushi.data.table", **change) == of(tmp_path, "mamushi.data.table")


def test_a_plugin_counts_where_it_is_named(tmp_path: Path) -> None:
    package = made(tmp_path)
    assert digest(STAGE, "mamushi.unrelated", package=package) != digest(STAGE, package=package)
    assert digest("mamushi.unrelated", STAGE, package=package) == digest(
        STAGE, "mamushi.unrelated", package=package
    )


@pytest.mark.parametrize("name", ["mamushi.none", "numpy", "mamushi.stages.examples.run"])
def test_a_name_that_is_no_module(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no module"):
        of(tmp_path, name)


def names() -> list[str]:
    files = [path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py")]
    return [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]


def test_stages_depend_on_their_own_rooms() -> None:
    """Editing a figure must not train 2,160 models again."""
    trained = closure("mamushi.stages.finetune")
    assert "mamushi.lm.finetune" in trained
    rooms = (
        "mamushi.figures",
        "mamushi.evaluation",
        "mamushi.selection",
        "mamushi.configuration.complete",
    )
    assert not [name for name in trained if name.startswith(rooms)]
    drawn = closure("mamushi.stages.figure")
    assert not [name for name in drawn if name.startswith(("mamushi.lm", "mamushi.selection"))]


def test_the_whole_package_takes_a_moment() -> None:
    from mamushi.running import identity as module

    for cached in (module.digest, module._tree, module._imports, module._digest):
        cached.cache_clear()
    began = time.process_time()
    digest(*names())
    first = time.process_time() - began
    assert first < 1.5  # about 0.2 s; slow machines differ
    began = time.process_time()
    digest(*names())
    assert time.process_time() - began < first / 2
