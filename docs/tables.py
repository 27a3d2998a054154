"""The page ``tables.md``: every table with its columns, their types, units and meaning.

It is made from the schemas that the program writes by, so that page and program cannot differ.
MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

try:
    from mamushi.artifacts.schemas import Table, all_tables
except ImportError:  # until the schemas have a module of their own, with what the columns mean
    from mamushi.artifacts.tables import SCHEMAS

    class Table(NamedTuple):  # type: ignore[no-redef]
        name: str
        schema: pa.Schema
        about: str

    def all_tables() -> dict[str, Table]:
        return {name: Table(name, schema, "") for name, schema in SCHEMAS.items()}


PAGE = "tables.md"
NAMES = {"double": "float64", "float": "float32", "halffloat": "float16", "bool": "boolean"}
HEAD = """# Tables

Stages hand tables to each other as Parquet files with checksums. A table is checked when it is
written and when it is read: a column that is missing, of another type, or null where it may not be,
is an error. The tables in `results/tables` are also there as CSV with six significant digits; the
Parquet file has every digit. A Parquet file's metadata, under the key `mamushi`, hold as JSON what
the table was made from.

A `?` behind a type says that the column may be null. This page is made from the schemas in
`workflow/mamushi/artifacts/schemas.py`. Where each file lies: [Layout](layout.md#artifacts).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to those in the folder."""
    files.append(File.generated(config, PAGE, content=page(all_tables().values())))
    return files


def page(tables: Iterable[Table]) -> str:
    """The whole page in Markdown, a section for each table in the given order."""
    return "\n".join([HEAD, *map(section, tables)])


def section(table: Table) -> str:
    """A table's section: what a row is, then its columns."""
    rows = [f"| `{field.name}` | {kind(field)} | {about(field)} |" for field in table.schema]
    head = [f"## {table.name}", "", escaped(table.about), "", "| column | type | meaning |"]
    return "\n".join([*head, "|---|---|---|", *rows, ""])


def kind(field: pa.Field) -> str:
    """A column's type in words, with ``?`` where it may be null."""
    return _named(field.type) + ("?" if field.nullable else "")


def _named(found: pa.DataType) -> str:
    if pa.types.is_list(found) or pa.types.is_fixed_size_list(found):
        return f"list of {_named(found.value_type)}"
    return NAMES.get(str(found), str(found))


def about(field: pa.Field) -> str:
    """A column's meaning, from its metadata."""
    return escaped((field.metadata or {}).get(b"about", b"").decode())


def escaped(text: str) -> str:
    """Text in which a bar does not end a cell."""
    return text.replace("|", "&#124;")
