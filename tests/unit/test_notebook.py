"""The notebook of the documentation shows what its cells show when they are run, without Jupyter.

python -m tests.unit.test_notebook      writes what they show into it
"""

import ast
import contextlib
import io
import json
from typing import Any

from tests.support.workflow import ROOT

NOTEBOOK = ROOT / "docs/guide/notebook.ipynb"


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What each cell of code shows: its printed lines, and the value of its last expression."""
    names: dict[str, Any] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_outputs("".join(cell["source"]), names, n) for n, cell in enumerate(cells, 1)]


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    body, value = ast.parse(source).body, None
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "notebook", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    lines = printed.getvalue().splitlines(keepends=True)
    shown = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": value._repr_html_().splitlines(keepends=True), **data}
        about = {"execution_count": number, "metadata": {}, "output_type": "execute_result"}
        shown.append({"data": data, **about})
    return shown


def test_a_notebook_has_the_outputs_of_its_cells() -> None:
    notebook = read()
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    again = "run it again: python -m tests.unit.test_notebook"
    assert json.loads(json.dumps(run(notebook))) == stored, again
    assert any("text/html" in each.get("data", {}) for shown in stored for each in shown)


def main() -> None:
    notebook = read()
    outputs = run(notebook)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, shown) in enumerate(zip(cells, outputs, strict=True), 1):
        cell |= {"execution_count": number, "outputs": shown}
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    NOTEBOOK.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
