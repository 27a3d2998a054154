"""The rest of the page ``tables.md``: every table with its columns, their types, units and meaning.

It is made from the declarations that the program writes by, after a list of all files from their
patterns. MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

import inspect
import re

import pyarrow as pa
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files

from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.registry import find_files, import_file

NAMES = {"double": "float64", "halffloat": "float16", "bool": "boolean"}
HEAD = """
## Where is each file?

`CELL` is short for `{cell}`, and `ARM`, the folder of one [model](../glossary.md#arm), for
`CELL/{arm}`. Budgets have two decimals: `beta0.10`.

| file | content |
|---|---|
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add it to the page."""
    files.src_uris["science/tables.md"].content_string += page()
    return files


def tables() -> list[Table]:
    """Return all tables, by name."""
    modules = [schemas, *map(import_file, find_files("mamushi_*/*/schemas.py"))]
    declared = [
        one for module in modules for one in vars(module).values() if isinstance(one, Table)
    ]
    return sorted(declared, key=lambda table: table.name)


def files() -> dict[str, str]:
    """Return what each file holds, by its pattern, as the comments in ``paths`` say it."""
    said = re.findall(r"^([A-Z_]+) = .*  # (.+)$", inspect.getsource(paths), re.M)
    return {getattr(paths, name): content for name, content in said}


def page() -> str:
    """Return in Markdown the files, and a section for each table."""
    arm = paths.ARM.removeprefix(f"{paths.CELL}/")
    parts = [HEAD.format(cell=paths.CELL, arm=arm).rstrip()]
    for path, content in files().items():
        short = path.replace(paths.ARM + "/", "ARM/").replace(paths.CELL, "CELL")
        parts += [f"| `{short}` | {content} |"]
    parts += [""]
    for table in tables():
        parts += [
            f"## {table.name}",
            "",
            escaped(table.description),
            "",
            "| column | type | meaning |",
        ]
        parts += ["|---|---|---|"]
        # How wide the vectors are is the model's affair.
        for field in table.schema:
            meaning = escaped(table.meanings[field.name])
            parts += [f"| `{field.name}` | {kind(field)} | {meaning} |"]
        if table.further is not None:
            parts += ["", f"Further columns: `{table.further}*`."]
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
