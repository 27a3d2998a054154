"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

Names are columns. One that Python would not read as a name, with a space in it or such as
``class``, stands in backquotes, or in double quotes as in SQL: these mean text where the comparison
names another column, and a column where text would make no sense (``"class" == 0``). Text in single
quotes is always text. An empty cell is a mistake where the result hangs on it, unless it is
compared with ``None`` or ``''``, or asked for with ``is null``: nobody has said what it means.
There are constants, lists of them, comparisons (``== != < <= > >= in not in``), ``is null``,
``is not null``, ``like`` and ``not like`` (``%`` any characters, ``_`` one), ``and or not`` and the
arithmetic ``+ - * / // %`` on numbers. There is nothing else: the expression is read into a syntax
tree, and a node that is not among these is refused; so nothing in it can call, import, or take
unbounded time.
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
SINGLE, DOUBLE = r"'(?:[^'\\\n]|\\.)*'", r'"(?:[^"\\\n]|\\.)*"'
WORDS = re.compile(
    rf"""(?P<like>\b(?:not\s+)?like\s*)(?P<pattern>{SINGLE}|{DOUBLE})|"""
    rf"""(?P<text>{SINGLE}|(?<=\w){DOUBLE})|(?P<quoted>{DOUBLE})|`(?P<column>[^`]+)`|"""
    r"""(?P<null>\bis\s+(?:not\s+)?null\b)|"""
    rf"""(?<![\w.])(?P<keyword>{"|".join(sorted({*keyword.kwlist} - SYNTAX))})(?!\w)""",
    re.IGNORECASE,
)
"""What Python would not read, or in another way, and text, in which none of it is looked for."""


class Like:
    """A pattern of ``like``, which contains the texts that match it as a whole."""

    def __init__(self, pattern: str) -> None:
        parts = ["".join("." if c == "_" else re.escape(c) for c in p) for p in pattern.split("%")]
        # In atomic groups, so that no pattern takes longer than its length times that of the text.
        inner = "".join(f"(?>.*?{part})" for part in parts[1:-1])
        last = f".*{parts[-1]}" if len(parts) > 1 else ""
        self.pattern = re.compile(parts[0] + inner + last, re.DOTALL)

    def __contains__(self, item: Any) -> bool:
        if not isinstance(item, str):
            raise Mismatch(f"{item!r} is not text, which `like` needs")
        return self.pattern.fullmatch(item) is not None


class Quoted(str):
    """What stands in double quotes: text or a column."""


class Mismatch(Exception):
    """An operation on values that it does not apply to."""

    do = "check the expression"


class Empty(Mismatch):
    """A cell without a value, of which the expression does not say what that means."""

    def __init__(self, column: str) -> None:
        super().__init__(f"column {column!r} is empty")
        means = f"{in_quotes(column)} != None and ..."
        self.do = f"give every row a value, or say what an empty cell means, as in {means!r}"


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
        for name in self.names:
            if isinstance(row[name], float) and not math.isfinite(row[name]):
                what = f"column {name!r} is {row[name]}"
                raise UserError(what, where=place, do="give every row a value")
        try:
            return _truth(self.value(row))
        except (Mismatch, TypeError, ZeroDivisionError, OverflowError) as error:
            if isinstance(error, Empty) and empty is not None:
                return empty
            what, do = f"cannot evaluate {self.text!r} ({error})", getattr(error, "do", Mismatch.do)
            raise UserError(what, where=place, do=do) from None


def parse(text: str) -> Expression:
    """Check an expression and make it ready to evaluate. Raises ``UserError`` with the reason."""
    if len(text) > LONGEST:
        raise UserError(f"an expression of {len(text)} characters", do=f"allowed are {LONGEST}")
    names: dict[str, None] = {}
    try:
        readable, words = plain(text.strip())
        value = _compile(ast.parse(readable, mode="eval").body, names, words, column=True)
    except SyntaxError as error:
        do = "write it as in 'toxic == 1 or `my group` in [3, 4]'"
        raise UserError(f"expression {text!r}: {error.msg}", do=do) from None
    except (RecursionError, MemoryError, ValueError):
        raise UserError("the expression cannot be read", do="write it in a simpler way") from None
    return Expression(text, tuple(names), value)


def plain(text: str) -> tuple[str, dict[str, str | Like]]:
    """Return the expression as Python can read it, and what the names that were put into it stand
    for: a column, what is quoted, or a pattern."""
    prefix = "_"
    while prefix in text:
        prefix += "_"
    words: dict[str, str | Like] = {}

    def named(found: re.Match[str]) -> str:
        name, column = f"{prefix}{len(words)}_", found["column"] or found["keyword"]
        if found["like"]:
            words[name] = Like(ast.literal_eval(found["pattern"]))
            return f"{'not ' if found['like'].lower().startswith('not') else ''}in {name}"
        if found["null"]:
            return f"{'!=' if 'not' in found['null'].lower() else '=='} None"
        if found["quoted"] and found["quoted"][1:-1].strip():
            words[name] = Quoted(ast.literal_eval(found["quoted"]))
        # Keywords are what they are in lower case, or as Python has them.
        elif column and (found["column"] or column in keyword.kwlist):
            words[name] = column
        else:
            return found[0]
        return name

    return WORDS.sub(named, text), words


def in_quotes(column: str) -> str:
    """Return a column as it is written in an expression."""
    return column if column.isidentifier() and column not in SYNTAX else f"`{column}`"


def _cell(value: Any) -> Any:
    """Return a cell, None for an empty one: text formats have no other way to say it."""
    return None if isinstance(value, str) and not value.strip() else value


def _filled(row: Row, column: str) -> Any:
    if (value := _cell(row[column])) is None:
        raise Empty(column)
    return value


def _compile(
    node: ast.expr,
    names: dict[str, None],
    words: Mapping[str, str | Like],
    *,
    may_be_empty: bool = False,
    column: bool = False,
) -> Value:
    """Return a function of the row that gives the node's value. Adds its columns to ``names``.

    ``may_be_empty``: what the node is compared with says what an empty cell means. ``column``: what
    stands in double quotes here is a column.
    """

    def inner(part: ast.expr, column: bool = True) -> Value:
        return _compile(part, names, words, column=column)

    match node:
        case ast.Constant(value=str() | int() | float() | None as constant):
            value = _cell(constant)
            return lambda row: value
        case ast.Name(id=name):
            word = words.get(name, name)
            if isinstance(word, Like) or (isinstance(word, Quoted) and not column):
                return lambda row: word
            read = str(word)
            names[read] = None
            return lambda row: _cell(row[read]) if may_be_empty else _filled(row, read)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            members = [inner(item, column=False) for item in items]
            return lambda row: [member(row) for member in members]
        case ast.BoolOp(op=op, values=operands):
            terms = [inner(operand) for operand in operands]
            return lambda row: _decided(row, terms, every=isinstance(op, ast.And))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            negated = inner(operand)
            return lambda row: not _truth(negated(row))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            signed, factor = inner(operand), -1 if isinstance(sign, ast.USub) else 1
            return lambda row: factor * _number(signed(row))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            apply, first, second = ARITHMETIC[type(op)], inner(left), inner(right)
            return lambda row: apply(_number(first(row)), _number(second(row)))
        case ast.Compare(left=left, ops=ops, comparators=rights) if all(
            type(op) in COMPARISONS for op in ops
        ):
            parts = [left, *rights]
            empties = any(_says_empty(part) for part in parts)
            meant = _column_among(parts, words)
            sides = [
                _compile(part, names, words, may_be_empty=empties, column=part is meant)
                for part in parts
            ]
            tests = [COMPARISONS[type(op)] for op in ops]
            return lambda row: _compare([side(row) for side in sides], tests)
    shown = ast.unparse(node)
    for name, word in words.items():
        shown = shown.replace(name, in_quotes(str(word)))
    do = "use columns, constants, comparisons, and/or/not, in, like, is null, and + - * / // %"
    raise UserError(f"{shown!r} is not allowed in an expression", do=do)


def _column_among(parts: list[ast.expr], words: Mapping[str, str | Like]) -> ast.expr | None:
    """Return the part of a comparison in double quotes that is a column: the first, where no other
    part has a column in it. Raises ``UserError`` where none can be one."""
    quoted = []
    for part in parts:
        inside = [words.get(n.id, n.id) for n in ast.walk(part) if isinstance(n, ast.Name)]
        doubtful = isinstance(part, ast.Name | ast.List | ast.Tuple | ast.Set)
        if any(not isinstance(each, Like | Quoted) or not doubtful for each in inside):
            return None
        if isinstance(part, ast.Name) and isinstance(inside[0], Quoted):
            quoted.append(part)
    if not quoted:
        do = "write a column's name plainly, or in backquotes: `my column` == 1"
        raise UserError("a comparison without a column", do=do)
    return quoted[0]


def _says_empty(side: ast.expr) -> bool:
    """Return whether a side of a comparison is ``None`` or ``''``, or a list with one of them."""
    parts = side.elts if isinstance(side, ast.List | ast.Tuple | ast.Set) else [side]
    return any(isinstance(part, ast.Constant) and part.value in (None, "") for part in parts)


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
            mixed = isinstance(left, str) != isinstance(other, str)
            if mixed and None not in (left, other) and not isinstance(other, Like):
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
