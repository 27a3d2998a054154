"""The expression language: what it computes, and that there is nothing else in it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mamushi.data.expression import parse
from mamushi.errors import UserError

ROW = {"toxic": 0.7, "n": 3, "group": "guns", "text": "about a gun", "flag": True, "gap": None} | {
    "class": 2,
    "my label": "it's",
    "blank": " ",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("toxic > 0.5 and group == 'cars'", False),
        ('toxic < 0.5 or group in ["guns", "cars"]', True),
        ("group not in ('guns',)", False),
        ("not (n == 3)", False),
        ("1 <= n < 4", True),
        ("1 <= n < 3", False),
        ("'gun' in text", True),
        ("(n + 1) * 2 - 6 == n // 2 + n % 2", True),
        ("-n / 2 == -1.5", True),
        ("flag", True),
        ("flag == False", False),
        # Columns that Python would not read as names.
        ("`class` == 2", True),
        ('`my label` == "it\'s"', True),
        ("`my label` in ['`class`', 'a class of its own']", False),
        # What an empty cell means, said in the expression.
        ("n == 3 or gap == 1", True),
        ("gap == 1 or n == 3", True),
        ("gap == 1 and n == 4", False),
        ("gap is null and n is not null", True),
        ("blank is null and `my label` is not null", True),
        ("group in ['is null', 'not like']", False),
    ],
)
def test_value(text: str, expected: bool) -> None:
    assert parse(text).holds(ROW, "row 1") is expected


def test_names_are_the_columns_in_order_of_use() -> None:
    assert parse("b > 1 and a in [b, c] or b is null").names == ("b", "a", "c")
    assert parse("`a b` > 1 or `import` < _0 or `a b` == 2").names == ("a b", "import", "_0")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("__import__('os')", "__import__"),
        ("text.__class__ == 1", "text.__class__"),
        ("`my label`[0] == 'a'", "`my label`[0]"),
        ("[x for x in text] == 1", "[x for x in text]"),
        ("(lambda: 1)()", "lambda"),
        ("n ** 9 > 1", "n ** 9"),
        ("f'{n}' == '3'", "f'{n}'"),
        ("(n := 4) == 4", "n := 4"),
        ("n is 3", "n is 3"),
        ("n == None", "None"),
        ("b'x' == text", "b'x'"),
        ("~n == 1", "~n"),
        ("1 if flag else 0", "1 if flag else 0"),
    ],
)
def test_everything_else_is_refused_and_named(text: str, part: str) -> None:
    with pytest.raises(UserError, match="is not allowed in an expression") as caught:
        parse(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "write it as in") for text in ("n >", "", "n; n", "`a")),
        ("n = 3", "write == for equal"),
        ("a == '&' and b == '=' c", "write it as in"),
        pytest.param("1 + " * 10_000 + "1 > 0", "write it ", id="long"),
        pytest.param("(" * 4000 + "1" + ")" * 4000, "write it ", id="brackets"),
        pytest.param("-" * 9000 + "1", "write it ", id="signs"),
    ],
)
def test_what_is_no_expression_is_told(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "gap == 1",
        "gap != 1",
        "gap in [1, 2]",
        "gap == n",
        "blank != ''",
        "gap + 1 > 0",
        "blank == 'x'",
    ],
)
def test_an_empty_cell_is_not_silently_retain(text: str) -> None:
    name = text.split(maxsplit=1)[0]
    with pytest.raises(UserError, match=f"^data.csv, row 7: column '{name}' is empty, and .*null"):
        parse(text).holds(ROW, "data.csv, row 7")
    assert parse(f"not ({text}) and n == 4").holds(ROW, "") is False
    # The caller may say what it means, too.
    assert parse(f"not ({text})").holds(ROW, "", empty=False) is False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("group == 1", "one is text"),
        ("n in ['a', 'b']", "one is text"),
        ("group > 1", "one is text"),
        ("text * n == 'a'", "is not a number"),
        ("flag + 1 == 2", "is not a number"),
        ("n and flag", "neither true nor false"),
        ("n / 0 > 1", "division"),
        ("n in 3", "cannot evaluate"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_row(text: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"^data.csv, row 7: .*{reason}"):
        parse(text).holds(ROW, "data.csv, row 7")


NUMBERS = st.integers(-50, 50)


@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_arithmetic_and_comparison_agree_with_python(a: int, b: int, c: int, sign: str) -> None:
    row, text = {"a": a, "b": b, "c": c}, f"a * b - c {sign} b + c"
    assert parse(text).holds(row, "") is eval(text, row.copy())


@given(st.text(max_size=60))
def test_any_text_is_either_refused_or_an_expression(text: str) -> None:
    with contextlib.suppress(UserError):
        parse(text)
