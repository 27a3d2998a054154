"""The declaration as JSON Schema, and values by it: coerced, filled in, with all their mistakes.

Two words beyond the standard's: ``allowed`` and ``missing`` say what a value may be, and what to do
where there is none. ``format: path`` marks values in which environment variables are resolved.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import UNSET, Meta, UnsetType, to_builtins

from mamushi.configuration.kinds import Section

Rule = dict[str, Any]
"""A JSON Schema without references. Under ``declared`` it has the class and the name of a key."""

KINDS: Mapping[Any, str] = {
    **{int: "integer", float: "number", bool: "boolean", str: "string", type(None): "null"},
    **{list: "array", dict: "object"},
}
BOUNDS = {
    **{"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"},
    "pattern": "pattern",
}
"""What bounds a type, in JSON Schema's words."""
LEAST = {"array": "minItems", "object": "minProperties", "string": "minLength"}
MOST = {"array": "maxItems"}


# From types to rules --------------------------------------------------------------------------


def rule_of(kind: Any) -> Rule:
    """Return the JSON Schema of a declared type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        rule = rule_of(inner[0])
        for meta in inner[1:]:
            rule = _bounded(rule, meta)
        return rule
    if origin in (Union, UnionType):
        return _either([rule_of(each) for each in inner if each is not UnsetType])
    if origin is Literal:
        return {"type": [*{KINDS[type(value)]: None for value in inner}], "enum": [*inner]}
    if origin is list:
        return {"type": ["array"], "items": rule_of(inner[0])}
    if origin is dict:
        names, values = map(rule_of, inner)
        return {"type": ["object"], "propertyNames": names, "additionalProperties": values}
    return section_rule(kind) if issubclass(kind, Section) else {"type": [KINDS[kind]]}


def section_rule(section: type[Section]) -> Rule:
    """Return the JSON Schema of a section, with each key's default."""
    rule: Rule = {"type": ["object"], "properties": {}, "required": []}
    rule["additionalProperties"] = section.further
    hints = get_type_hints(section, include_extras=True)
    for key in fields(section):
        setting = rule_of(hints[key.name]) | {"declared": (section, key.name)}
        default: Any = key.default
        if key.default_factory is not MISSING:
            default = to_builtins(key.default_factory())
        elif isinstance(default, Section):
            default = {} if default == type(default)() else to_builtins(default)
        if default is MISSING:
            rule["required"].append(key.name)
        elif default is not UNSET:
            setting["default"] = default
        rule["properties"][key.name] = setting
    return rule


def _bounded(rule: Rule, meta: Meta) -> Rule:
    found = {word: getattr(meta, name) for name, word in BOUNDS.items()}
    found[LEAST.get(rule["type"][0], "")] = meta.min_length
    found[MOST.get(rule["type"][0], "")] = meta.max_length
    rule = {**rule, **{word: value for word, value in found.items() if value is not None}}
    rule |= meta.extra_json_schema or {}
    return without_defaults(rule) if meta.extra else rule


def _either(rules: list[Rule]) -> Rule:
    """Return the rule of what follows one of several: bounds concern values of their own type, but
    an enumeration all of them."""
    if sum("properties" in rule for rule in rules) > 1:
        return {"oneOf": rules}
    merged: Rule = {}
    for rule in rules:
        merged |= rule
    merged["type"] = [kind for rule in rules for kind in rule["type"]]
    if "enum" in merged:
        words: Rule = {"boolean": [True, False], "null": [None]}
        lists = [rule.get("enum") or words[rule["type"][0]] for rule in rules]
        merged["enum"] = [value for values in lists for value in values]
    return merged


def without_defaults(rule: Rule) -> Rule:
    """Return a section's schema for a part of it: keys that are left out stay out."""
    properties = {
        key: {word: value for word, value in setting.items() if word != "default"}
        for key, setting in rule["properties"].items()
    }
    inner = {k: without_defaults(s) for k, s in properties.items() if "properties" in s}
    return {**rule, "properties": properties | inner}


@cache
def meanings(section: type[Section]) -> Mapping[str, str]:
    """Return what each key of a section means: the comment ``#:`` at the key or above it, else the
    docstring of the section that it holds."""
    found = {}
    for name, hint in get_type_hints(section).items():
        kinds = [hint, *get_args(hint)]
        held = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]
        found[name] = " ".join(inspect.cleandoc(held[0].__doc__ or "").split()) if held else ""
    for base in reversed(section.__mro__[: section.__mro__.index(Section)]):
        said: list[str] = []
        for line in inspect.getsource(base).splitlines():
            text = line.partition("#: ")[2]
            if match := re.match(r"    (\w+): ", line):
                found[match[1]] = " ".join([*said, text]).strip() or found[match[1]]
                said = []
            elif text:
                said.append(text)
    return found


def meaning(setting: Rule) -> str:
    """Return what a key means, empty where that is not said."""
    section, key = setting.get("declared", (None, ""))
    return str(setting.get("description") or (meanings(section)[key] if section else ""))


def json_schema(rule: Rule) -> Rule:
    """Return a rule as plain JSON Schema, with descriptions, as editors read it."""
    found = {}
    for word, value in rule.items():
        if word == "properties":
            value = {key: json_schema(setting) for key, setting in value.items()}
        elif isinstance(value, dict) and word != "default":
            value = json_schema(value)
        elif word == "oneOf":
            value = [json_schema(each) for each in value]
        if word not in ("allowed", "missing", "declared"):
            found[word] = value
    if text := meaning(rule):
        found["description"] = text
    return found


# Values ---------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a copy of plain dictionaries with text as keys, and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def coerced(value: Any, rule: Rule) -> Any:
    """Return ``value`` with text turned into what the schema asks for, since the command line gives
    text only, and numbers into the one type of their key, since ``1`` and ``1.0`` would look like a
    change. What does not fit stays, to be reported."""
    if isinstance(value, dict):
        rules = rule.get("properties", {})
        others = rule.get("additionalProperties")
        fallback = others if isinstance(others, dict) else {}
        return {key: coerced(item, rules.get(key, fallback)) for key, item in value.items()}
    if isinstance(value, list):
        return [coerced(item, rule.get("items", {})) for item in value]
    if isinstance(value, str) and rule.get("format") == "path":
        value = _resolved(value)
    kinds = _kinds(rule)
    if isinstance(value, str):
        return _from_text(value, kinds)
    if isinstance(value, float) and "number" not in kinds and "integer" in kinds:
        return int(value) if value.is_integer() else value
    if type(value) is int and "number" in kinds:
        return float(value)
    return value


def _kinds(rule: Rule) -> list[str]:
    kinds = rule.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _from_text(text: str, kinds: list[str]) -> Any:
    word = text.strip().lower()
    if "null" in kinds and word in {"null", "none", "~", ""}:
        return None
    if "boolean" in kinds and word in {"true", "false"}:
        return word == "true"
    for kind, number in (("integer", int), ("number", float)):
        if kind in kinds:
            try:
                return number(word)
            except ValueError:
                continue
    return text


def _resolved(path: str) -> str | None:
    """Return ``path`` with ``~`` and environment variables resolved; None if one is not set.

    Spelled in one way (no double or trailing slashes), since another spelling would look like
    another file.
    """
    variables = re.findall(r"\$(?:\{(\w+)\}|(\w+))", path)
    if any(not os.environ.get(braced or bare) for braced, bare in variables):
        return None
    found = os.path.expanduser(os.path.expandvars(path))
    if "://" in found:
        return found
    return os.path.normpath(found) if found else None


def filled(value: Any, rule: Rule) -> Any:
    """Return a valid ``value`` with the defaults of all keys that it leaves out."""
    if isinstance(value, list):
        return [filled(item, rule.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    rules = rule.get("properties", {})
    others = rule.get("additionalProperties")
    fallback = others if isinstance(others, dict) else {}
    full = {key: filled(item, rules.get(key, fallback)) for key, item in value.items()}
    for key, setting in rules.items():
        if key not in full and "default" in setting:
            default = coerced(deepcopy(setting["default"]), setting)
            full[key] = filled(default, setting)
    return full


def violations(value: Any, rule: Rule, at: str = "") -> Iterator[str]:
    """Yield a line for each violation of the schema: the key, the value, what is allowed."""
    forbidden = f"{at}: {show(value)} is not allowed"
    if not _fits(value, rule):
        yield f"{forbidden}; allowed is {allowed(rule)}"
    elif isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", math.inf):
            yield f"{forbidden}; {_count(rule)}"
        if rule.get("uniqueItems") and (twice := _repeated(value)):
            several = f"{show(twice[0])} stands there more than once"
            yield f"{at}: {several}; allowed are different values"
        for place, item in enumerate(value):
            yield from violations(item, rule.get("items", {}), f"{at}[{place}]")
    elif isinstance(value, dict):
        if len(value) < rule.get("minProperties", 0):
            yield f"{forbidden}; {_count(rule)}"
        choices = rule.get("oneOf")
        if choices and sum(not any(violations(value, choice)) for choice in choices) != 1:
            yield f"{forbidden}; allowed is: {meaning(rule)}"
        yield from _of_keys(value, rule, f"{at}." if at else "")


def _repeated(items: list[Any]) -> list[Any]:
    return [x for x in items if sum(type(x) is type(y) and x == y for y in items) > 1]


def _of_keys(value: dict[str, Any], rule: Rule, at: str) -> Iterator[str]:
    rules, others = rule.get("properties", {}), rule.get("additionalProperties")
    for key in rule.get("required", ()):
        if key not in value:
            yield f"{at}{key}: {_missing(key, rule)}"
    names = rule.get("propertyNames", {})
    for key, item in value.items():
        if not _fits(key, names):
            yield f"{at}{key}: this name is not allowed; allowed is {allowed(names)}"
        if key not in rules and others is False:
            yield f"{at}{key}: unknown key; {instead(key, rules)}"
        fallback = others if isinstance(others, dict) else {}
        yield from violations(item, rules.get(key, fallback), f"{at}{key}")


def _fits(value: Any, rule: Rule) -> bool:
    """Return whether a value has the right type and, unless it holds others, is within bounds."""
    kinds = _kinds(rule)
    kind = KINDS.get(type(value))
    if kind == "number" in kinds and not math.isfinite(value):
        return False
    if kinds and kind not in kinds and not (kind == "integer" and "number" in kinds):
        return False
    if "enum" in rule:
        return any(type(one) is type(value) and one == value for one in rule["enum"])
    if isinstance(value, str):
        fitting = re.search(rule.get("pattern", ""), value) is not None
        return fitting and len(value) >= rule.get("minLength", 0)
    if kind not in ("integer", "number"):
        return True
    # The plain remainder says that 0.29 is no multiple of 0.01.
    steps = value / rule.get("multipleOf", abs(value) or 1)
    return bool(
        rule.get("minimum", -math.inf) <= value <= rule.get("maximum", math.inf)
        and rule.get("exclusiveMinimum", -math.inf) < value
        and value < rule.get("exclusiveMaximum", math.inf)
        and abs(steps - round(steps)) <= 1e-6
    )


def _missing(key: str, rule: Rule) -> str:
    setting = rule.get("properties", {}).get(key, {})
    if "missing" in setting:
        return f"missing; {setting['missing']}"
    means = f" ({meaning(setting).rstrip('.')})" if meaning(setting) else ""
    return f"missing; it has no default; allowed is {allowed(setting)}{means}"


def _count(rule: Rule) -> str:
    least = rule.get("minItems", rule.get("minProperties", 0))
    if least == rule.get("maxItems"):
        return f"allowed are exactly {least} entries"
    return f"allowed is at least {least} entry"


def allowed(rule: Rule) -> str:
    """Return what a schema allows, in words: ``a number strictly between 0 and 1 or null``."""
    if "allowed" in rule:
        return str(rule["allowed"])
    if "enum" in rule:
        return "one of: " + ", ".join(_plain_word(value) for value in rule["enum"])
    words = {
        "integer": "a whole number" + _bounds(rule),
        "number": "a number" + _bounds(rule),
        "boolean": "true or false",
        "string": "text",
        "array": "a list",
        "object": "a mapping of keys to values",
        "null": "null",
    }
    if "items" in rule:
        words["array"] = f"a list (each entry {allowed(rule['items'])})"
    return " or ".join(words[kind] for kind in _kinds(rule)) or "something else"


def _bounds(rule: Rule) -> str:
    above, least = rule.get("exclusiveMinimum"), rule.get("minimum")
    below, most = rule.get("exclusiveMaximum"), rule.get("maximum")
    step = f" in steps of {rule['multipleOf']}" if "multipleOf" in rule else ""
    if above is not None and below is not None:
        return f" strictly between {above} and {below}{step}"
    lower = f"greater than {above}" if above is not None else f"at least {least}"
    upper = f"less than {below}" if below is not None else f"at most {most}"
    ends = [lower] if (above, least) != (None, None) else []
    ends += [upper] if (below, most) != (None, None) else []
    return (" " + " and ".join(ends) if ends else "") + step


def instead(word: str, known: Iterable[str]) -> str:
    """Return what an unknown word may have meant, and all known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known are: {', '.join(names)}"


def _plain_word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str({None: "null", True: "true", False: "false"}[value])
    return str(value)


def show(value: Any) -> str:
    """Return a value as a user would write it, shortened."""
    text = repr(value) if isinstance(value, str) else _plain_word(value)
    return text if len(text) <= 80 else text[:77] + "..."
