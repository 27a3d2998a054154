"""The server of ``mamushi_cluster.warm`` for all commands of a test process, Snakemake included.

A small run of the workflow is dozens of commands, of which each imports libraries for four seconds
and computes for one. ``site/sitecustomize.py`` hands them over: any Python program, before it has
begun.

    python -m tests.support.warm.server SOCKET      ends with its standard input
"""

import importlib.util
import runpy
import sys
from pathlib import Path

from transformers.conversion_mapping import get_checkpoint_conversion_mapping

FILE = Path(__file__).parents[3] / "workflow" / "mamushi_cluster" / "warm.py"
LIBRARIES = (
    *("jsonschema", "matplotlib.figure", "pyarrow.csv", "snakemake.cli"),
    *("sklearn.linear_model", "sklearn.neural_network", "transformers.generation"),
    "transformers.models.llama.modeling_llama",
)


def main(path: str) -> None:
    """Serve until standard input ends. The package is not imported: each command does that."""
    spec = importlib.util.spec_from_file_location("warm_server", FILE)
    assert spec is not None and spec.loader is not None
    warm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(warm)
    get_checkpoint_conversion_mapping("llama")
    warm.serve(path, [*warm.LIBRARIES, *LIBRARIES], run)


def run(words: list[str]) -> None:
    """Run ``python`` with these words."""
    sys.orig_argv[1:] = words
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
