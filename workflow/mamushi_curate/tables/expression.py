"""A small language for "which rows are the forget domain": ``toxic >= 1 or group in ["a", "b"]``.

It is Python's syntax, of which names (any other one in backquotes: ```my label` == 1``), constants,
lists, comparisons, ``in``, ``is null`` and ``and or not`` are allowed, evaluated by
``pyarrow.compute``: a constant has the type of the column that it is compared with. A result that
hangs on an empty cell or NaN is null: nobody has said what that means, unless ``is null`` asks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError, lacks
from mamushi_curate.tables.columnar import filled

_QUOTED = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`([^`]+)`""")
"""Text, in which no column is looked for, and columns in backquotes."""
_FUNCTIONS: dict[type[ast.AST], Any] = {
    **{ast.Eq: pc.equal, ast.NotEq: pc.not_equal, ast.Lt: pc.less, ast.LtE: pc.less_equal},
    **{ast.Gt: pc.greater, ast.GtE: pc.greater_equal, ast.Not: pc.invert},
    **{ast.And: pc.and_kleene, ast.Or: pc.or_kleene},
}
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
        hangs on an empty cell. Raises ``UserError`` where values cannot be compared, or the result
        is neither true nor false."""
        try:
            marks = _value(self.tree, {name: filled(columns[name]) for name in self.names})
            if getattr(marks, "type", None) not in (pa.bool_(), pa.null()):
                raise TypeError("its result is neither true nor false: compare it with a value")
        except (pa.ArrowException, LookupError, TypeError, AttributeError) as error:
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
    quoted = [match[1] for match in _QUOTED.finditer(text) if match[1]]
    places = iter(range(len(quoted)))
    python = _QUOTED.sub(lambda m: f"_column{next(places)}_" if m[1] else m[0], text.strip())
    bare = _QUOTED.sub("''", text)
    usual = "write it as in 'toxic == 1 or `my group` in [3, 4]'"
    do = next((words for pattern, words in _SLIPS if re.search(pattern, bare)), usual)
    try:
        tree = ast.parse(python, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        problem = f"expression {text!r:.200}: {getattr(error, 'msg', error) or 'cannot be read'}"
        raise UserError(problem, do=do) from None
    columns = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id != "null"]
    for node in columns:
        if place := re.fullmatch(r"_column(\d+)_", node.id):
            node.id = quoted[int(place[1])]
    return Expression(text, tuple(dict.fromkeys(node.id for node in columns)), tree)


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
            missing = pc.is_null(_value(left, columns), nan_is_null=True)
            return missing if isinstance(op, ast.Is) else pc.invert(missing)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(side, columns) for side in (left, *rights)]
            return reduce(pc.and_kleene, map(_compare, ops, sides, sides[1:]))
    raise TypeError(f"{ast.unparse(node)!r} is not allowed")


def _compare(op: ast.AST, left: Any, right: Any) -> Any:
    """Compare two values: columns, constants or, behind ``in``, a list or a column of texts or of
    lists."""
    if isinstance(op, ast.NotIn):
        return pc.invert(_compare(ast.In(), left, right))
    if isinstance(op, ast.In) and isinstance(right, list):
        return reduce(pc.or_kleene, [_compare(ast.Eq(), left, member) for member in right])
    if isinstance(op, ast.In):
        if not isinstance(left, str | int | float) or not hasattr(right, "type"):
            raise TypeError("'in' asks for a value in a list, or for a text in another one")
        if pa.types.is_string(right.type):
            return pc.match_substring(right, left)
        return pa.array([None if cell is None else left in cell for cell in right.to_pylist()])
    return _FUNCTIONS[type(op)](_typed(left, right), _typed(right, left))


def _typed(value: Any, other: Any) -> Any:
    """Return a value in the type in which it is compared with the ``other`` one."""
    kind = getattr(other, "type", pa.null())
    if not hasattr(value, "type"):
        takes = pa.types.is_temporal if isinstance(value, str) else pa.types.is_floating
        is_decimal = pa.types.is_decimal(kind) and not isinstance(value, str)
        scalar = pa.scalar(Decimal(str(value)) if is_decimal else value)
        return scalar.cast(kind) if takes(kind) else scalar
    is_number = pa.types.is_boolean(value.type) and isinstance(other, int | float)
    return value.cast(pa.int8()) if is_number and not isinstance(other, bool) else value
