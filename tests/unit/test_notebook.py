"""The notebook of the documentation shows what its cells show when they are run."""

import json

from tests.support.notebook import NOTEBOOK, read, run

AGAIN = "run it again: python -m tests.support.notebook"


def test_a_notebook_has_the_outputs_of_its_cells() -> None:
    notebook = read()
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert json.loads(json.dumps(run(notebook))) == stored, AGAIN
    assert any("text/html" in each.get("data", {}) for shown in stored for each in shown)


def test_it_is_as_jupyter_reads_it_and_speaks_of_no_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 4)
    keys = {"markdown": set(), "code": {"execution_count", "outputs"}}
    for cell in notebook["cells"]:
        assert cell.keys() == {"cell_type", "metadata", "source"} | keys[cell["cell_type"]]
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    assert "/tmp" not in text and "/home" not in text and "http" not in text
