"""Numbers as an expression meets them: in the precision of their column, decimal, or written in it.

A column of single precision has no 0.7, but the number next to it, which as a double is less. So a
constant takes the precision of what it stands against, as in NumPy and pandas. Of two columns the
higher precision counts; whole numbers are exact, and in arithmetic with floating point they are
doubles. Decimals are exact among themselves and against constants and whole numbers; against
floating point they take its precision, as in SQL.

Nothing heavy is imported, since every dry run comes here.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

_EXACT = Context(prec=200)
"""Twice the digits that a decimal of Arrow can have, and more: only a quotient is rounded."""
_LONGEST = 400
"""Digits, before or behind the point, of a constant that is kept as it is written."""


class Narrow(float):
    """A number of a floating-point column of fewer than 64 bits, of which ``repr`` is the shortest
    decimal that means it there, as others print it."""

    __slots__ = ()
    code = "d"
    """Its format in ``struct`` and NumPy."""

    @classmethod
    def of(cls, value: float) -> Narrow:
        """Return the number of this precision that is nearest to a value."""
        try:
            return cls(struct.unpack(cls.code, struct.pack(cls.code, value))[0])
        except OverflowError:
            return cls(math.copysign(math.inf, value))

    def __repr__(self) -> str:
        import numpy as np

        return repr(float(str(np.array(self, self.code)[()])))

    __str__ = __repr__

    def __reduce__(self) -> Any:
        return type(self), (float(self),)


class Half(Narrow):
    """A number of 16 bits."""

    __slots__ = ()
    code = "e"


class Single(Narrow):
    """A number of 32 bits."""

    __slots__ = ()
    code = "f"


NARROW = (Half, Single)
"""From low to high."""


class Constant:
    """A number that is written in an expression: of the precision of what it stands against."""

    def __init__(self, number: int | float, exact: Decimal | int) -> None:
        self.number, self.exact = number, exact
        try:
            double = float(number)
        except OverflowError:
            double = math.inf if number > 0 else -math.inf
        # The types of cells are looked up, and a subclass of another library's is none of these.
        self._by_type: dict[type, Any] = {float: double, Decimal: exact, int: number}
        self._by_type |= {narrow: narrow.of(double) for narrow in NARROW}

    @classmethod
    def written(cls, number: int | float, text: str | None) -> Constant:
        """Return a constant by its value, and by its ``text``, which may have more digits."""
        if isinstance(number, int):
            return cls(number, number)
        if not math.isfinite(number) or not text:
            return cls(number, Decimal(number))
        exact = Decimal(text)
        _, digits, exponent = exact.as_tuple()
        spread = abs(exponent) if isinstance(exponent, int) else 0
        short = len(digits) <= _EXACT.prec and spread <= _LONGEST
        return cls(number, exact if short else Decimal(repr(number)))

    def at(self, cell: Any) -> Any:
        """Return its value in the precision of a ``cell``."""
        try:
            return self._by_type[type(cell)]
        except KeyError:
            return self.number

    def __repr__(self) -> str:
        return repr(self.number)


CellNumber = int | float | Decimal | Constant


def together(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two numbers in the precision in which they are compared and calculated with."""
    if isinstance(left, Constant):
        left = left.at(right) if not isinstance(right, Constant) else left.number
    if isinstance(right, Constant):
        right = right.at(left)
    if isinstance(left, Decimal) and isinstance(right, float):
        left = _nearest(left, type(right))
    elif isinstance(right, Decimal) and isinstance(left, float):
        right = _nearest(right, type(left))
    return left, right


def calculated(apply: Callable[[Any, Any], Any], left: CellNumber, right: CellNumber) -> CellNumber:
    """Return ``apply``, an operation of the module ``operator``, of two numbers."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        number = apply(left.number, right.number)
        if isinstance(number, int):
            return Constant(number, number)
        return Constant(number, _decimal(apply, Decimal(left.exact), Decimal(right.exact)))
    first, second = together(left, right)
    if isinstance(first, Decimal) or isinstance(second, Decimal):
        return _decimal(apply, Decimal(first), Decimal(second))
    result = apply(first, second)
    return result if (narrow := _precision(first, second)) is None else narrow.of(result)


def negative(number: CellNumber) -> CellNumber:
    """Return -``number``."""
    if isinstance(number, Constant):
        return Constant(-number.number, _minus(number.exact))
    return type(number)(-number) if isinstance(number, Narrow) else _minus(number)


def _minus(number: Any) -> Any:
    # `-` rounds a decimal to 28 digits.
    return number.copy_negate() if isinstance(number, Decimal) else -number


def _nearest(value: Decimal, kind: type) -> float:
    return kind.of(float(value)) if issubclass(kind, Narrow) else float(value)


def _precision(first: Any, second: Any) -> type[Narrow] | None:
    """Return the precision of a result, None for that of Python: a double, or whole."""
    kinds = {type(first), type(second)}
    return (Single if Single in kinds else Half) if kinds <= set(NARROW) else None


def _decimal(apply: Callable[[Any, Any], Any], left: Decimal, right: Decimal) -> Decimal:
    if apply in (operator.truediv, operator.floordiv, operator.mod) and not right:
        raise ZeroDivisionError("division by zero")
    if apply in (operator.floordiv, operator.mod):
        # Of decimals Python rounds towards zero, of all other numbers down.
        rest = _EXACT.remainder(left, right)
        if rest and (rest < 0) != (right < 0):
            rest = _EXACT.add(rest, right)
        if apply is operator.mod:
            return rest
        return _EXACT.to_integral_value(_EXACT.divide(_EXACT.subtract(left, rest), right))
    by_name = {
        operator.add: _EXACT.add,
        operator.sub: _EXACT.subtract,
        operator.mul: _EXACT.multiply,
        operator.truediv: _EXACT.divide,
    }
    return by_name[apply](left, right)


# Cells --------------------------------------------------------------------------------------------


def arrow_cells(column: Any) -> list[Any]:
    """Return the cells of an Arrow column as values of Python, None for null; numbers of fewer than
    64 bits know it. Raises what ``to_pylist`` raises."""
    convert = _converter(column.type)
    values = column.to_pylist()
    if convert is None:
        return list(values)
    return [None if value is None else convert(value) for value in values]


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """Return what makes a cell of an Arrow type of one that ``to_pylist`` gave, if anything."""
    import pyarrow as pa

    if pa.types.is_float16(kind):
        return Half
    if pa.types.is_float32(kind):
        return Single
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _converter(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _converter(kind.storage_type)
    lists = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    if any(getattr(pa.types, f"is_{name}")(kind) for name in lists):
        convert = _converter(kind.value_type)
        if convert is not None:
            return lambda value: [None if item is None else convert(item) for item in value]
    return None
