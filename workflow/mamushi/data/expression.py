"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

Names are columns; any other one stands in backquotes: ```my label` == 1``. There are constants,
lists, comparisons, ``in``, ``is null``, ``and or not`` and ``+ - * / // %`` on numbers, and nothing
else: a node of the syntax tree that is not among these is refused, so nothing in it can call,
import, or take unbounded time. An empty cell is a mistake where the result hangs on it, unless it
is asked for with ``is null``: nobody has said what it means. NaN is a number, which is null, unlike
any other, and neither above nor below one, as in pandas.
"""

from __future__ import annotations

import ast
import datetime
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mamushi.data.numbers import CellNumber, Constant, Half, Single, calculated, negative, together
from mamushi.errors import UserError, lacks

_Row = Mapping[str, Any]
Value = Callable[[_Row], Any]
Test = Callable[[Any, Any], bool]

_COLUMNS = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`([^`]+)`""")
"""Text, in which no column is looked for, and columns in backquotes."""
PLACEHOLDER = "_column{}_"
"""What stands for a column in backquotes while Python reads the expression."""
SLIPS: tuple[tuple[str, str], ...] = (
    (r"^\s*(?i:select|where)\b", "write alone what stands behind where"),
    (r"[‘’“”„]", "write straight quotes, ' or \""),
    (r"^[^'\"]*['\"][^'\"]*$", "close the quote, and put the whole in quotes of the other kind"),
    (r"===", "write == for equal"),
    (r"=>|=<", "write >= or <="),
    (r"<>", "write != for not equal"),
    (r"[!=]=\s*(?i:null|none|nan)\b|(?i:\bis\s+none\b|\b(is|not)(null|na)\b)", "write x is null"),
    (r"(?<![=!<>])=(?!=)", "write == for equal, and text in quotes: topic == 'cars'"),
    (r"&", "write and in the place of &"),
    (r"\|", "write or in the place of |"),
    (r"\b(AND|OR|NOT|IN|IS|NULL)\b", "write and, or, not, in and is null in small letters"),
    (
        r"(?i:\b(i?like|str|(not)?contains|(starts|ends)_?with|matches|regexp?|rlike)\b)|~\s*['\"]",
        "write 'word' in topic, which is true where the text has it in it",
    ),
    (r"(?i:\b(lower|upper|casefold|strip)\b)", "list the spellings: topic in ['Cars', 'cars']"),
    (r"[!~]", "write not in the place of ! or ~"),
    (r"\d,\d|%", "write a decimal number with a point, 0.5"),
    (r";\s*$", "leave the ; out"),
    (r":", "compare with ==, and write text in quotes: topic == 'cars'"),
    (r"^\s*\w+(\s+\w+)+\s*[=!<>]", "write a name of several words in backquotes: `my group` == 1"),
    (r"[^\W\d]\w*\.\w", "write a column's name alone, and one with a point in backquotes"),
    (r"[@#?]", "write a column's name alone, and one with such a sign in backquotes"),
)
"""How other languages say it, as patterns of an expression without its texts; and what to write."""


class Mismatch(Exception):
    """An operation on values that it does not apply to."""


class Undecided(Mismatch):
    """A value where a truth is asked for."""


class Empty(Mismatch):
    """A cell without a value, of which the expression does not say what that means."""


@dataclass(frozen=True)
class Expression:
    """A checked expression. ``names`` are the columns that it reads."""

    text: str
    names: tuple[str, ...]
    value: Value

    def holds(self, row: _Row, place: str, empty: bool | None = None) -> bool:
        """Return whether it is true of a row; ``empty`` where that hangs on an empty cell.

        Raises ``UserError`` where a value is not what the operation needs (text against a number,
        an empty cell when ``empty`` is None) or where the result is neither true nor false.
        """
        do = "check the expression"
        try:
            return _truth(self.value(row))
        except Undecided as error:
            problem = f"{self.text!r}: {error}"
            do = "compare it with a value, as in toxic >= 0.5 or topic == 'cars'"
        except Empty as error:
            if empty is not None:
                return empty
            problem = f"{error}, and {self.text!r} hangs on it"
            do = "give every row a value, or say what an empty cell means, as in 'x is null or ...'"
        except (Mismatch, TypeError, ArithmeticError) as error:
            problem = f"cannot evaluate {self.text!r} ({error})"
        raise UserError(problem, where=place, do=do)

    def check(self, columns: Sequence[str], where: object) -> None:
        """Raise ``UserError`` for a name that is none of the ``columns``."""
        for name in self.names:
            if name not in columns:
                do = f"text stands in quotes: {name!r}"
                if (lower := name.lower()) in ("true", "false"):
                    do = f"write {lower.title()}"
                do = "an empty cell is asked for by x is null" if lower == "null" else do
                raise UserError(f"no column {name!r}", where=where, do=lacks(name, columns, do))


def parse(text: str) -> Expression:
    """Check an expression and make it ready to evaluate. Raises ``UserError`` with the reason."""
    names: dict[str, None] = {}
    quoted: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        name = PLACEHOLDER.format(len(quoted))
        quoted[name] = match[1]
        return name

    try:
        readable = _COLUMNS.sub(named, text.strip())
        source = _Source(names, quoted, readable.encode().splitlines())
        with warnings.catch_warnings(action="ignore"):
            # Of what Python may refuse one day, as a path with backslashes.
            tree = ast.parse(readable, mode="eval")
        value = _compile(tree.body, source)
        if isinstance(tree.body, ast.Tuple | ast.List):
            raise SyntaxError("is a list, neither true nor false")
    except SyntaxError as error:
        do = _slip(text) or "write it as in 'toxic == 1 or `my group` in [3, 4]'"
        raise UserError(f"expression {text!r}: {error.msg}", do=do) from None
    except UserError as error:
        raise UserError(error.problem, do=_slip(text) or error.do) from None
    except (RecursionError, MemoryError, ValueError):
        raise UserError("the expression cannot be read", do="write it in a simpler way") from None
    return Expression(text, tuple(names), value)


def _slip(text: str) -> str | None:
    """Return what to write in the place of what another language allows."""
    bare = _COLUMNS.sub(lambda match: "`x`" if match[1] else "''", text)
    return next((do for pattern, do in SLIPS if re.search(pattern, bare)), None)


def _cell(value: Any) -> Any:
    """Return a cell, None for an empty one: text formats have no other way to say it."""
    return None if isinstance(value, str) and not value.strip() else value


@dataclass(frozen=True)
class _Source:
    """What is known of an expression while it is compiled: the columns that it ``names``, those of
    them that are ``quoted``, by what stands for them, and its ``lines``, as Python reads it."""

    names: dict[str, None]
    quoted: Mapping[str, str]
    lines: list[bytes]

    def column(self, name: str) -> str:
        """Return the column of a name, which is one that the expression reads from now on."""
        column = self.quoted.get(name, name)
        self.names[column] = None
        return column

    def constant(self, node: ast.Constant, number: int | float) -> Constant:
        """Return a number with the digits that are written, of which a double has 17."""
        line = self.lines[node.lineno - 1]
        return Constant.written(number, line[node.col_offset : node.end_col_offset].decode())


def _compile(node: ast.expr, source: _Source) -> Value:
    """Return a function of the row that gives the node's value. Adds its columns to the names of
    the ``source``."""

    def inner(part: ast.expr) -> Value:
        return _compile(part, source)

    match node:
        case ast.Constant(value=str() | bool() as constant):
            return lambda row: constant
        case ast.Constant(value=int() | float() as written):
            number = source.constant(node, written)
            return lambda row: number
        case ast.Name(id=name):
            column = source.column(name)
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
            return lambda row: negative(_number(signed(row)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            apply, first, second = ARITHMETIC[type(op)], inner(left), inner(right)
            return lambda row: calculated(apply, _number(first(row)), _number(second(row)))
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Is() | ast.IsNot() as op],
            comparators=[ast.Name(id="null")],
        ):
            null_column = source.column(name)
            return lambda row: _is_null(row[null_column]) is isinstance(op, ast.Is)
        case ast.Compare(left=left, ops=ops, comparators=rights) if all(
            type(op) in COMPARISONS for op in ops
        ):
            sides = [inner(part) for part in (left, *rights)]
            tests = [COMPARISONS[type(op)] for op in ops]
            return lambda row: _compare([side(row) for side in sides], tests)
    shown = ast.unparse(node)
    for name, column in source.quoted.items():
        shown = shown.replace(name, f"`{column}`")
    do = "use columns, constants, comparisons, and/or/not, in, is null, and + - * / // %"
    raise UserError(f"{shown!r} is not allowed in an expression", do=do)


def _value(row: _Row, column: str) -> Any:
    value = _cell(row[column])
    if value is None:
        raise Empty(f"column {column!r} is empty")
    # Of decimals, NaN refuses to be compared.
    return math.nan if isinstance(value, Decimal) and value.is_nan() else value


def _is_null(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()
    return _cell(value) is None or (isinstance(value, float) and math.isnan(value))


def _decided(row: _Row, terms: list[Value], every: bool) -> bool:
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


def _compare(values: list[Any], tests: list[Test]) -> bool:
    return all(
        test(left, right) for left, test, right in zip(values, tests, values[1:], strict=False)
    )


def _single(compare: Callable[[Any, Any], bool]) -> Test:
    """Return a comparison of one value with another, which have to be of one kind."""

    def compared(left: Any, right: Any) -> bool:
        left_kind = KINDS.get(type(left)) or _kind(left)
        right_kind = KINDS.get(type(right)) or _kind(right)
        if left_kind == right_kind == NUMBER:
            return compare(*together(left, right))
        if left_kind == right_kind == TEXT:
            return compare(left, right)
        return compare(*_of_one_kind(left, right, left_kind, right_kind))

    return compared


def _among(item: Any, many: Any) -> bool:
    """Return whether a text has another in it, or a list a value."""
    if isinstance(item, str) and isinstance(many, str):
        return item in many
    if not isinstance(many, list | tuple):
        raise Mismatch(f"{many!r:.60} is neither text with text in it nor a list")
    # Each is compared: one of another kind is a mistake wherever it stands.
    return any([_EQUAL(item, member) for member in many if member is not None])


def _kind(value: Any) -> str:
    names = (KINDS[of] for of in type(value).__mro__ if of in KINDS)
    return next(names, f"of the type {type(value).__name__}")


def _of_one_kind(left: Any, right: Any, left_kind: str, right_kind: str) -> tuple[Any, Any]:
    """Return what is neither numbers nor texts as it is compared: a date or a time with a text that
    says one. In Python `"1" == 1` is just false; here it is a mistake that would go unnoticed."""
    shown = f"{left!r:.60} against {right!r:.60}"
    if (of := {left_kind, right_kind} - {TEXT}) in ({DATE}, {TIME}):
        read = (datetime.date if of == {DATE} else datetime.datetime).fromisoformat
        try:
            left = read(left) if left_kind == TEXT else left
            right = read(right) if right_kind == TEXT else right
        except ValueError:
            problem = f"{shown}: one is {min(of)}, and the text is none"
            raise Mismatch(f"{problem}; write it as in '2026-01-31'") from None
    elif LIST in (left_kind, right_kind):
        raise Mismatch(f"{shown}: a list is asked for a value with 'in'")
    elif TEXT in (left_kind, right_kind):
        do = "text stands in quotes, numbers without, and a column's name plainly or in backquotes"
        raise Mismatch(f"{shown}: one is text, the other is not; {do}")
    elif left_kind != right_kind:
        raise Mismatch(f"{shown}: one is {left_kind}, the other {right_kind}")
    if isinstance(left, datetime.datetime) and (left.tzinfo is None) != (right.tzinfo is None):
        raise Mismatch(f"{shown}: only one of them has a time zone")
    return left, right


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Undecided(f"{value!r:.60} is neither true nor false")
    return value


def _number(value: Any) -> CellNumber:
    # Text and lists are out: `"a" * 10**9` must not be possible.
    if isinstance(value, bool) or not isinstance(value, CellNumber):
        raise Mismatch(f"{value!r} is not a number")
    return value


NUMBER, TEXT, LIST, DATE, TIME = "a number", "text", "a list", "a date", "a time"
KINDS: dict[type, str] = {
    **dict.fromkeys((bool, int, float, Half, Single, Decimal, Constant), NUMBER),
    **{str: TEXT, list: LIST, tuple: LIST, datetime.date: DATE, datetime.datetime: TIME},
}
_EQUAL = _single(operator.eq)
ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARISONS: dict[type[ast.AST], Test] = {
    ast.Eq: _EQUAL,
    ast.NotEq: _single(operator.ne),
    ast.Lt: _single(operator.lt),
    ast.LtE: _single(operator.le),
    ast.Gt: _single(operator.gt),
    ast.GtE: _single(operator.ge),
    ast.In: _among,
    ast.NotIn: lambda item, many: not _among(item, many),
}
