"""folder with train.jsonl for axolotl, without what is on the list, and the lines that name it"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mamushi.commands._source import Source, json_line

FOLDER = True
TEXTS = True


def write(source: Source, out: Path) -> None:
    """``config.yaml`` is the section ``datasets`` of axolotl's configuration."""
    with (out / "train.jsonl").open("w", encoding="utf-8") as handle:
        for row in source.rows():
            cells = source.trained(row, text="output" if source.prompted else "text")
            if cells is not None:
                handle.write(json_line(cells))
    about: dict[str, Any] = {"path": "train.jsonl", "ds_type": "json"}
    if source.prompted:
        about["type"] = {
            "field_instruction": "prompt",
            "field_output": "output",
            "format": "{instruction}",
            "no_input_format": "{instruction}",
        }
    else:
        about |= {"type": "completion", "field": "text"}
    text = yaml.safe_dump({"datasets": [about]}, sort_keys=False)
    (out / "config.yaml").write_text(text, encoding="utf-8")
