"""The page ``tables.md``: every table with its columns, their types, units and meaning.

Types come from the schemas that the program writes by, meanings from ``columns.yaml``; a test holds
the two together. MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from mamushi.artifacts import schemas as declared
from mamushi.artifacts.tables import embeddings_schema

PAGE = "tables.md"
MEANINGS = Path(__file__).with_name("columns.yaml")
NAMES = {"double": "float64", "halffloat": "float16", "bool": "boolean"}
HEAD = """# Tables

Stages hand tables to each other as Parquet files with checksums. A table is checked when it is
written and when it is read: a column that is missing, of another type, or null where it may not be,
is an error. The tables in `results/tables` are also there as CSV with six significant digits; the
Parquet file has every digit. A Parquet file's metadata, under the key `mamushi`, hold as JSON what
the table was made from.

A `?` behind a type says that the column may be null. Where each file lies:
[Layout](layout.md#artifacts).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to those in the folder."""
    files.append(File.generated(config, PAGE, content=page(schemas(), meanings())))
    return files


def schemas() -> dict[str, pa.Schema]:
    """The columns of every table, by its name."""
    found = [each for each in vars(declared).values() if isinstance(each, declared.Table)]
    # How wide the vectors are is the model's affair.
    return {each.name: each.schema for each in found} | {"embeddings": embeddings_schema(1)}


def meanings() -> dict[str, Any]:
    """``tables``: what each table is ``about``, and its ``columns``; ``shared``: other columns."""
    found: dict[str, Any] = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    return found


def page(tables: Mapping[str, pa.Schema], words: Mapping[str, Any]) -> str:
    """The whole page in Markdown, a section for each table. Raises ``KeyError`` for a table or
    column without a meaning."""
    parts = [HEAD]
    for name, schema in tables.items():
        about = words["tables"][name]
        said = words["shared"] | about.get("columns", {})
        parts += [f"## {name}", "", escaped(about["about"]), "", "| column | type | meaning |"]
        parts += ["|---|---|---|"]
        parts += [f"| `{f.name}` | {kind(f)} | {escaped(said[f.name])} |" for f in schema]
        parts += [""]
    return "\n".join(parts)


def kind(field: pa.Field) -> str:
    """A column's type in words, with ``?`` where it may be null."""
    return _named(field.type) + ("?" if field.nullable else "")


def _named(found: pa.DataType) -> str:
    if pa.types.is_list(found) or pa.types.is_fixed_size_list(found):
        return f"list of {_named(found.value_type)}"
    return NAMES.get(str(found), str(found))


def escaped(text: str) -> str:
    """Text in which a bar does not end a cell."""
    return text.replace("|", "&#124;")
