"""A stage's command answers at once: what is heavy is imported only where it is used."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.cli import commands
from mamushi.running.identity import PACKAGE
from mamushi.running.stage import stages
from tests.support.grid_files import GRID, write_results
from tests.support.imports import MODULES as OURS
from tests.support.imports import imported

HEAVY = (
    *("accelerate", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "sklearn"),
    *("tokenizers", "torch", "transformers"),
)
# What Python itself loads to read a command line is a hundred modules.
MODULES = 260


def test_help_imports_nothing_heavy() -> None:
    """Of any command or stage, one after another in one process; and that of all of them little."""
    program = (
        "import sys\n"
        "from mamushi.cli import main\n"
        "for line in sys.argv[1:]:\n"
        "    try:\n        main([*line.split(), '--help'])\n"
        "    except SystemExit as end:\n        assert not end.code\n"
        "print('\\nloaded', *sys.modules)\n"
    )
    named = [*(f"stage {name}" for name in stages()), *commands(), "stage"]
    about, _, loaded = _printed("-c", program, *named).rpartition("\nloaded ")
    usages = [line.split() for line in about.splitlines() if line.startswith("usage: mamushi")]
    assert len(usages) == len(named)
    assert not set(HEAVY) & set(loaded.split())
    alone = _printed("-c", program, "").rpartition("\nloaded ")[2]
    assert len(alone.split()) < MODULES


def test_a_stage_of_tables_imports_neither_pandas_nor_the_whole_of_scipy(tmp_path: Path) -> None:
    """Which took more than all else that it does, a dozen times in a ranking of vectors."""
    write_results(tmp_path, {**GRID, "datasets": ["alpha"], "models": ["small"]})
    program = (
        "import sys\n"
        "from mamushi.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "import pyarrow as pa\n"
        "pa.table({'a': [[1.5]]})\n"
        "print('loaded', *sys.modules)\n"
        "import pandas\n"
        "assert list(pa.table({'a': [1]}).to_pandas().a) == [1]\n"
    )
    one = {**GRID, "datasets": ["alpha"], "models": ["small"]}
    words = ["tables", "--root", str(tmp_path), "--out-folder", str(tmp_path / "tables")]
    given = {"grid": one, "ranked": GRID["selectors"]}
    printed = _printed("-c", program, *words, "--settings", json.dumps(given))
    loaded = set(printed.rpartition("loaded ")[2].split())
    assert "pyarrow" in loaded and not {"pandas", "torch"} & loaded
    needed = "from mamushi.selection import metrics\nfrom mamushi.evidence import dependence\n"
    used = "metrics.auc_ends(0.9, 0.01, 50)\nimport sys\nprint('loaded', *sys.modules)"
    loaded = set(_printed("-c", needed + used).split())
    assert "scipy.special" in loaded and "scipy.stats" not in loaded


def test_a_configuration_is_written_without_pandas(tmp_path: Path) -> None:
    """To see whether a list is a Series pyarrow would import it."""
    table, vectors, out = (str(tmp_path / name) for name in ("t.csv", "v.parquet", "mine.yaml"))
    Path(table).write_text("\n".join(["id,text,kind", *(f"c{i},a {i},{i % 2}" for i in range(40))]))
    numbers = {"id": [f"c{i}" for i in range(40)], "vector": [[0.5, i] for i in range(40)]}
    pq.write_table(pa.table(numbers), vectors)
    program = (
        "import sys\n"
        "from mamushi.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "print('loaded', *sys.modules)\n"
    )
    words = ["init", table, "--text", "text", "--id", "id", "--forget", "kind == 1"]
    printed = _printed("-c", program, *words, "--embeddings", vectors, "--out", out)
    assert not {"pandas", "torch"} & set(printed.rpartition("loaded ")[2].split())


WITHOUT_A_MODEL = ("analyses", "data", "figure", "tables")


@pytest.mark.parametrize("room", WITHOUT_A_MODEL)
def test_a_stage_without_a_language_model_never_imports_one(room: str) -> None:
    # Plug-ins, which are loaded by name, are not among them: selectors may use torch.
    for module in imported(f"mamushi.stages.{room}"):
        text = OURS[module].read_text(encoding="utf-8")
        # What is for a type checker alone is never imported.
        for line in re.sub(r"^if TYPE_CHECKING:\n(    .*\n)+", "", text, flags=re.M).splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]):
                assert words[1].partition(".")[0] not in ("accelerate", "torch", "transformers"), (
                    f"{module}: {line}"
                )


TRAINING = (
    "mamushi.stages.train",
    *(f"mamushi.lm.{room}" for room in ("loading", "perplexity", "sharding", "tokens", "training")),
)


def test_a_training_imports_little_beside_the_library_of_its_model() -> None:
    # torch and transformers.modeling_utils are the floor: whatever opens a model has them.
    program = (
        "import gc, importlib, sys\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel\n"
        "before = {*sys.modules}\n"
        f"for name in {TRAINING}:\n    importlib.import_module(name)\n"
        "print(gc.get_freeze_count(), *({*sys.modules} - before))\n"
    )
    frozen, *more = _printed("-c", program).split()
    assert {name.partition(".")[0] for name in more} <= {
        "cloudpickle",
        "mamushi",
        "msgspec",
        "pyarrow",
    }
    assert len(more) < 100
    assert int(frozen) > 100_000, "all of the libraries is looked at whenever memory is freed"


def _printed(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(PACKAGE).parent,
    )
    return done.stdout
