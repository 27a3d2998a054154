"""The page ``notebook.md``: the notebook beside it, with what its cells showed when they were run.

MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files

NOTEBOOK = "guide/notebook.ipynb"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the cells before the page's last line."""
    text = (Path(config.docs_dir) / NOTEBOOK).read_text(encoding="utf-8")
    file = files.src_uris["guide/notebook.md"]
    file.content_string = f"{page(json.loads(text))}\n\n{file.content_string}"
    return files


def page(notebook: Mapping[str, Any]) -> str:
    """Return the cells of a notebook in Markdown, each with its outputs."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell))


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "text/html" in data:
            yield "".join(data["text/html"])
        else:
            said = "".join(data.get("text/plain", output.get("text", []))).rstrip()
            yield f"```text\n{said}\n```"
