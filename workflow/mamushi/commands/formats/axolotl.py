"""folder with train.jsonl for axolotl, without what is on the list, and the lines that name it"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mamushi.commands._source import Source

FOLDER = True
TEXTS = True


def write(source: Source, out: Path) -> None:
    """``config.yaml`` is the section ``datasets`` of axolotl's configuration."""
    source.write_trained(out / "train.jsonl", "output" if source.prompted else "text")
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
