"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

It is Python's syntax, of which names (any other one in backquotes: ```my label` == 1``), constants,
lists, comparisons, ``in``, ``is null``, ``and or not`` and ``+ - * /`` are allowed, evaluated by
``pyarrow.compute``: a constant has the type of the column that it is compared with. A result that
hangs on an empty cell is null: nobody has said what that means, unless ``is null`` asks for it. NaN
is null as well, and unlike any number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError, lacks

_QUOTED = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`([^`]+)`""")
"""Text, in which no column is looked for, and columns in backquotes."""
_OPERATORS: dict[type[ast.AST], str] = {
    **{ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal"},
    **{ast.Gt: "greater", ast.GtE: "greater_equal", ast.And: "and_kleene", ast.Or: "or_kleene"},
    **{ast.Add: "add_checked", ast.Sub: "subtract_checked", ast.Mult: "multiply_checked"},
    **{ast.Div: "divide", ast.Not: "invert", ast.USub: "negate_checked"},
}
_ALLOWED: tuple[type[ast.AST], ...] = (
    *(ast.Name, ast.Load, ast.List, ast.Tuple, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare),
    *(ast.In, ast.NotIn),
    *_OPERATORS,
)
_SLIPS = (("&", "write and in the place of &"), (r"(?<![=!<>])=(?![=>])", "write == for equal"))
"""How other languages say it, as patterns of an expression without its texts; and what to write."""


@dataclass(frozen=True)
class Expression:
    """A checked expression. ``names`` are the columns that it reads."""

    text: str
    names: tuple[str, ...]
    tree: ast.expr

    def marks(self, columns: Mapping[str, Any], n: int, where: object) -> list[bool | None]:
        """Return whether it is true of each of ``n`` rows of Arrow ``columns``, None where that
        hangs on an empty cell. Raises ``UserError`` where values are not what an operation needs,
        or the result is neither true nor false."""
        try:
            marks = _value(self.tree, {name: filled(columns[name]) for name in self.names})
            if getattr(marks, "type", None) not in (pa.bool_(), pa.null()):
                raise TypeError("its result is neither true nor false: compare it with a value")
        except (pa.ArrowException, ArithmeticError, TypeError, AttributeError) as error:
            do = "compare numbers with numbers, and text with text, which stands in quotes; a cell "
            do += "of CSV that is no number makes its whole column text"
            problem = f"cannot evaluate {self.text!r} ({error})"
            raise UserError(problem, where=where, do=do) from None
        return [marks.as_py()] * n if isinstance(marks, pa.Scalar) else list(marks.to_pylist())

    def check(self, columns: Sequence[str], where: object) -> None:
        """Raise ``UserError`` for a name that is none of the ``columns``."""
        for name in self.names:
            if name not in columns:
                do = lacks(name, columns, f"text stands in quotes: {name!r}")
                raise UserError(f"no column {name!r}", where=where, do=do)


def parse(text: str) -> Expression:
    """Check an expression and make it ready to evaluate. Raises ``UserError`` with the reason."""
    quoted: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        quoted[name := f"_column{len(quoted)}_"] = match[1]
        return name

    bare = _QUOTED.sub(lambda match: "`x`" if match[1] else "''", text)
    usual = "write it as in 'toxic == 1 or `my group` in [3, 4]'"
    do = next((words for pattern, words in _SLIPS if re.search(pattern, bare)), usual)
    try:
        tree = ast.parse(_QUOTED.sub(placeholder, text.strip()), mode="eval").body
        names = _column_names(tree, quoted)
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        problem = f"expression {text!r:.200}: {getattr(error, 'msg', error) or 'cannot be read'}"
        raise UserError(problem, do=do) from None
    return Expression(text, names, tree)


def _column_names(tree: ast.expr, quoted: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns in an expression, whose names in backquotes are put back. Raises
    ``ValueError`` for what is not allowed in one."""
    names, nulls = dict[tuple[int, int], str](), set[ast.AST]()
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Name(id="null")]):
                nulls |= {node.ops[0], node.comparators[0]}
            case ast.Name() if node not in nulls:
                node.id = quoted.get(node.id, node.id)
                names[node.lineno, node.col_offset] = node.id
            case ast.Constant(value=str() | int() | float()):
                pass
            case _ if not isinstance(node, _ALLOWED) and node not in nulls:
                raise ValueError(f"{ast.unparse(node) or type(node).__name__!r} is not allowed")
    return tuple(dict.fromkeys(names[at] for at in sorted(names)))


def column_of(cells: Any, *, typed: bool) -> Any:
    """Return cells of a column as Arrow has them. Where they are not ``typed``, as in CSV, texts
    become booleans or numbers if all that are not empty can; whole numbers beyond 64 bits stay
    texts. Raises ``pa.ArrowException`` or ``OverflowError`` for cells of several types."""
    column = cells.arrow() if hasattr(cells, "arrow") else pa.chunked_array([pa.array(cells)])
    if typed:
        return column
    text = pc.utf8_trim_whitespace(filled(column))
    if pc.all(pc.is_in(pc.utf8_lower(text), pa.array(["true", "false", None]))).as_py():
        return pc.equal(pc.utf8_lower(text), "true")
    is_long = pc.any(pc.match_substring_regex(text, r"^[+-]?\d{16,}$")).as_py()
    for kind in (pa.int64(), pa.int64() if is_long else pa.float64()):
        with suppress(pa.ArrowException):
            return text.cast(kind)
    return column


def filled(column: Any) -> Any:
    """Return a column in which texts of white space are null: text formats have no other way to say
    that a cell is empty."""
    if not pa.types.is_string(column.type):
        return column
    empty = pc.equal(pc.utf8_trim_whitespace(column), "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), column)


def _value(node: ast.AST, columns: Mapping[str, Any]) -> Any:
    """Return the value of a node: a constant of Python, a list of values, or an Arrow column."""
    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.Name(id=name):
            return columns[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, columns) for item in items]
        case ast.BoolOp(op=op, values=terms):
            return reduce(getattr(pc, _OPERATORS[type(op)]), [_value(t, columns) for t in terms])
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, columns)
            return getattr(pc, _OPERATORS[type(op)])(value) if hasattr(value, "type") else -value
        case ast.BinOp(left=left, op=op, right=right):
            return _operate(op, _value(left, columns), _value(right, columns))
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op]):
            missing = pc.is_null(_value(left, columns), nan_is_null=True)
            return missing if isinstance(op, ast.Is) else pc.invert(missing)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(side, columns) for side in (left, *rights)]
            return reduce(pc.and_kleene, map(_operate, ops, sides, sides[1:]))
    raise TypeError(type(node).__name__)


def _operate(op: ast.AST, left: Any, right: Any) -> Any:
    """Return what an operator makes of two values: columns, constants or, behind ``in``, a list."""
    if isinstance(op, ast.In | ast.NotIn):
        contained = _contains(right, left)
        return contained if isinstance(op, ast.In) else pc.invert(contained)
    pair = [_typed(left, right), _typed(right, left)]
    for at, value in enumerate(pair):
        divides = isinstance(op, ast.Div) and pa.types.is_integer(value.type)
        if divides or pa.types.is_float16(value.type):
            pair[at] = value.cast(pa.float64())
        elif pa.types.is_boolean(value.type) and not pa.types.is_boolean(pair[1 - at].type):
            pair[at] = value.cast(pa.int8())
    return getattr(pc, _OPERATORS[type(op)])(*pair)


def _typed(value: Any, other: Any) -> Any:
    """Return a value as Arrow has it: a constant in the type of the ``other`` one, a column."""
    kind = getattr(other, "type", pa.null())
    if hasattr(value, "type"):
        return value
    if pa.types.is_temporal(kind) if isinstance(value, str) else pa.types.is_floating(kind):
        return pa.scalar(value).cast(kind)
    is_decimal = pa.types.is_decimal(kind) and not isinstance(value, str)
    return pa.scalar(Decimal(str(value)) if is_decimal else value)


def _contains(many: Any, item: Any) -> Any:
    """Return whether a list has a value, or a column of texts or of lists a constant."""
    if isinstance(many, list):
        equal = [_operate(ast.Eq(), item, member) for member in many]
        return reduce(pc.or_kleene, equal, pa.scalar(False))
    if not isinstance(item, str | int | float) or not hasattr(many, "type"):
        raise TypeError("'in' asks for a value in a list, or for a text in another one")
    if pa.types.is_string(many.type):
        return pc.match_substring(many, item)
    return pa.array([None if cell is None else item in cell for cell in many.to_pylist()])
