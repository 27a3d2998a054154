"""The page ``keys.md``, every key of config.yaml with its type, default and meaning, and the JSON
Schema ``config.schema.json`` for editors.

Both come from the declaration that the program checks by, and from the ``Settings`` of plug-ins.
MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import TypeAdapter

from mamushi.config.kinds import Section, defaults, hints, sections_in
from mamushi.config.sections import (
    EmbeddingsModel,
    HubModel,
    Selector,
    TinyModel,
    Unlearner,
    configuration,
    dataset,
)
from mamushi.registry import plugins

HEAD = """# Keys

What can I configure? Every key, with its default. A key without a default must be given, unless its
meaning says otherwise. An unknown key is a mistake. An editor that reads JSON Schema checks a file
while you write it, by [config.schema.json](config.schema.json).
"""
PLUGINS = {"datasets": "dataset", "selectors": "selector", "unlearners": "unlearner"}
"""Sections whose entries have the settings of their kind as further keys."""
ENTRIES: dict[str, list[type[Section]]] = {
    "datasets": [dataset()],
    "models": [HubModel, TinyModel, EmbeddingsModel],
    "selectors": [Selector],
    "unlearners": [Unlearner],
}
"""What the entries of a section are; the program checks them one by one."""
CHANGES = ("models.NAME.training", "unlearners.NAME.training")
"""Sections that are laid over another one, so that no key of them has a default."""
NO_DEFAULT = object()
"""The default of a key that must be written, or that another section gives."""
WORDS = {
    **{"integer": "a whole number", "number": "a number", "boolean": "true or false"},
    **{"string": "text", "array": "a list", "object": "a mapping of keys to values"},
    "null": "null",
}
BOUNDS = {
    "exclusiveMinimum": "greater than",
    "minimum": "at least",
    "exclusiveMaximum": "less than",
    "maximum": "at most",
    "minItems": "entries at least",
    "maxItems": "entries at most",
    "pattern": "matching",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page and the schema to the files in the folder."""
    text = json.dumps(schema(), indent=1)
    files.append(File.generated(config, "guide/config.schema.json", content=text))
    files.append(File.generated(config, "guide/keys.md", content=page()))
    return files


# What comments say ----------------------------------------------------------------------------


@cache
def meanings(section: type) -> Mapping[str, str]:
    """Return what each key of a section means: the comment ``#:`` at the key or above it, else the
    docstring of the section that it holds."""
    words: dict[str, str] = {}
    for name, hint in hints(section).items():
        inner = sections_in(hint)
        words[name] = " ".join(inspect.cleandoc(inner[0].__doc__ or "").split()) if inner else ""
    for base in reversed(section.__mro__[: section.__mro__.index(Section)]):
        above: list[str] = []
        for line in inspect.getsource(base).splitlines():
            text = line.partition("#: ")[2]
            if (match := re.match(r"    (\w+): ", line)) and match[1] in words:
                words[match[1]] = " ".join([*above, text]).strip() or words[match[1]]
                above = []
            elif text:
                above.append(text)
    return words


# The schema -----------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration, with the meaning of each key."""
    every = [configuration(), *(section for sections in ENTRIES.values() for section in sections)]
    inputs = [(section, "validation", TypeAdapter(section)) for section in every]
    rules, shared = TypeAdapter.json_schemas(inputs)
    definitions = shared["$defs"]
    for section in sections_below(every):
        for key, meaning in meanings(section).items():
            definitions[section.__name__]["properties"][key]["description"] = meaning
    for name, sections in ENTRIES.items():
        for section in sections if name in PLUGINS else ():
            # With the settings of its plug-in, which only the program knows.
            definitions[section.__name__] |= {"additionalProperties": True, "required": []}
        entries = {"anyOf": [rules[section, "validation"] for section in sections]}
        by_pattern = definitions["Configuration"]["properties"][name]["patternProperties"]
        by_pattern |= dict.fromkeys(by_pattern, entries)
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "$ref": "#/$defs/Configuration", "$defs": definitions}


def sections_below(sections: Iterable[type[Any]]) -> Iterator[type[Any]]:
    """Yield sections and all that their keys hold."""
    for section in sections:
        yield section
        yield from sections_below(x for hint in hints(section).values() for x in sections_in(hint))


# The page -------------------------------------------------------------------------------------


class Key(NamedTuple):
    """A key by its path, ``NAME`` for a name of the user's."""

    path: str
    hint: Any
    default: Any
    meaning: str


def keys(section: type, at: str = "", *, is_change: bool = False) -> Iterator[Key]:
    """Yield every key below a section; of one laid over another, ``is_change``, no defaults."""
    values = {} if is_change else defaults(section)
    for name, hint in hints(section).items():
        path = f"{at}{name}"
        inner = [] if holds(hint, list) else sections_in(hint)
        for entry in ENTRIES.get(path, inner):
            below = f"{path}.NAME." if holds(hint, dict) else f"{path}."
            yield from keys(entry, below, is_change=is_change or path in CHANGES)
        if not ENTRIES.get(path, inner):
            yield Key(path, hint, values.get(name, NO_DEFAULT), meanings(section)[name])


def holds(hint: Any, shape: type) -> bool:
    """Tell whether a type is a list or a mapping, as ``shape`` says, or null."""
    return get_origin(hint) is shape or any(holds(member, shape) for member in get_args(hint)[:1])


def page() -> str:
    """Return the whole page in Markdown, a table for each section and each plug-in."""
    parts = [HEAD]
    rows: dict[str, list[Key]] = {}
    for key in keys(configuration()):
        rows.setdefault(key.path.partition(".")[0], []).append(key)
    for name, meaning in meanings(configuration()).items():
        parts += [f"## {name}", "", escaped(meaning), "", *table(rows[name])]
        for kind, plugin in plugins(PLUGINS[name]).items() if name in PLUGINS else ():
            parts += [f"### {name}: {kind}", "", escaped(plugin.summary), ""]
            if plugin.settings:
                parts += table(keys(plugin.section, f"{name}.{kind.upper()}."))
    return "\n".join(parts)


def table(rows: list[Key] | Iterator[Key]) -> list[str]:
    """Return the lines of a section's table."""
    lines = []
    for key in rows:
        default = "" if key.default is NO_DEFAULT else f"`{json.dumps(key.default)}`"
        lines.append(
            f"| `{key.path}` | {escaped(allowed(key.hint))} | {default} | {escaped(key.meaning)} |"
        )
    return ["| key | allowed | default | meaning |", "|---|---|---|---|", *lines, ""]


def allowed(hint: Any) -> str:
    """Return what a type allows, in words: ``a number greater than 0, or null``."""
    if get_origin(hint) is None and not isinstance(hint, type):
        return "anything"
    return words_of(TypeAdapter(hint).json_schema())


def words_of(rule: dict[str, Any]) -> str:
    """Return what a rule allows, in words."""
    if "anyOf" in rule:
        return ", or ".join(words_of(choice) for choice in rule["anyOf"])
    if "enum" in rule or "const" in rule:
        return "one of: " + ", ".join(map(str, rule.get("enum", [rule.get("const")])))
    words = WORDS.get(rule.get("type", "object"), "anything")
    words += f" (each entry {words_of(rule['items'])})" if rule.get("items") else ""
    shown = {**rule, "pattern": f"`{rule.get('pattern')}`"} if "pattern" in rule else rule
    bounds = [f"{word} {shown[bound]}" for bound, word in BOUNDS.items() if bound in shown]
    return f"{words} {' and '.join(bounds)}".strip()


def escaped(text: str) -> str:
    """Return text in which a bar does not end a cell."""
    return text.replace("|", "&#124;")
