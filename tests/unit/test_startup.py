"""A command answers at once: what is heavy is imported only where it is used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.cli import commands
from mamushi.running.stage import stages
from tests.support.grid_files import GRID, write_results
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


def of_a_command(*words: str) -> set[str]:
    """Run a command of the package and return the modules that it has loaded."""
    program = "import sys\nfrom mamushi.cli import main\nassert main(sys.argv[1:]) == 0"
    return set(loaded_by(program, *words))


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


def test_a_stage_of_tables_loads_no_model(tmp_path: Path) -> None:
    grid = {**GRID, "datasets": ["alpha"], "models": ["small"]}
    write_results(tmp_path, grid)
    settings = json.dumps({"grid": grid, "ranked": GRID["selectors"]})
    words = ["tables", "--root", str(tmp_path), "--out-folder", str(tmp_path / "tables")]
    modules = of_a_command(*words, "--settings", settings)
    assert "pyarrow" in modules and "torch" not in modules
    modules = {*loaded_by("from mamushi.selection import metrics\nmetrics.auc_ends(0.9, 0.01, 50)")}
    assert "scipy.special" in modules and "scipy.stats" not in modules


def test_a_configuration_is_written_without_torch(tmp_path: Path) -> None:
    table, vectors, out = (str(tmp_path / name) for name in ("t.csv", "v.parquet", "mine.yaml"))
    Path(table).write_text("\n".join(["id,text,kind", *(f"c{i},a {i},{i % 2}" for i in range(40))]))
    numbers = {"id": [f"c{i}" for i in range(40)], "vector": [[0.5, i] for i in range(40)]}
    pq.write_table(pa.table(numbers), vectors)
    words = ["init", table, "--text", "text", "--id", "id", "--forget", "kind == 1"]
    assert "torch" not in of_a_command(*words, "--embeddings", vectors, "--out", out)


def test_a_training_loads_little_beside_the_library_of_its_model() -> None:
    names = ("loading", "perplexity", "sharding", "tokens", "training")
    modules = ["mamushi.stages.train", *(f"mamushi.lm.{name}" for name in names)]
    floor = "from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel"
    extra = {*loaded_by(f"{floor}\nimport {', '.join(modules)}")} - {*loaded_by(floor)}
    allowed = {"annotated_types", "cloudpickle", "mamushi", "msgspec", "pyarrow"}
    assert {name.partition(".")[0] for name in extra} <= allowed
    assert len(extra) < 100
