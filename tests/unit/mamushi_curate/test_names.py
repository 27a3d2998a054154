"""The names that the package offers to Python, and what importing it takes."""

import subprocess
import sys

import pytest

import mamushi
from tests.support.workflow import ROOT


def test_importing_the_package_takes_nothing_heavy_and_it_has_no_other_names() -> None:
    program = "import sys, mamushi\nprint(*sys.modules)\nprint(mamushi.rank.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT / "workflow",
    )
    loaded, module = done.stdout.splitlines()
    assert module == "mamushi_curate.ranking"
    heavy = {"numpy", "pandas", "pyarrow", "torch", "mamushi_curate.ranking"}
    assert not heavy & {*loaded.split()}
    with pytest.raises(AttributeError, match="has no attribute 'rnak'"):
        _ = mamushi.rnak
