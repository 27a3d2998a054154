"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

Names are columns; one with a space in its name stands in backquotes. An empty cell is a mistake,
unless it is compared with ``None`` or ``''``: nobody has said what it means. There are constants,
lists of them, comparisons (``== != < <= > >= in not in``),
``and or not`` and the arithmetic ``+ - * / // %`` on numbers. There is nothing else: the expression
is read into a syntax tree, each node is looked up in the tables below, and what is not there is
refused; so nothing in it can call, import, or take unbounded time.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mamushi.errors import UserError

LONGEST = 10_000
"""Characters that an expression may have."""

Row = Mapping[str, Any]
Value = Callable[[Row], Any]

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, many: item in many,
    ast.NotIn: lambda item, many: item not in many,
}


SYNTAX = {"None", "True", "False", "and", "or", "not", "in", "is", "if", "else", "for", "lambda"}
"""Keywords that mean something in an expression of Python; any other is the name of a column."""
COLUMN = re.compile(
    r"""(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|`(?P<quoted>[^`]+)`|"""
    rf"""(?<![\w.])(?P<keyword>{"|".join(sorted({*keyword.kwlist} - SYNTAX))})(?!\w)"""
)
"""A column that Python would not read as a name, and text, in which none is looked for."""


class Mismatch(Exception):
    """An operation on values that it does not apply to."""

    do = "check the expression"


class Empty(Mismatch):
    """A cell without a value, of which the expression does not say what that means."""

    def __init__(self, column: str) -> None:
        super().__init__(f"column {column!r} is empty")
        means = f"{quoted(column)} != None and ..."
        self.do = f"give every row a value, or say what an empty cell means, as in {means!r}"


@dataclass(frozen=True)
class Expression:
    """A checked expression. ``names`` are the columns that it reads."""

    text: str
    names: tuple[str, ...]
    value: Value

    def holds(self, row: Row, place: str) -> bool:
        """Whether it is true of a row that has all of ``names``.

        Raises ``UserError`` where a value is not what the operation needs (text against a number,
        an empty cell, a non-finite value) or where the result is neither true nor false.
        """
        for name in self.names:
            if isinstance(row[name], float) and not math.isfinite(row[name]):
                raise UserError(
                    f"column {name!r} is {row[name]}", where=place, do="give every row a value"
                )
        try:
            result = self.value(row)
        except (Mismatch, TypeError, ZeroDivisionError, OverflowError) as error:
            raise UserError(
                f"cannot evaluate {self.text!r} ({error})",
                where=place,
                do=getattr(error, "do", "check the expression"),
            ) from None
        if not isinstance(result, bool):
            raise UserError(
                f"{self.text!r} gives {result!r}, neither true nor false",
                where=place,
                do="compare it with something, as in 'column > 0'",
            )
        return result


def parse(text: str) -> Expression:
    """Check an expression and make it ready to evaluate. Raises ``UserError`` with the reason."""
    if len(text) > LONGEST:
        raise UserError(f"an expression of {len(text)} characters", do=f"allowed are {LONGEST}")
    readable, columns = plain(text.strip())
    names: dict[str, None] = {}
    try:
        value = _compile(ast.parse(readable, mode="eval").body, names, columns)
    except SyntaxError as error:
        raise UserError(
            f"expression {text!r}: {error.msg}",
            do="write it as in 'toxic == 1 or `my group` in [3, 4]'",
        ) from None
    except (RecursionError, MemoryError, ValueError):
        raise UserError("the expression cannot be read", do="write it in a simpler way") from None
    return Expression(text, tuple(names), value)


def plain(text: str) -> tuple[str, dict[str, str]]:
    """The expression with a name that Python can read for each column that it cannot, and the
    column of each such name."""
    prefix = "_"
    while prefix in text:
        prefix += "_"
    columns: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        if found["text"]:
            return found[0]
        name = f"{prefix}{len(columns)}_"
        columns[name] = found["quoted"] or found["keyword"]
        return name

    return COLUMN.sub(named, text), columns


def quoted(column: str) -> str:
    """A column as it stands in an expression."""
    return column if column.isidentifier() and column not in SYNTAX else f"`{column}`"


def _cell(row: Row, column: str) -> Any:
    """A cell's value, None for one that is empty: text formats have no other way to say it."""
    value = row[column]
    return None if isinstance(value, str) and not value.strip() else value


def _filled(row: Row, column: str) -> Any:
    value = _cell(row, column)
    if value is None:
        raise Empty(column)
    return value


def _compile(
    node: ast.expr, names: dict[str, None], columns: Mapping[str, str], may_be_empty: bool = False
) -> Value:
    """A function of the row that gives the node's value. Adds the columns it reads to ``names``.

    ``columns`` are those of ``plain``. ``may_be_empty``: what the node is compared with says what
    an empty cell means.
    """

    def inner(part: ast.expr) -> Value:
        return _compile(part, names, columns)

    match node:
        case ast.Constant(value=str() | int() | float() | None as constant):
            value = _cell({"": constant}, "")
            return lambda row: value
        case ast.Name(id=name):
            column = columns.get(name, name)
            names[column] = None
            read = _cell if may_be_empty else _filled
            return lambda row: read(row, column)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            members = [inner(item) for item in items]
            return lambda row: [member(row) for member in members]
        case ast.BoolOp(op=op, values=operands):
            terms = [inner(operand) for operand in operands]
            every = isinstance(op, ast.And)
            # A generator, so that what comes after a decision is not evaluated.
            return lambda row: (all if every else any)(_truth(term(row)) for term in terms)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            negated = inner(operand)
            return lambda row: not _truth(negated(row))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            signed = inner(operand)
            factor = -1 if isinstance(sign, ast.USub) else 1
            return lambda row: factor * _number(signed(row))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            apply = ARITHMETIC[type(op)]
            first, second = inner(left), inner(right)
            return lambda row: apply(_number(first(row)), _number(second(row)))
        case ast.Compare(left=left, ops=ops, comparators=rights) if all(
            type(op) in COMPARISONS for op in ops
        ):
            empties = any(_says_empty(side) for side in (left, *rights))
            sides = [_compile(side, names, columns, empties) for side in (left, *rights)]
            tests = [COMPARISONS[type(op)] for op in ops]
            return lambda row: _compare([side(row) for side in sides], tests)
    shown = ast.unparse(node)
    for name, column in columns.items():
        shown = shown.replace(name, quoted(column))
    raise UserError(
        f"{shown!r} is not allowed in an expression",
        do="use columns, constants, comparisons, and/or/not, in, and + - * / // %",
    )


def _says_empty(side: ast.expr) -> bool:
    """Whether a side of a comparison is ``None`` or ``''``, or a list with one of them."""
    parts = side.elts if isinstance(side, ast.List | ast.Tuple | ast.Set) else [side]
    return any(isinstance(part, ast.Constant) and part.value in (None, "") for part in parts)


def _compare(values: list[Any], tests: list[Callable[[Any, Any], bool]]) -> bool:
    for left, test, right in zip(values, tests, values[1:], strict=False):
        for other in right if isinstance(right, list) else [right]:
            # `"1" == 1` is just false in Python; here it is a mistake that would go unnoticed.
            if isinstance(left, str) != isinstance(other, str) and None not in (left, other):
                raise Mismatch(f"{left!r} against {other!r}: one is text, the other is not")
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
