"""A command answers at once: what is heavy is imported only where it is used."""

import sys

from mamushi.cli import commands
from tests.support.workflow import ROOT, output_of

HEAVY = {
    *("accelerate", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "seaborn"),
    *("sklearn", "tokenizers", "torch", "transformers"),
}
PYTHON_ALONE = 320
"""Modules that may be loaded to read a command line; Python itself loads a hundred, and
pydantic forty."""


def loaded_by(program: str, *words: str) -> list[str]:
    """Run a program and return the modules that it has loaded at its end."""
    program += "\nimport sys\nprint('\\nloaded', *sys.modules)"
    said = output_of(sys.executable, "-c", program, *words, cwd=ROOT / "workflow")
    return said.rpartition("\nloaded ")[2].split()


READ_BY_ROOMS = {"kind": "table", "forget": {"like": ""}, "windows": {"words": 9}, "answers": "a"}


def test_help_imports_nothing_heavy() -> None:
    """Nor does a dry run when it asks which rooms read a table."""
    program = (
        "import sys\n"
        "from mamushi.cli import main\n"
        "for line in sys.argv[1:]:\n"
        "    assert main([*line.split(), '--help']) == 0\n"
        "from mamushi.registry import reading_modules\n"
        f"assert len(reading_modules({READ_BY_ROOMS})) == 3"
    )
    assert not HEAVY & {*loaded_by(program, *commands())}
    assert len(loaded_by(program, "")) < PYTHON_ALONE
