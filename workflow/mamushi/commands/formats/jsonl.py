"""folder with forget.jsonl and retain.jsonl, as open-unlearning and load_dataset read them"""

from __future__ import annotations

from pathlib import Path

from mamushi.commands._source import Source, json_line

FOLDER = True
TEXTS = True
SPLITS = ("forget", "retain")
README = """\
---
configs:
- config_name: default
  data_files:
  - split: forget
    path: forget.jsonl
  - split: retain
    path: retain.jsonl
---

`forget` is what is on the removal list, `retain` all other texts. In open-unlearning, for each
of the two:

```yaml
{split}:
  handler: {handler}
  args:
    hf_args:
      path: this-folder
      split: {split}
{keys}
```
"""


def write(source: Source, out: Path) -> None:
    """Write both splits; the header of the README names the two splits to ``load_dataset``."""
    names = {"prompt": "question", "text": "answer"} if source.prompted else {}
    with (
        (out / "forget.jsonl").open("w", encoding="utf-8") as forget,
        (out / "retain.jsonl").open("w", encoding="utf-8") as retain,
    ):
        for row in source.rows():
            cells = {names.get(name, name): cell for name, cell in row.cells.items()}
            (forget if row.on_the_list else retain).write(json_line({"id": row.id, **cells}))
    keys = ["question_key: question", "answer_key: answer"] if names else ["text_key: text"]
    about = {
        "split": "forget",
        "handler": "QADataset" if names else "PretrainingDataset",
        "keys": "\n".join(f"    {key}" for key in keys),
    }
    (out / "README.md").write_text(README.format(**about), encoding="utf-8")
