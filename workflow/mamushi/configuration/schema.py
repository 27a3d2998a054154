"""JSON Schema at work: read, coerce, fill in defaults, and say in words what is wrong.

Two words beyond the standard's: ``allowed`` and ``missing`` say what a value may be, and what to do
where there is none. ``format: path`` marks values in which environment variables are resolved.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

Rule = dict[str, Any]
"""A JSON Schema without references."""


@cache
def read(path: Path) -> Rule:
    """A schema in a YAML file, with its references resolved. Not to be changed in place."""
    import yaml

    text = path.read_text(encoding="utf-8")
    whole = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    inlined = _inlined(whole, whole)
    assert isinstance(inlined, dict)
    return inlined


def _inlined(node: Any, whole: Rule) -> Any:
    if isinstance(node, list):
        return [_inlined(item, whole) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target: Any = whole
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return {key: _inlined(value, whole) for key, value in node.items()}


def without_defaults(rule: Rule) -> Rule:
    """A mapping's schema for a part of it: keys that are left out stay out."""
    properties = {
        key: {word: value for word, value in setting.items() if word != "default"}
        for key, setting in rule["properties"].items()
    }
    return {**rule, "properties": properties}


def plain(value: Any) -> Any:
    """A copy of plain dictionaries with text as keys, and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def coerced(value: Any, rule: Rule) -> Any:
    """``value`` with text turned into what the schema asks for, since the command line gives text
    only, and numbers into the one type of their key, since ``1`` and ``1.0`` would look like a
    change. What does not fit stays, for the validation to report."""
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
    """``path`` with ``~`` and environment variables resolved; None if one of them is not set.

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
    """A valid ``value`` with the defaults of all keys that it leaves out."""
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


def violations(value: Any, rule: Rule) -> list[str]:
    """A line for each violation of the schema: the key, the value, what is allowed."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    def finite(_: object, number: object) -> bool:
        if isinstance(number, bool) or not isinstance(number, int | float):
            return False
        return math.isfinite(number)

    def multiple(_: object, step: float, number: Any, __: Rule) -> Iterator[ValidationError]:
        # The plain remainder says that 0.29 is no multiple of 0.01.
        if finite(None, number) and abs(number / step - round(number / step)) > 1e-6:
            yield ValidationError("no multiple")

    validator = validators.extend(
        Draft202012Validator,
        {"multipleOf": multiple},
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", finite),
    )
    found = sorted(validator(rule).iter_errors(value), key=lambda e: [str(p) for p in e.path])
    return [line for error in found for line in _lines(error)]


def _lines(error: Any) -> Iterator[str]:
    """A violation as the user reads it: the key, the value, what is allowed."""
    at = _at(error.absolute_path)
    rule, value = error.schema, error.instance
    if "propertyNames" in error.absolute_schema_path:
        yield f"{_dot(at)}{value}: this name is not allowed; allowed is {allowed(rule)}"
    elif error.validator == "additionalProperties":
        known = list(rule["properties"])
        for key in value:
            if key not in known:
                yield f"{_dot(at)}{key}: unknown key; {instead(key, known)}"
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in value:
                yield f"{_dot(at)}{key}: {_missing(key, rule)}"
    elif error.validator == "uniqueItems":
        twice = next(item for item in value if value.count(item) > 1)
        yield f"{at}: {show(twice)} stands there more than once; allowed are different values"
    elif error.validator in ("minItems", "maxItems", "minProperties"):
        yield f"{at}: {show(value)} is not allowed; {_count(rule)}"
    elif error.validator in ("oneOf", "anyOf") and "description" in rule:
        yield f"{at}: {show(value)} is not allowed; allowed is: {rule['description']}"
    else:
        yield f"{at}: {show(value)} is not allowed; allowed is {allowed(rule)}"


def _missing(key: str, rule: Rule) -> str:
    setting = rule["properties"][key]
    if "missing" in setting:
        return f"missing; {setting['missing']}"
    means = f" ({setting['description'].rstrip('.')})" if "description" in setting else ""
    return f"missing; it has no default; allowed is {allowed(setting)}{means}"


def _count(rule: Rule) -> str:
    least = rule.get("minItems", rule.get("minProperties", 0))
    if least == rule.get("maxItems"):
        return f"allowed are exactly {least} entries"
    return f"allowed is at least {least} entry"


def allowed(rule: Rule) -> str:
    """What a schema allows, in words: ``a number strictly between 0 and 1 or null``."""
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
    """What an unknown word may have meant, and all known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known are: {', '.join(names)}"


def _at(path: Iterable[str | int]) -> str:
    text = ""
    for part in path:
        text = f"{text}[{part}]" if isinstance(part, int) else f"{_dot(text)}{part}"
    return text


def _dot(at: str) -> str:
    return f"{at}." if at else ""


def _plain_word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str({None: "null", True: "true", False: "false"}[value])
    return str(value)


def show(value: Any) -> str:
    """A value as a user would write it, shortened."""
    text = repr(value) if isinstance(value, str) else _plain_word(value)
    return text if len(text) <= 80 else text[:77] + "..."
