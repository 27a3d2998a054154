"""Make the page to browse a ranking: one HTML file with the data in it, which loads nothing.

Texts come in as JSON in which no ``<`` is left, and reach the screen as text nodes alone.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mamushi.evaluation.masking import mask

PAGE_FOLDER = Path(__file__).parent / "page"


def page_texts(ids: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
    """Return texts as a page has them: masked, and by position ``unmasked`` where that differs."""
    masked = [mask(text) for text in texts]
    unmasked = {i: text for i, text in enumerate(texts) if text != masked[i]}
    return {"ids": ids, "texts": masked, "unmasked": unmasked}


def json_in_html(value: Any) -> str:
    """Return JSON that can stand in a ``<script>``: with every ``<`` escaped nothing in it ends the
    element or opens a comment.

    >>> json_in_html("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def render(
    name: str, folder: Path = PAGE_FOLDER, *, after: str = "", data: Any = None, **values: Any
) -> str:
    """Fill in the template ``name`` of a ``folder``, with the style sheet beside it, below that of
    the page ``after`` of this room, and with the script that shows the ``data``, if there are any.
    The page makes no requests, and nothing in the data or the values can add markup to it. The
    filter ``source`` gives what allows an inline element in a Content Security Policy."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader([folder, PAGE_FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["url"] = lambda path: quote(path.as_posix())
    env.filters["source"] = lambda text: (
        "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()
    )
    sheets = [*([PAGE_FOLDER / f"{after}.css"] if after else []), folder / f"{name}.css"]
    style = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    if data is not None:
        values["script"] = (folder / f"{name}.js").read_text(encoding="utf-8")
        values["data"] = json_in_html(data)
    return env.get_template(f"{name}.html").render(style=style, **values)
