"""The server of ``mamushi_cluster.warm`` for all commands of a test process, Snakemake included.

A small run of the workflow is dozens of commands, of which each imports libraries for four seconds
and computes for one. ``site/sitecustomize.py`` hands them over: any Python program, before it has
begun.

    python -m tests.support.warm.server SOCKET      ends with its standard input
"""

import importlib.util
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from mamushi_cluster.hooks import OF_JOBS
from tests.support.dry_runs import load_package

FILE = Path(__file__).parents[3] / "workflow" / "mamushi_cluster" / "warm.py"
LIBRARIES = (
    *("jsonschema", "matplotlib.figure", "pyarrow.csv", "smart_open", "snakemake.cli"),
    *("sklearn.linear_model", "sklearn.neural_network", "transformers.generation"),
    "transformers.models.llama.modeling_llama",
)


def main(path: str) -> None:
    """Serve until standard input ends."""
    spec = importlib.util.spec_from_file_location("warm_server", FILE)
    assert spec is not None and spec.loader is not None
    warm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(warm)
    load_package()
    warm.serve(path, [*warm.LIBRARIES, *LIBRARIES, *OF_JOBS], run)


def run(words: list[str]) -> None:
    """Run ``python`` with these words."""
    spec = PathFinder.find_spec("mamushi")
    if spec is not None and spec.origin != sys.modules["mamushi"].__file__:
        # Another one than the server's.
        for name in [name for name in sys.modules if name.startswith("mamushi")]:
            del sys.modules[name]
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
    # As Python ends a program that says nothing else.
    sys.exit()


if __name__ == "__main__":
    main(sys.argv[1])
