"""The page ``keys.md``, every key of config.yaml with its type, default and meaning, and the JSON
Schema ``config.schema.json`` for editors.

Both come from the declaration that the program checks by, and from the plug-ins' ``SETTINGS``.
MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from mamushi.config.complete import declared
from mamushi.config.schema import Rule, allowed, meaning
from mamushi.registry import plugins

HEAD = """# Keys

What can I configure? Every key, with its default. A key without a default must be given, unless its
meaning says otherwise. An unknown key is a mistake. An editor that reads JSON Schema checks a file
while you write it, by [config.schema.json](config.schema.json).
"""
PLUGINS = {"datasets": "dataset", "selectors": "selector", "unlearners": "unlearner"}
"""Sections whose entries have the settings of their kind as further keys."""
OWN_WORDS = ("allowed", "missing", "declared", "multipleOf")
"""What a rule says beyond the standard, or what editors take to the last bit of a number: 0.1 is
then no multiple of 0.000001."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page and the schema to the files in the folder."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **plain(declared())}
    text = json.dumps(schema, indent=1)
    files.append(File.generated(config, "guide/config.schema.json", content=text))
    files.append(File.generated(config, "guide/keys.md", content=page()))
    return files


def plain(rule: Rule) -> Rule:
    """Return a rule in the standard's words alone, with descriptions, as editors read it."""
    found: Rule = {}
    for word, value in rule.items():
        if word == "properties":
            found[word] = {key: plain(setting) for key, setting in value.items()}
        elif word == "oneOf":
            found[word] = [plain(each) for each in value]
        elif word not in OWN_WORDS:
            found[word] = plain(value) if isinstance(value, dict) and word != "default" else value
    return {**found, "description": meaning(rule)} if meaning(rule) else found


def page() -> str:
    """Return the whole page in Markdown, a table for each section and each plug-in."""
    parts = [HEAD]
    for name, section in declared()["properties"].items():
        parts += [f"## {name}", "", escaped(meaning(section)), "", *table(section, name)]
        for kind, plugin in plugins(PLUGINS[name]).items() if name in PLUGINS else ():
            parts += [f"### {name}: {kind}", "", escaped(plugin.summary), ""]
            if plugin.settings:
                parts += table({"properties": plugin.settings}, f"{name}.{kind.upper()}")
    return "\n".join(parts)


def table(section: Rule, at: str) -> list[str]:
    """Return the lines of a section's table."""
    rows = [f"| {' | '.join(row)} |" for row in keys(section, at)]
    return ["| key | allowed | default | meaning |", "|---|---|---|---|", *rows, ""]


def keys(rule: Rule, at: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield each key below a rule: its path, what is allowed, its default and its meaning."""
    others = rule.get("additionalProperties")
    inner = others.get("oneOf", [others]) if isinstance(others, dict) else []
    entries = [each for each in inner if "properties" in each]
    for entry in entries:
        yield from keys(entry, f"{at}.NAME")
    for key, setting in rule.get("properties", {}).items():
        yield from keys(setting, f"{at}.{key}")
    if not entries and "properties" not in rule:
        default = f"`{json.dumps(rule['default'])}`" if "default" in rule else ""
        yield f"`{at}`", escaped(allowed(rule)), default, escaped(meaning(rule))


def escaped(text: str) -> str:
    """Return text in which a bar does not end a cell."""
    return text.replace("|", "&#124;")
