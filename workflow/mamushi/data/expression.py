"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

Names are columns; any other one stands in backquotes: ```my label` == 1``. There are constants,
lists, comparisons, ``in``, ``is null``, ``and or not`` and ``+ - * / // %`` on numbers, and nothing
else: a node of the syntax tree that is not among these is refused, so nothing in it can call,
import, or take unbounded time. An empty cell is a mistake where the result hangs on it, unless it
is asked for with ``is null``: nobody has said what it means.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mamushi.errors import UserError

Row = Mapping[str, Any]
Value = Callable[[Row], Any]

OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, many: item in many,
    ast.NotIn: lambda item, many: item not in many,
}
COLUMNS = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`([^`]+)`""")
"""Text, in which no column is looked for, and columns in backquotes."""
PLACEHOLDER = "_column{}_"
"""What stands for a column in backquotes while Python reads the expression."""


class Mismatch(Exception):
    """An operation on values that it does not apply to."""


class Empty(Mismatch):
    """A cell without a value, of which the expression does not say what that means."""


@dataclass(frozen=True)
class Expression:
    """A checked expression. ``names`` are the columns that it reads."""

    text: str
    names: tuple[str, ...]
    value: Value

    def holds(self, row: Row, place: str, empty: bool | None = None) -> bool:
        """Return whether it is true of a row; ``empty`` where that hangs on an empty cell.

        Raises ``UserError`` where a value is not what the operation needs (text against a number,
        an empty cell when ``empty`` is None, a non-finite value) or where the result is neither
        true nor false.
        """
        do = "check the expression"
        try:
            return _truth(self.value(row))
        except Empty as error:
            if empty is not None:
                return empty
            what = f"{error}, and {self.text!r} hangs on it"
            do = "give every row a value, or say what an empty cell means, as in 'x is null or ...'"
        except (Mismatch, TypeError, ZeroDivisionError, OverflowError) as error:
            what = f"cannot evaluate {self.text!r} ({error})"
        raise UserError(what, where=place, do=do)


def parse(text: str) -> Expression:
    """Check an expression and make it ready to evaluate. Raises ``UserError`` with the reason."""
    names: dict[str, None] = {}
    quoted: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        name = PLACEHOLDER.format(len(quoted))
        quoted[name] = found[1]
        return name

    try:
        readable = ast.parse(COLUMNS.sub(named, text.strip()), mode="eval")
        value = _compile(readable.body, names, quoted)
    except SyntaxError as error:
        do = "write it as in 'toxic == 1 or `my group` in [3, 4]'"
        raise UserError(f"expression {text!r}: {error.msg}", do=do) from None
    except (RecursionError, MemoryError, ValueError):
        raise UserError("the expression cannot be read", do="write it in a simpler way") from None
    return Expression(text, tuple(names), value)


def _cell(value: Any) -> Any:
    """Return a cell, None for an empty one: text formats have no other way to say it."""
    return None if isinstance(value, str) and not value.strip() else value


def _compile(node: ast.expr, names: dict[str, None], quoted: Mapping[str, str]) -> Value:
    """Return a function of the row that gives the node's value. Adds its columns to ``names``."""

    def inner(part: ast.expr) -> Value:
        return _compile(part, names, quoted)

    match node:
        case ast.Constant(value=str() | int() | float() as constant):
            return lambda row: constant
        case ast.Name(id=name):
            column = quoted.get(name, name)
            names[column] = None
            return lambda row: _value(row, column)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            members = [*map(inner, items)]
            return lambda row: [member(row) for member in members]
        case ast.BoolOp(op=op, values=operands):
            terms = [inner(operand) for operand in operands]
            return lambda row: _decided(row, terms, every=isinstance(op, ast.And))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            negated = inner(operand)
            return lambda row: not _truth(negated(row))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            signed = inner(operand)
            return lambda row: -_number(signed(row))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            apply, first, second = OPERATORS[type(op)], inner(left), inner(right)
            return lambda row: apply(_number(first(row)), _number(second(row)))
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Is() | ast.IsNot() as op],
            comparators=[ast.Name(id="null")],
        ):
            asked = quoted.get(name, name)
            names[asked] = None
            return lambda row: (_cell(row[asked]) is None) is isinstance(op, ast.Is)
        case ast.Compare(left=left, ops=ops, comparators=rights) if all(
            type(op) in OPERATORS for op in ops
        ):
            sides, tests = (
                [inner(part) for part in (left, *rights)],
                [OPERATORS[type(o)] for o in ops],
            )
            return lambda row: _compare([side(row) for side in sides], tests)
    shown = ast.unparse(node)
    for name, column in quoted.items():
        shown = shown.replace(name, f"`{column}`")
    do = "use columns, constants, comparisons, and/or/not, in, is null, and + - * / // %"
    raise UserError(f"{shown!r} is not allowed in an expression", do=do)


def _value(row: Row, column: str) -> Any:
    value = _cell(row[column])
    if value is None:
        raise Empty(f"column {column!r} is empty")
    if isinstance(value, float) and not math.isfinite(value):
        raise Mismatch(f"column {column!r} is {value}")
    return value


def _decided(row: Row, terms: list[Value], every: bool) -> bool:
    """Evaluate ``and`` (``every``) or ``or``. What comes after a decision is not evaluated, and an
    empty cell is no mistake where another term decides."""
    doubt: Empty | None = None
    for term in terms:
        try:
            if _truth(term(row)) is not every:
                return not every
        except Empty as error:
            doubt = doubt or error
    if doubt:
        raise doubt
    return every


def _compare(values: list[Any], tests: list[Callable[[Any, Any], bool]]) -> bool:
    for left, test, right in zip(values, tests, values[1:], strict=False):
        for other in right if isinstance(right, list) else [right]:
            # `"1" == 1` is just false in Python; here it is a mistake that would go unnoticed.
            if isinstance(left, str) != isinstance(other, str):
                do = "a column's name stands plainly or in backquotes"
                raise Mismatch(f"{left!r} against {other!r}: one is text, the other is not; {do}")
        if not test(left, right):
            return False
    return True


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Mismatch(f"{value!r} is neither true nor false")
    return value


def _number(value: Any) -> Any:
    # Text and lists are out: `"a" * 10**9` must not be possible.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Mismatch(f"{value!r} is not a number")
    return value
