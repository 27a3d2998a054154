"""The notebook of the documentation shows what its cells show when they are run."""

import json

from tests.support.notebook import read, run

AGAIN = "run it again: python -m tests.support.notebook"


def test_a_notebook_has_the_outputs_of_its_cells() -> None:
    notebook = read()
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert json.loads(json.dumps(run(notebook))) == stored, AGAIN
    assert any("text/html" in each.get("data", {}) for shown in stored for each in shown)
