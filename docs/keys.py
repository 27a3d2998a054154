"""The tables of the page ``keys.md``, every key of config.yaml with its type, default and meaning,
and the JSON Schema ``config.schema.json`` for editors, of which they are made.

The schema is that of the declaration by which the program checks, and of the ``Settings`` of
plug-ins. MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic.json_schema import models_json_schema

from mamushi.config import sections
from mamushi.registry import plugins

EDITORS = """
An editor that reads JSON Schema checks a file while you write it, by
[config.schema.json](config.schema.json).
"""
PLUGINS = {"datasets": "dataset", "selectors": "selector", "unlearners": "unlearner"}
"""Sections whose entries have the settings of their kind as further keys."""
CHANGES = ("models.NAME.training", "unlearners.NAME.training")
"""Sections that are laid over another one, so that no key of them has a default."""
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
    """Add the tables to the page, and the schema to the files in the folder."""
    text = json.dumps(schema(), indent=1)
    files.append(File.generated(config, "guide/config.schema.json", content=text))
    files.src_uris["guide/keys.md"].content_string += page()
    return files


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration; the program checks the entries of some sections
    one by one, which are set in here."""
    entries: dict[str, list[type[sections.Section]]] = {
        "datasets": [sections.with_rooms(sections.Dataset, "datasets")],
        "models": [sections.HubModel, sections.TinyModel, sections.EmbeddingsModel],
        "selectors": [sections.Selector],
        "unlearners": [sections.Unlearner],
    }
    every = [
        sections.with_rooms(sections.Configuration),
        *(kind for kinds in entries.values() for kind in kinds),
    ]
    _, shared = models_json_schema([(section, "validation") for section in every])
    definitions = shared["$defs"]
    for name, kinds in entries.items():
        for kind in kinds if name in PLUGINS else ():
            # With the settings of its plug-in, which only the program knows.
            definitions[kind.__name__] |= {"additionalProperties": True, "required": []}
        by_name = definitions["Configuration"]["properties"][name]["patternProperties"]
        choices = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]
        by_name |= {pattern: {"anyOf": choices} for pattern in by_name}
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "$ref": "#/$defs/Configuration", "$defs": definitions}


class Rules:
    """The rules of a schema, to look up those that it names."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.definitions = schema.get("$defs", {})

    def choices(self, rule: Mapping[str, Any]) -> list[Any]:
        """Return what a rule allows, one of which holds."""
        if "$ref" in rule:
            return [self.definitions[rule["$ref"].rpartition("/")[2]]]
        return [one for part in rule.get("anyOf", ()) for one in self.choices(part)] or [rule]

    def keys(self, section: Mapping[str, Any], at: str, is_change: bool = False) -> Iterator[str]:
        """Yield the row of every key below a section, ``NAME`` for a name of the user's; of one
        that is laid over another, ``is_change``, without defaults."""
        for name, rule in section.get("properties", {}).items():
            path, below = f"{at}{name}", []
            for choice in self.choices(rule):
                by_name = {**choice.get("patternProperties", {})}
                if isinstance(others := choice.get("additionalProperties"), dict):
                    by_name["others"] = others
                entries = [one for of_name in by_name.values() for one in self.choices(of_name)]
                below += [(f"{path}.NAME.", one) for one in entries if "properties" in one]
                below += [(f"{path}.", choice)] if "properties" in choice else []
            for prefix, inner in below:
                yield from self.keys(inner, prefix, is_change or prefix[:-1] in CHANGES)
            if not below:
                is_default = "default" in rule and not is_change
                default = f"`{json.dumps(rule['default'])}`" if is_default else ""
                meaning = escaped(rule.get("description", ""))
                yield f"| `{path}` | {escaped(allowed(rule))} | {default} | {meaning} |"


def page() -> str:
    """Return in Markdown a table for each section and each plug-in."""
    whole, parts = schema(), [EDITORS]
    rules, head = Rules(whole), ["| key | allowed | default | meaning |", "|---|---|---|---|"]
    for name, rule in whole["$defs"]["Configuration"]["properties"].items():
        about = rule.get("description") or rules.choices(rule)[0]["description"]
        rows = rules.keys({"properties": {name: rule}}, "")
        parts += [f"## {name}", "", escaped(" ".join(about.split())), "", *head, *rows, ""]
        for kind, plugin in plugins(PLUGINS[name]).items() if name in PLUGINS else ():
            parts += [f"### {name}: {kind}", "", escaped(plugin.summary), ""]
            if plugin.settings:
                settings = plugin.section.model_json_schema()
                rows = Rules(settings).keys(settings, f"{name}.{kind.upper()}.")
                parts += [*head, *rows, ""]
    return "\n".join(parts)


def allowed(rule: Mapping[str, Any]) -> str:
    """Return what a rule allows, in words: ``a number greater than 0, or null``."""
    if "anyOf" in rule:
        return ", or ".join(map(allowed, rule["anyOf"]))
    if "enum" in rule or "const" in rule:
        return "one of: " + ", ".join(map(str, rule.get("enum", [rule.get("const")])))
    words = WORDS[rule.get("type", "object")]
    words += f" (each entry {allowed(rule['items'])})" if rule.get("items") else ""
    shown = {**rule, "pattern": f"`{rule.get('pattern')}`"} if "pattern" in rule else rule
    bounds = [f"{word} {shown[bound]}" for bound, word in BOUNDS.items() if bound in shown]
    return f"{words} {' and '.join(bounds)}".strip()


def escaped(text: str) -> str:
    """Return text in which a bar does not end a cell."""
    return text.replace("|", "&#124;")
