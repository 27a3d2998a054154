"""The declaration as JSON Schema, and values by it: coerced, filled in, with all their mistakes.

See ``kinds`` for the words beyond the standard's.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import UNSET, UnsetType, to_builtins

from mamushi.config.kinds import Section

Rule = dict[str, Any]
"""A JSON Schema without references. Under ``declared`` it has the class and the name of a key."""

KINDS: Mapping[Any, str] = {
    **{int: "integer", float: "number", bool: "boolean", str: "string", type(None): "null"},
    **{list: "array", dict: "object"},
}


# From types to rules --------------------------------------------------------------------------


def rule_of(kind: Any) -> Rule:
    """Return the JSON Schema of a declared type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        rule = rule_of(inner[0])
        for meta in inner[1:]:
            rule = {**rule, **meta.extra_json_schema}
        return without_defaults(rule) if rule.pop("part", False) else rule
    if origin in (Union, UnionType):
        return _either([rule_of(each) for each in inner if each is not UnsetType])
    if origin is Literal:
        return {"type": [*{KINDS[type(value)]: None for value in inner}], "enum": [*inner]}
    if origin is list:
        return {"type": ["array"], "items": rule_of(inner[0])}
    if origin is dict:
        names, values = map(rule_of, inner)
        return {"type": ["object"], "propertyNames": names, "additionalProperties": values}
    return _section_rule(kind) if issubclass(kind, Section) else {"type": [KINDS[kind]]}


def _section_rule(section: type[Section]) -> Rule:
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
    found = {}
    for key, setting in rule["properties"].items():
        plain = {word: value for word, value in setting.items() if word != "default"}
        found[key] = without_defaults(plain) if "properties" in plain else plain
    return {**rule, "properties": found}


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


# Values ---------------------------------------------------------------------------------------


def _below(rule: Rule, key: str) -> Rule:
    """Return the rule of a key, empty where nothing is said of it."""
    others = rule.get("additionalProperties")
    named: Rule = rule.get("properties", {})
    return named.get(key, others if isinstance(others, dict) else {})


def coerced(value: Any, rule: Rule) -> Any:
    """Return a copy of ``value`` with text turned into what the schema asks for, since the command
    line gives text only, and numbers into the one type of their key, since ``1`` and ``1.0`` would
    look like a change. What does not fit stays, to be reported."""
    if isinstance(value, Mapping):
        named = {str(key): item for key, item in value.items()}
        return {key: coerced(item, _below(rule, key)) for key, item in named.items()}
    if isinstance(value, list | tuple):
        return [coerced(item, rule.get("items", {})) for item in value]
    if isinstance(value, str) and rule.get("format") == "path":
        value = _resolved(value)
    kinds = _kinds(rule)
    if isinstance(value, str):
        return _from_text(value, kinds)
    if isinstance(value, float) and "number" not in kinds and "integer" in kinds:
        return int(value) if value.is_integer() else value
    return float(value) if type(value) is int and "number" in kinds else value


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
    return os.path.normpath(found) if found else None


def filled(value: Any, rule: Rule) -> Any:
    """Return a valid ``value`` with the defaults of all keys that it leaves out."""
    if isinstance(value, list):
        return [filled(item, rule.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    full = {key: filled(item, _below(rule, key)) for key, item in value.items()}
    for key, setting in rule.get("properties", {}).items():
        if key not in full and "default" in setting:
            full[key] = filled(coerced(deepcopy(setting["default"]), setting), setting)
    return full


def violations(value: Any, rule: Rule, at: str = "") -> Iterator[str]:
    """Yield a line for each violation of the schema: the key, the value, what is allowed."""
    forbidden = f"{at}: {show(value)} is not allowed"
    choices = rule.get("oneOf", ())
    if not _fits(value, rule):
        hint = closest(value, rule.get("enum", ())) if isinstance(value, str) else ""
        yield f"{forbidden}; {hint}allowed is {allowed(rule)}"
    elif isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", math.inf):
            yield f"{forbidden}; {_count(rule)}"
        twice = [x for x in value if sum(type(x) is type(y) and x == y for y in value) > 1]
        if rule.get("uniqueItems") and twice:
            several = f"{show(twice[0])} stands there more than once"
            yield f"{at}: {several}; allowed are different values"
        for place, item in enumerate(value):
            yield from violations(item, rule.get("items", {}), f"{at}[{place}]")
    elif isinstance(value, dict):
        if len(value) < rule.get("minProperties", 0):
            yield f"{forbidden}; {_count(rule)}"
        if choices and sum(not any(violations(value, choice)) for choice in choices) != 1:
            yield f"{forbidden}; allowed is: {meaning(rule)}"
        yield from _of_keys(value, rule, f"{at}." if at else "")


def _of_keys(value: dict[str, Any], rule: Rule, at: str) -> Iterator[str]:
    rules, names = rule.get("properties", {}), rule.get("propertyNames", {})
    for key in rule.get("required", ()):
        if key not in value:
            yield f"{at}{key}: {_missing(key, rule)}"
    for key, item in value.items():
        if not _fits(key, names):
            yield f"{at}{key}: this name is not allowed; allowed is {allowed(names)}"
        if key not in rules and rule.get("additionalProperties") is False:
            yield f"{at}{key}: unknown key; {instead(key, rules)}"
        yield from violations(item, _below(rule, key), f"{at}{key}")


def _fits(value: Any, rule: Rule) -> bool:
    """Return whether a value has the right type and, unless it holds others, is within bounds."""
    kinds, kind = _kinds(rule), KINDS.get(type(value))
    if kind == "number" and not math.isfinite(value):
        return not kinds
    if kinds and kind not in kinds and not (kind == "integer" and "number" in kinds):
        return False
    if "enum" in rule:
        return any(type(one) is type(value) and one == value for one in rule["enum"])
    if isinstance(value, str):
        return re.search(rule.get("pattern", ""), value) is not None
    if kind not in ("integer", "number"):
        return True
    # The plain remainder says that 0.29 is no multiple of 0.000001.
    steps = value / rule.get("multipleOf", abs(value) or 1)
    return bool(
        rule.get("minimum", -math.inf) <= value <= rule.get("maximum", math.inf)
        and rule.get("exclusiveMinimum", -math.inf) < value
        and value < rule.get("exclusiveMaximum", math.inf)
        and abs(steps - round(steps)) <= 1e-6
    )


# Words ----------------------------------------------------------------------------------------


def _missing(key: str, rule: Rule) -> str:
    setting = _below(rule, key)
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
        "array": f"a list (each entry {allowed(rule['items'])})" if "items" in rule else "a list",
        "object": "a mapping of keys to values",
        "null": "null",
    }
    return " or ".join(words[kind] for kind in _kinds(rule)) or "something else"


def _bounds(rule: Rule) -> str:
    step = f" in steps of {rule['multipleOf']:f}" if "multipleOf" in rule else ""
    if "exclusiveMinimum" in rule and "exclusiveMaximum" in rule:
        ends = f"{rule['exclusiveMinimum']} and {rule['exclusiveMaximum']}"
        return f" strictly between {ends}{step}"
    words = {
        "exclusiveMinimum": "greater than",
        "minimum": "at least",
        "exclusiveMaximum": "less than",
        "maximum": "at most",
    }
    said = [f"{word} {rule[bound]}" for bound, word in words.items() if bound in rule]
    return (" " + " and ".join(said) if said else "") + step


def instead(word: str, known: Iterable[str]) -> str:
    """Return what an unknown word may have meant, and all known ones."""
    names = sorted(known)
    return f"{closest(word, names)}known are: {', '.join(names)}"


def closest(word: str, known: Iterable[Any]) -> str:
    """Return a question for the known word that is most like this one; empty without any."""
    close = difflib.get_close_matches(word, [one for one in known if isinstance(one, str)], n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def _plain_word(value: Any) -> str:
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def show(value: Any) -> str:
    """Return a value as a user would write it, shortened."""
    text = repr(value) if isinstance(value, str) else _plain_word(value)
    return text if len(text) <= 80 else text[:77] + "..."
