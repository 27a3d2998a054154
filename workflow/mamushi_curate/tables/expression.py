"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

It is Python's syntax, names also in backquotes (```my label` == 1``), evaluated by Arrow. A
constant has the type of what it is compared with. What hangs on an empty cell or NaN is null.
"""

import ast
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError
from mamushi_curate.tables.columns import filled

_QUOTED = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`([^`]+)`""")
"""Text, in which no column is looked for, and columns in backquotes."""
_FUNCTIONS: dict[type[ast.AST], Any] = {
    **{ast.Eq: pc.equal, ast.NotEq: pc.not_equal, ast.And: pc.and_kleene, ast.Or: pc.or_kleene},
    **{ast.Lt: pc.less, ast.LtE: pc.less_equal, ast.Gt: pc.greater, ast.GtE: pc.greater_equal},
}


def columns_in(expression: str) -> list[str]:
    """Return the columns that an expression reads. Raises ``UserError`` for what is none."""
    names = [node.id for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name)]
    return [name for name in dict.fromkeys(names) if name != "null"]


def evaluate(expression: str, columns: Mapping[str, Any], where: object) -> pa.ChunkedArray:
    """Return whether an expression is true of each row of Arrow ``columns`` (n,), null where that
    hangs on an empty cell. Raises ``UserError`` where it is neither true nor false."""
    try:
        marks = _value(_parse(expression), {name: filled(cells) for name, cells in columns.items()})
        if not hasattr(marks, "null_count") or marks.type not in (pa.bool_(), pa.null()):
            raise TypeError("its result is neither true nor false: compare columns with values")
    except (pa.ArrowException, LookupError, TypeError, AttributeError) as error:
        do = "compare numbers with numbers, and text with text, which stands in quotes"
        raise UserError(f"cannot evaluate {expression!r} ({error})", where=where, do=do) from None
    return marks.cast(pa.bool_())


def _parse(text: str) -> ast.expr:
    # A name in backquotes is written in digits, as Python allows it.
    python = _QUOTED.sub(lambda m: f"_q{m[1].encode().hex()}" if m[1] else m[0], text.strip())
    try:
        tree = ast.parse(python, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        do = "write == for equal, and, or and not, as in 'a == 1 and not `my b` in [3, 4]'"
        problem = f"expression {text!r:.200}: {getattr(error, 'msg', error) or 'cannot be read'}"
        raise UserError(problem, do=do) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and re.fullmatch("_q([0-9a-f]{2})+", node.id):
            node.id = bytes.fromhex(node.id[2:]).decode()
    return tree


def _value(node: ast.AST, columns: Mapping[str, Any]) -> Any:
    """Return the value of a node: a constant of Python, a list of values, or an Arrow column."""
    match node:
        case ast.Constant(value=str() | int() | float() as constant):
            return constant
        case ast.Name(id=name):
            return columns[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, columns) for item in items]
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, columns)
            return pc.invert(value) if isinstance(op, ast.Not) else -value
        case ast.BoolOp(op=op, values=terms):
            return reduce(_FUNCTIONS[type(op)], [_value(term, columns) for term in terms])
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op]):
            is_null = pc.is_null(_value(left, columns), nan_is_null=True)
            return is_null if isinstance(op, ast.Is) else pc.invert(is_null)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(side, columns) for side in (left, *rights)]
            return reduce(pc.and_kleene, map(_compare, ops, sides, sides[1:]))
    raise TypeError(f"{ast.unparse(node)!r} is not allowed")


def _compare(op: ast.AST, left: Any, right: Any) -> Any:
    """Compare two values; behind ``in`` stands a list, or a column of texts or of lists."""
    if isinstance(op, ast.NotIn):
        return pc.invert(_compare(ast.In(), left, right))
    if not isinstance(op, ast.In):
        return _FUNCTIONS[type(op)](_cast_like(left, right), _cast_like(right, left))
    if isinstance(right, list):
        return reduce(pc.or_kleene, [_compare(ast.Eq(), left, member) for member in right])
    if not (isinstance(left, str | int | float) and hasattr(right, "type")):
        raise TypeError("'in' asks for a value in a list, or for a text in another one")
    return pa.array([None if cell is None else left in cell for cell in right.to_pylist()])


def _cast_like(value: Any, other: Any) -> Any:
    """Return a value in the type in which it is compared with the ``other`` one."""
    if hasattr(value, "type"):
        is_number = pa.types.is_boolean(value.type) and type(other) in (int, float)
        return value.cast(pa.int8()) if is_number else value
    kind = getattr(other, "type", pa.null())
    takes = pa.types.is_temporal if isinstance(value, str) else pa.types.is_floating
    is_exact = pa.types.is_decimal(kind) and not isinstance(value, str)
    scalar = pa.scalar(Decimal(str(value)) if is_exact else value)
    return scalar.cast(kind) if takes(kind) else scalar
