"""Numbers in the precision of their column: what NumPy and pandas say of the whole column."""

from __future__ import annotations

import math
import operator
import pickle
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from mamushi.data import readers
from mamushi.data.expression import parse
from mamushi.data.numbers import Half, Narrow, Single, arrow_cells
from mamushi.data.rows import infer, raw_columns
from mamushi.errors import UserError
from mamushi_extras.api.frames import Frame

FLOATS = ("float16", "float32", "float64")
SIGNS = {
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"==": operator.eq, "!=": operator.ne},
}
STEPS = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv},
    **{"//": operator.floordiv, "%": operator.mod},
}
TENTHS = [0.1, 0.3, 0.5, 0.7, 0.9, 0.3, 0.7]
"""Of which only one is the same in every precision."""

decimals = st.decimals(-1000, 1000, places=3)
written = decimals.map(lambda it: str(it).removeprefix("-"))
values = st.one_of(decimals.map(float), st.floats(-1e4, 1e4), st.just(math.nan), st.just(math.inf))


def held(text: str, columns: dict[str, list[Any]]) -> list[bool]:
    expression = parse(text)
    return [
        expression.holds(dict(zip(columns, row, strict=True)), "")
        for row in zip(*columns.values(), strict=True)
    ]


@settings(max_examples=600)
@given(
    st.lists(values, min_size=1, max_size=5),
    st.sampled_from(FLOATS),
    st.sampled_from([*SIGNS]),
    st.one_of(written, st.floats(0, 1e6).map(repr), st.integers(0, 10**20).map(str)),
    st.booleans(),
)
def test_a_constant_has_the_precision_of_the_column(
    column: list[float], kind: str, sign: str, constant: str, turned: bool
) -> None:
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A column may have the very number that the expression names.
        array = np.array([*column, float(constant)]).astype(kind)
        number = float(constant) if kind == "float16" else eval(constant)
        expected = SIGNS[sign](number, array) if turned else SIGNS[sign](array, number)
    text = f"{constant} {sign} x" if turned else f"x {sign} {constant}"
    assert held(text, {"x": arrow_cells(pa.array(array))}) == expected.tolist()
    if kind != "float16" and not turned:
        # Whose own `in` compares doubles, so that none is in a list of decimals.
        assert pd.DataFrame({"x": array}).eval(text).tolist() == expected.tolist()
        if sign == "==":
            member = f"x in [-1e9, {constant}]"
            assert held(member, {"x": arrow_cells(pa.array(array))}) == expected.tolist()


@settings(max_examples=400)
@given(
    st.lists(st.tuples(values, values), min_size=1, max_size=4),
    st.sampled_from(FLOATS),
    st.sampled_from([*FLOATS, "int32", "int64"]),
    st.sampled_from([*STEPS]),
    st.sampled_from([*SIGNS]),
    st.one_of(written, st.integers(1, 999).map(str)),
    st.booleans(),
)
def test_arithmetic_has_the_precision_that_numpy_gives_it(
    pairs: list[tuple[float, float]],
    kind: str,
    other: str,
    step: str,
    sign: str,
    constant: str,
    with_column: bool,
) -> None:
    first = np.array([a for a, _ in pairs]).astype(kind)
    whole = "int" in other
    finite = [b if math.isfinite(b) or not whole else 7.0 for _, b in pairs]
    second = np.array(finite).astype(other)
    second[second == 0] = 3
    number = float(constant) or 1.0
    apply, compare = STEPS[step], SIGNS[sign]
    with np.errstate(all="ignore"):
        result = apply(first, second if with_column else number)
        if step == "//" and result.dtype != np.float64:
            # Behind the precision of a column a quotient has no digits to round down.
            result = np.where(np.abs(result) < 2.0 ** (9 if kind == "float16" else 20), result, 0)
            first = np.where(result == 0, 0, first).astype(first.dtype)
            result = apply(first, second if with_column else number)
        expected = compare(result, number)
    text = f"x {step} {'y' if with_column else repr(number)} {sign} {number!r}"
    columns = {"x": arrow_cells(pa.array(first)), "y": arrow_cells(pa.array(second))}
    assert held(text, columns) == expected.tolist()
    plain = f"x {sign} y"
    assert held(plain, columns) == compare(first, second).tolist()


@given(
    st.lists(decimals, min_size=1, max_size=5),
    st.sampled_from([*SIGNS]),
    written,
    st.integers(1, 50),
)
def test_decimals_are_exact(column: list[Decimal], sign: str, constant: str, by: int) -> None:
    compare, exact = SIGNS[sign], Decimal(constant)
    there = {"d": arrow_cells(pa.array([*column, exact], pa.decimal128(12, 4)))}
    known = [*column, exact]
    assert held(f"d {sign} {constant}", there) == [compare(it, exact) for it in known]
    assert held(f"{constant} {sign} -d", there) == [compare(exact, -it) for it in known]
    expected = [compare(it * by, exact * by) for it in known]
    assert held(f"d * {by} {sign} {exact * by}", there) == expected
    assert held(f"d + {constant} {sign} {by}", there) == [compare(it + exact, by) for it in known]
    # Rounded down, as all other numbers are.
    assert held(f"d // {by} {sign} {by}", there) == [
        compare(math.floor(it / by), by) for it in known
    ]
    # Of floating point they take the precision.
    floats = {
        name: arrow_cells(pa.array(list(map(float, known)), name))
        for name in ("float32", "float64")
    }
    for column_of_floats in floats.values():
        assert all(held("d == f", there | {"f": column_of_floats}))
        assert all(held("f >= d and d <= f", there | {"f": column_of_floats}))


def test_digits_beyond_a_double_count() -> None:
    id = 12345678901234567890
    there = {"id": [id, id + 1], "d": [Decimal("0.12345678901234567890"), Decimal("0.1")]}
    assert held(f"id == {id}", there) == [True, False]
    assert held(f"id > {id}", there) == [False, True]
    assert held(f"id in [{id + 1}, 0.5]", there) == [False, True]
    assert held("d == 0.12345678901234567890", there) == [True, False]
    assert held("d > 0.12345678901234567889", there) == [True, False]
    assert held("d == 0.05 + 0.05", there) == [False, True]
    assert held("d * 3 == 0.1 + 0.1 + 0.1", there) == [False, True]
    assert held("d / 3 > 0.03333333333333333333", there) == [True, True]
    assert held("-d % 1 == 0.9", there) == [False, True]
    # A number too large for a column of floating point is above all that it has.
    assert held("x < 1e999 and x < 1" + "0" * 400, {"x": [1.5, 2.0]}) == [True, True]


@pytest.mark.parametrize("kind", FLOATS)
def test_nan_is_null_and_unlike_any_number(kind: str) -> None:
    there = {"x": arrow_cells(pa.array(np.array([math.nan, 1, -math.inf], kind)))}
    frame = pd.DataFrame({"x": np.array([math.nan, 1, -math.inf], kind)})
    for sign in SIGNS:
        assert held(f"x {sign} 1", there) == frame.eval(f"x {sign} 1").tolist()
    assert held("x is null", there) == frame.x.isna().tolist() == [True, False, False]
    assert held("x is not null and x >= 0", there) == [False, True, False]
    assert held("x == x or x in [x]", there) == [False, True, True]
    assert held("not (x >= 0.5) and x * 2 != 2", there) == [True, False, True]
    assert held("d is null or d > 1", {"d": [Decimal("NaN"), Decimal(2)]}) == [True, True]
    assert held("d > 1", {"d": [Decimal("NaN"), Decimal("Infinity")]}) == [False, True]


def test_an_empty_cell_beside_nan_stays_a_mistake() -> None:
    null, nan = arrow_cells(pa.array([None, math.nan], pa.float32()))
    assert null is None and parse("x >= 0.5").holds({"x": nan}, "") is False
    with pytest.raises(UserError, match="column 'x' is empty"):
        parse("x >= 0.5").holds({"x": null}, "row 1")


@pytest.mark.parametrize(
    ("text", "row", "said"),
    [
        ("d / 0 > 1", {"d": Decimal(1)}, "division by zero"),
        ("d // 0 > 1", {"d": Decimal(1)}, "division by zero"),
        ("x % 0 > 1", {"x": Single(1)}, "zero|modulo"),
        ("x == [1, 2]", {"x": Single(1)}, "is asked for a value with 'in'"),
        ("many == 1", {"many": [1]}, "is asked for a value with 'in'"),
        ("day == 2020", {"day": pd.Timestamp("2020-01-01")}, "one is a time, the other a number"),
        ("day > 'never'", {"day": pd.Timestamp("2020-01-01")}, "write it as in '2026-01-31'"),
        ("day > '2020-01-01'", {"day": pd.Timestamp("2020-01-01", tz="UTC")}, "time zone"),
        ("day == hour", {"day": pd.Timestamp("2020-01-01").date(), "hour": pd.Timestamp(0)}, "one"),
        ("x == d", {"x": b"1", "d": 1}, "one is of the type bytes, the other a number"),
    ],
)
def test_what_cannot_be_compared_is_told(text: str, row: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=rf"^row 7: cannot evaluate .*({said})"):
        parse(text).holds(row, "row 7")


def test_dates_are_compared_with_text_that_says_one() -> None:
    days = pa.array(pd.to_datetime(["2019-12-31", "2020-01-01"]))
    for kind in (pa.date32(), pa.timestamp("ms"), pa.timestamp("ns")):
        there = {"day": arrow_cells(days.cast(kind))}
        assert held("day >= '2020-01-01'", there) == [False, True]
        assert held("'2020-01-01' == day", there) == [False, True]
        assert held("day in ['2020-01-01', '2021-01-01']", there) == [False, True]
        assert held("day < day", there) == [False, False]
    zoned = {"day": arrow_cells(days.cast(pa.timestamp("ms", "UTC")))}
    assert held("day >= '2020-01-01T01:00:00+01:00'", zoned) == [False, True]


@given(st.floats(width=32), st.floats(width=16))
def test_a_narrow_number_is_printed_as_others_print_it(single: float, half: float) -> None:
    for number, kind in ((Single(single), np.float32), (Half(half), np.float16)):
        with np.errstate(over="ignore"):
            assert repr(number) == repr(float(str(kind(number))))
        again = pickle.loads(pickle.dumps(number))
        assert type(again) is type(number) and repr(again) == repr(number)


# Where columns come from --------------------------------------------------------------------------

COUNTS = {">= 0.7": 3, "<= 0.3": 3, "== 0.7": 2, "in [0.7, 0.1]": 3, "< 0.7": 4, "!= 0.3": 5}


def arrow(kind: str) -> Any:
    if kind == "decimal":
        return pa.array([Decimal(str(tenth)) for tenth in TENTHS], pa.decimal128(3, 2))
    return pa.array(np.array(TENTHS, kind))


FRAMES: dict[str, Any] = {
    **{f"arrow {kind}": pa.table({"x": arrow(kind)}) for kind in (*FLOATS, "decimal")},
    **{f"pandas {kind}": pd.DataFrame({"x": np.array(TENTHS, kind)}) for kind in FLOATS},
    **{
        f"pandas {kind}": pd.DataFrame({"x": TENTHS}).astype(kind)
        for kind in ("Float32", "Float64")
    },
    "pandas arrow": pd.DataFrame({"x": pd.Series(TENTHS, dtype=pd.ArrowDtype(pa.float32()))}),
    "pandas objects": pd.DataFrame({"x": pd.Series([*np.array(TENTHS, "f")], dtype=object)}),
    "pandas categories": pd.DataFrame({"x": pd.Categorical(np.array(TENTHS, "f"))}),
    "datasets": Dataset(pa.table({"x": arrow("float32")})),
    "rows": [{"x": tenth} for tenth in np.array(TENTHS, "f")],
    "rows of halves": [{"x": tenth} for tenth in np.array(TENTHS, "e")],
    "rows of decimals": [{"x": Decimal(str(tenth))} for tenth in TENTHS],
    "columns": {"x": np.array(TENTHS, "f")},
    "dictionary": pa.table({"x": arrow("float32").dictionary_encode()}),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("sign", COUNTS)
def test_a_threshold_means_the_same_in_every_frame(name: str, sign: str) -> None:
    there = Frame(FRAMES[name]).read(["x"], {}).columns
    assert sum(held(f"x {sign}", there)) == COUNTS[sign]


def test_cells_of_csv_keep_their_digits() -> None:
    assert infer(["0.7", "", "12345678901234567890"]) == [0.7, None, 12345678901234567890]
    (number, missing) = infer(["1e3", "NaN"])
    assert number == 1000 and math.isnan(missing)
    assert infer(["1_000", "2"]) == ["1_000", "2"]


@pytest.mark.parametrize("kind", [*FLOATS, "decimal"])
@pytest.mark.parametrize("sign", COUNTS)
def test_a_threshold_means_the_same_in_every_file(tmp_path: Path, kind: str, sign: str) -> None:
    table = pa.table({"x": arrow(kind), "text": ["some text"] * len(TENTHS)})
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as stream:
        stream.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        there = readers.read_file_columns(tmp_path / name, ["x"]).columns
        assert sum(held(f"x {sign}", there)) == COUNTS[sign]


def test_a_value_of_a_column_is_what_others_print(tmp_path: Path) -> None:
    """Marks by value and groups go by the names of cells."""
    pq.write_table(
        pa.table({"x": arrow("float32"), "text": ["some text"] * len(TENTHS)}),
        tmp_path / "a.parquet",
    )
    table = readers.read_file_columns(tmp_path / "a.parquet", ["x", "text"])
    settings = {"text": "text", "id": None, "section": None, "group": "x", "retain": None}
    found = raw_columns(table, settings | {"forget": {"column": "x", "values": [0.7]}})
    assert found["forget"] == [tenth == 0.7 for tenth in TENTHS]
    assert found["group"] == [str(tenth) for tenth in TENTHS]


def test_lists_of_narrow_numbers_have_their_values() -> None:
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 2)):
        there = {"many": arrow_cells(pa.array([[0.7, None], [0.1, 0.3]], kind))}
        assert held("0.7 in many", there) == [True, False]
    halves = arrow_cells(pa.array([[0.5]], pa.list_(pa.float16())))
    assert all(isinstance(it, Narrow) for it in halves[0])


def test_nan_of_a_frame_is_what_it_is_in_a_file() -> None:
    numbers = pd.DataFrame({"x": [0.9, math.nan]})
    assert held("x >= 0.5", Frame(numbers).read(["x"], {}).columns) == [True, False]
    rows_of_numbers = [{"x": 0.9}, {"x": math.nan}, {"x": None}]
    assert Frame(rows_of_numbers).read(["x"], {}).columns["x"][2] is None
    assert held("x is null", Frame(rows_of_numbers).read(["x"], {}).columns) == [False, True, True]
    # Where a number cannot stand it says that there is nothing, as of text.
    assert Frame([{"x": "a"}, {"x": math.nan}]).read(["x"], {}).columns["x"] == ["a", None]
    texts = pd.DataFrame({"x": pd.Series(["a", math.nan], dtype=object)})
    assert Frame(texts).read(["x"], {}).columns["x"] == ["a", None]
    assert Frame(numbers.astype("Float64")).read(["x"], {}).columns["x"][1] is None
