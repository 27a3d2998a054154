"""The expression language: what it says of columns of every type, and that there is nothing else in
it."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mamushi.errors import UserError
from mamushi_curate.tables.columns import column_of
from mamushi_curate.tables.expression import evaluate

ROW = {"toxic": 0.7, "n": 3, "group": "guns", "text": "about a gun", "flag": True, "gap": None} | {
    "class": 2,
    "my label": "it's",
    "blank": " ",
    "tags": ["a", None],
    "day": pd.Timestamp("2020-01-01"),
    "hour": pd.Timestamp("2020-01-01", tz="UTC"),
}


def held(text: str, columns: dict[str, Any], *, typed: bool = True) -> list[bool | None]:
    """What an expression says of the rows of some columns."""
    arrow = {name: column_of(cells, typed=typed) for name, cells in columns.items()}
    return list(evaluate(text, arrow, "data.csv").to_pylist())


def of_row(text: str) -> bool | None:
    return held(text, {name: [cell] for name, cell in ROW.items()})[0]


VALUES: dict[str, bool | None] = {
    "toxic > 0.5 and group == 'cars'": False,
    'toxic < 0.5 or group in ["guns", "cars"]': True,
    "group not in ('guns',) or not (n == 3)": False,
    "1 <= n < 4 and not 1 <= n < 3": True,
    "'gun' in text and 'a' in tags and 'b' not in tags": True,
    "flag and flag == 1": True,
    # Columns that Python would not read as names.
    '`class` == 2 and `my label` == "it\'s"': True,
    "`my label` in ['`class`', 'a class of its own']": False,
    # What an empty cell means, said in the expression; else nobody has said it.
    "n == 3 or gap == 1": True,
    "gap == 1 and n == 4": False,
    "gap is null and n is not null and blank is null": True,
    **dict.fromkeys(("gap == 1", "gap != 1", "gap in [1, n]", "blank != ''", "gap")),
    # A date is compared with text that says one.
    "day >= '2020-01-01' and day in ['2020-01-01']": True,
    "hour < '2020-01-01T01:00:00+01:00'": False,
}


@pytest.mark.parametrize("text", VALUES)
def test_value(text: str) -> None:
    assert of_row(text) is VALUES[text]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("__import__('os')", "cannot evaluate"),
        ("text.__class__ == 1", r"text\.__class__' is not allowed"),
        *((text, "is not allowed") for text in ("`my label`[0] == 'a'", "n + 1 > 1", "n == None")),
        *((text, "write == for equal, and") for text in ("n = 3", "n == 3 && flag")),
        *((text, "as in") for text in ("n >", "", "n; n", "`a", "not " * 10_000 + "n > 0")),
        # What it says of values.
        ("group == 1", r"data.csv: cannot evaluate .*\(string, int64\).*which stands in quotes"),
        *((text, "'in' asks for a value in a list") for text in ("n in 3", "group in tags")),
        *((text, "cannot evaluate") for text in ("n and flag", "n == [3]", "day == 2020")),
        ("n", "neither true nor false"),
        ("hour > '2020-01-01'", "zone"),
    ],
)
def test_what_is_no_expression_is_told(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        of_row(text)


# Precision ----------------------------------------------------------------------------------------

FLOATS = ("float32", "float64")


@given(
    st.lists(st.floats(-2, 2) | st.just(math.nan), min_size=1, max_size=6),
    st.sampled_from(FLOATS),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.decimals(0, 2, places=3).map(str) | st.floats(0, 2).map(repr),
    st.booleans(),
)
def test_a_constant_has_the_precision_of_the_column(
    cells: list[float], kind: str, sign: str, constant: str, turned: bool
) -> None:
    # A column may have the very number that the expression names.
    array = np.array([*cells, float(constant)]).astype(kind)
    number = array.dtype.type(float(constant))
    told = {"==": array == number, "!=": array != number, "<": array < number}
    told |= {"<=": array <= number, ">": array > number, ">=": array >= number}
    assert held(f"x {sign} {constant}", {"x": array}) == told[sign].tolist()
    if turned:
        back = sign.translate(str.maketrans("<>", "><"))
        assert held(f"{constant} {back} x", {"x": array}) == told[sign].tolist()
        assert held(f"x in [-9, {constant}]", {"x": array}) == told["=="].tolist()


def test_decimals_and_large_integers_are_themselves() -> None:
    there = {"d": pa.array([Decimal("0.7"), Decimal("0.1")], pa.decimal128(3, 2))}
    assert held("d <= 0.1 and 0.1 <= d and d in [0.1]", there) == [False, True]
    assert held("d == 0.7", there) == [True, False]
    assert held(f"n > {2**53}", {"n": [2**53, 2**53 + 1]}) == [False, True]


@pytest.mark.parametrize("kind", FLOATS)
def test_nan_is_null_and_unlike_any_number(kind: str) -> None:
    there = {"x": np.array([math.nan, 1, -math.inf], kind)}
    frame = pd.DataFrame(there)
    for sign in ("==", "!=", "<", ">="):
        assert held(f"x {sign} 1", there) == frame.eval(f"x {sign} 1").tolist()
    assert held("x is null", there) == frame.x.isna().tolist() == [True, False, False]
    assert held("x >= 0", {"x": pa.array([None, math.nan], pa.float32())}) == [None, False]
