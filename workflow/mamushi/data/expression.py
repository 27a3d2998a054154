"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

It is Python's syntax, of which names (any other one in backquotes: ```my label` == 1``), constants,
lists, comparisons, ``in``, ``is null``, ``and or not`` and ``+ - * /`` are allowed, evaluated by
``pyarrow.compute``: a constant has the type of the column that it is compared with. A result that
hangs on an empty cell is null: nobody has said what that means, unless ``is null`` asks for it. NaN
is null as well, and unlike any number. Arrow is imported where an expression is evaluated.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from mamushi.errors import UserError, lacks

_COLUMNS = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`([^`]+)`""")
"""Text, in which no column is looked for, and columns in backquotes."""
_ALLOWED = (
    *(ast.Name, ast.Constant, ast.List, ast.Tuple, ast.Load, ast.BoolOp, ast.And, ast.Or),
    *(ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
)
_SLIPS = (("&", "write and in the place of &"), (r"(?<![=!<>])=(?![=>])", "write == for equal"))
"""How other languages say it, as patterns of an expression without its texts; and what to write."""
_COMPARISONS: dict[type[ast.AST], str] = {
    **{ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal"},
    **{ast.Gt: "greater", ast.GtE: "greater_equal"},
}
_ARITHMETIC: dict[type[ast.AST], str] = {
    **{ast.Add: "add_checked", ast.Sub: "subtract_checked", ast.Mult: "multiply_checked"},
    ast.Div: "divide",
}


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
        import pyarrow as pa

        try:
            marks = _truth(_value(self.tree, {name: filled(columns[name]) for name in self.names}))
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            do = "compare numbers with numbers, and text with text, which stands in quotes"
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

    def named(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        quoted[name := f"_column{len(quoted)}_"] = match[1]
        return name

    do = "write it as in 'toxic == 1 or `my group` in [3, 4]'"
    bare = _COLUMNS.sub(lambda match: "`x`" if match[1] else "''", text)
    do = next((words for pattern, words in _SLIPS if re.search(pattern, bare)), do)
    try:
        readable = _COLUMNS.sub(named, text.strip())
        with warnings.catch_warnings(action="ignore"):
            # Of what Python may refuse one day, as a path with backslashes.
            tree = ast.parse(readable, mode="eval").body
        names = _checked(tree, readable, quoted)
    except (SyntaxError, UserError) as error:
        problem = error.msg if isinstance(error, SyntaxError) else error.problem
        raise UserError(f"expression {text!r}: {problem}", do=do) from None
    except (RecursionError, MemoryError, ValueError, ArithmeticError):
        raise UserError("the expression cannot be read", do="write it in a simpler way") from None
    return Expression(text, names, tree)


def _checked(tree: ast.expr, readable: str, quoted: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns in an expression, and give constants all of their digits. Raises
    ``UserError`` for what is not allowed in one."""
    nulls, names = set[ast.AST](), dict[tuple[int, int], str]()
    nodes = [*ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.Name):
            node.id = quoted.get(node.id, node.id)
    for node in nodes:
        match node:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Name(id="null")]):
                nulls |= {node.ops[0], node.comparators[0]}
            case ast.Constant(value=float()):
                digits: Any = Decimal(ast.get_source_segment(readable, node) or "")
                node.value = digits
            case ast.Constant(value=value) if not isinstance(value, str | int):
                raise UserError(f"{value!r} is not allowed in it")
            case ast.Name(id=name) if node not in nulls:
                names[node.lineno, node.col_offset] = name
            case _ if not isinstance(node, _ALLOWED) and node not in nulls:
                shown = ast.unparse(node) or type(node).__name__
                raise UserError(f"{shown!r} is not allowed in it")
    return tuple(dict.fromkeys(names[at] for at in sorted(names)))


def column_of(cells: Any, *, typed: bool) -> Any:
    """Return cells of a column as Arrow has them. Where they are not ``typed``, as in CSV, texts
    become booleans or numbers if all that are not empty can; whole numbers beyond 64 bits stay
    texts. Raises ``UserError`` for cells of several types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = cells.arrow() if hasattr(cells, "arrow") else pa.chunked_array([pa.array(cells)])
    except (pa.ArrowException, OverflowError) as error:
        do = "give its cells one type: numbers, booleans or text"
        raise UserError(f"has cells of several types ({error})", do=do) from None
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


def _value(node: ast.AST, columns: Mapping[str, Any]) -> Any:
    """Return the value of a node: a constant of Python, a list of values, or an Arrow column."""
    import pyarrow.compute as pc

    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.Name(id=name):
            return columns[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, columns) for item in items]
        case ast.BoolOp(op=op, values=terms):
            join = pc.and_kleene if isinstance(op, ast.And) else pc.or_kleene
            return reduce(join, [_truth(_value(term, columns)) for term in terms])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return pc.invert(_truth(_value(operand, columns)))
        case ast.UnaryOp(operand=operand):
            value = _value(operand, columns)
            return -value if isinstance(value, int | Decimal) else pc.negate_checked(value)
        case ast.BinOp(left=left, op=op, right=right):
            return _calculated(type(op), _value(left, columns), _value(right, columns))
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op]):
            found = pc.is_null(_value(left, columns), nan_is_null=True)
            return found if isinstance(op, ast.Is) else pc.invert(found)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(side, columns) for side in (left, *rights)]
            return reduce(pc.and_kleene, map(_compared, ops, sides, sides[1:]))
    raise TypeError(type(node).__name__)


def filled(column: Any) -> Any:
    """Return a column in which texts of white space are null: text formats have no other way to say
    that a cell is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return column
    empty = pc.equal(pc.utf8_trim_whitespace(column), "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), column)


def _truth(value: Any) -> Any:
    import pyarrow as pa

    if isinstance(value, bool):
        return pa.scalar(value)
    if hasattr(value, "type") and value.type in (pa.bool_(), pa.null()):
        return value.cast(pa.bool_())
    raise TypeError("its result is neither true nor false: compare it with a value")


def _compared(op: ast.cmpop, left: Any, right: Any) -> Any:
    import pyarrow.compute as pc

    if isinstance(op, ast.In | ast.NotIn):
        found = _contained(left, right)
        return found if isinstance(op, ast.In) else pc.invert(found)
    return getattr(pc, _COMPARISONS[type(op)])(*_together(left, right))


def _contained(item: Any, many: Any) -> Any:
    """Return whether a list has a value, or a column of texts or lists a constant."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(many, list):
        equal = [_compared(ast.Eq(), item, member) for member in many]
        return reduce(pc.or_kleene, equal, pa.scalar(False))
    if isinstance(item, str) and hasattr(many, "type") and pa.types.is_string(many.type):
        return pc.match_substring(many, item)
    if hasattr(item, "type") or not hasattr(getattr(many, "type", None), "value_type"):
        raise TypeError("'in' asks for a value in a list, or for a text in another one")
    lists = pa.concat_arrays(many.chunks)
    hits = pc.fill_null(_compared(ast.Eq(), item, pc.list_flatten(lists)), False)
    found = np.zeros(len(lists), dtype=np.bool_)
    found[pc.list_parent_indices(lists).filter(hits)] = True
    return pa.array(found, mask=np.asarray(lists.is_null()))


def _together(left: Any, right: Any) -> list[Any]:
    """Return two values as Arrow has them, of types that it compares and calculates with."""
    import pyarrow as pa

    types, pair = pa.types, [left, right]
    if list in map(type, pair):
        raise TypeError("a list is asked for a value with 'in'")
    for at, value in enumerate(pair):
        if not hasattr(value, "type"):
            pair[at] = _constant(value, getattr((right, left)[at], "type", None))
    for at, value in enumerate(pair):
        other = pair[1 - at].type
        if types.is_boolean(value.type) and not types.is_boolean(other):
            pair[at] = value.cast(pa.int8())
        elif types.is_float16(value.type):
            pair[at] = value.cast(pa.float32())
        elif types.is_decimal(value.type) and types.is_floating(other):
            # As text: the library multiplies by a power of ten, and may miss the nearest double.
            pair[at] = value.cast(pa.string()).cast(other)
    return pair


def _constant(value: Any, kind: Any) -> Any:
    """Return a constant as a column of a type takes it; None stands for another constant."""
    import pyarrow as pa

    types = pa.types
    if isinstance(value, str):
        return pa.scalar(value).cast(kind) if kind and types.is_temporal(kind) else pa.scalar(value)
    if isinstance(value, bool) and kind in (None, pa.bool_()):
        return pa.scalar(value)
    if kind is not None and types.is_decimal(kind):
        return pa.scalar(Decimal(value))
    if kind is not None and types.is_floating(kind):
        return pa.scalar(float(Decimal(value))).cast(kind)
    if value == int(value):
        with suppress(pa.ArrowException, OverflowError):
            return pa.scalar(int(value), kind if kind and types.is_integer(kind) else pa.int64())
    return pa.scalar(float(Decimal(value)))


def _calculated(op: type[ast.operator], left: Any, right: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    # No sum of small integers is too large for its type.
    wide = pa.float64() if op is ast.Div else pa.int64()
    pair = [
        value.cast(wide) if pa.types.is_integer(value.type) else value
        for value in _together(left, right)
    ]
    return getattr(pc, _ARITHMETIC[op])(*pair)
