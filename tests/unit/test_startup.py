"""A command answers at once: what is heavy is imported only where it is used."""

from __future__ import annotations

import subprocess
import sys

from mamushi.cli import commands
from mamushi.running.stage import stages
from tests.support.workflow import ROOT

HEAVY = {
    *("accelerate", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "seaborn"),
    *("sklearn", "tokenizers", "torch", "transformers"),
}
PYTHON_ALONE = 260
"""Modules that may be loaded to read a command line; Python itself loads a hundred."""


def loaded_by(program: str, *words: str) -> list[str]:
    """Run a program and return the modules that it has loaded at its end."""
    process = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint('\\nloaded', *sys.modules)", *words],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT / "workflow",
    )
    return process.stdout.rpartition("\nloaded ")[2].split()


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from mamushi.cli import main\n"
        "for line in sys.argv[1:]:\n"
        "    try:\n        main([*line.split(), '--help'])\n"
        "    except SystemExit as end:\n        assert not end.code"
    )
    lines = [*(f"stage {name}" for name in stages()), *commands(), "stage"]
    assert not HEAVY & {*loaded_by(program, *lines)}
    assert len(loaded_by(program, "")) < PYTHON_ALONE


def test_a_training_loads_little_beside_the_library_of_its_model() -> None:
    names = ("loading", "perplexity", "sharding", "tokens", "training")
    modules = ["mamushi.stages.train", *(f"mamushi.lm.{name}" for name in names)]
    floor = "from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel"
    extra = {*loaded_by(f"{floor}\nimport {', '.join(modules)}")} - {*loaded_by(floor)}
    allowed = {"annotated_types", "cloudpickle", "mamushi", "msgspec", "pyarrow"}
    assert {name.partition(".")[0] for name in extra} <= allowed
    assert len(extra) < 100
