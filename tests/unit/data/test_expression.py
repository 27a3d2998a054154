"""The expression language: what it computes, and that there is nothing else in it."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mamushi.data.expression import LONGEST, parse, plain
from mamushi.errors import UserError

ROW = {"toxic": 0.7, "n": 3, "group": "guns", "text": "about a gun", "flag": True, "gap": None} | {
    "class": 2,
    "my label": "it's",
    "blank": " ",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("toxic > 0.5", True),
        ("toxic > 0.5 and group == 'cars'", False),
        ("toxic < 0.5 or group in ['guns', 'cars']", True),
        ("group not in ('guns',)", False),
        ("not (n == 3)", False),
        ("1 <= n < 4", True),
        ("1 <= n < 3", False),
        ("'gun' in text", True),
        ("(n + 1) * 2 - 6 == n // 2 + n % 2", True),
        ("-n / 2 == -1.5", True),
        ("flag", True),
        ("flag == False", False),
        ("gap == None", True),
        ("gap != None and gap > 1", False),
        ("n in {1, 2, 3}", True),
        # Columns that Python would not read as names.
        ("class == 2 and n == 3", True),
        ("`class` == 2", True),
        ('`my label` == "it\'s"', True),
        ("`my label` in ['`class`', 'a class of its own']", False),
        # What an empty cell means, said in the expression.
        ("gap in [1, None]", True),
        ("None == gap or gap > 1", True),
        ("blank == ''", True),
        ("blank == None", True),
        ("blank != '' and blank == 'x'", False),
        ("n == 3 or gap == 1", True),
        ("gap == 1 or n == 3", True),
        ("gap == 1 and n == 4", False),
        ("gap is null and n IS NOT NULL", True),
        ("blank is null and `my label` is not null", True),
        ("group in ['is null', 'not like']", False),
        # Double quotes: a column where text would make no sense.
        ('"class" == 2', True),
        ('3 > "class"', True),
        ('"my label" == "it\'s"', True),
        ('"my label" is not null and "class" in [1, 2]', True),
        ('1 < "class" + 1 and "flag" and not ("class" == 3)', True),
        ('-"class" == -2', True),
        ('group == "guns" or group in ["class"]', True),
        ('"group" in text', False),
        # % for any characters, _ for one.
        ("text like 'about%' and text like '%gun' and text like '%out a%'", True),
        ("text like 'about'", False),
        ("text like '_bout a gun'", True),
        ("text like '%gun_'", False),
        ("text not like '%(gun|about)%'", True),
        ("group like '%g%u%n%s%' and group like '%' and group like 'guns%'", True),
        ("group like 'gun%uns'", False),
        ('"my label" like "%\'%"', True),
    ],
)
def test_value(text: str, expected: bool) -> None:
    assert parse(text).holds(ROW, "row 1") is expected


def test_names_are_the_columns_in_order_of_use() -> None:
    assert parse("b > 1 and a in [b, c] or b == 2").names == ("b", "a", "c")
    assert parse("`a b` > 1 or import < _0 or `a b` == 2").names == ("a b", "import", "_0")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("__import__('os')", "__import__"),
        ("text.upper() == 'A'", "text.upper()"),
        ("text.__class__ == 1", "text.__class__"),
        ("text[0] == 'a'", "text[0]"),
        ("`my label`[0] == 'a'", "`my label`[0]"),
        ("[x for x in text] == 1", "[x for x in text]"),
        ("(lambda: 1)()", "lambda"),
        ("n ** 9 > 1", "n ** 9"),
        ("n << 9 > 1", "n << 9"),
        ("f'{n}' == '3'", "f'{n}'"),
        ("(n := 4) == 4", "n := 4"),
        ("n is None", "n is None"),
        ("b'x' == text", "b'x'"),
        ("... == n", "..."),
        ("1j == n", "1j"),
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
        *(
            (text, "write it as in")
            for text in ("n >", "", "n = 3", "import os", "n; n", "a b > 1", "`a")
        ),
        ("'class' == 0", "without a column; write a column's name plainly"),
        pytest.param("1 + " * LONGEST + "1 > 0", f"allowed are {LONGEST}", id="long"),
        pytest.param("(" * 4000 + "1" + ")" * 4000, "write it ", id="brackets"),
        pytest.param("-" * 9000 + "1", "write it ", id="signs"),
    ],
)
def test_what_is_no_expression_is_told(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(text)


@pytest.mark.parametrize(
    "text", ["gap == 1", "gap != 1", "gap in [1, 2]", "gap == n", "gap + 1 > 0", "blank == 'x'"]
)
def test_an_empty_cell_is_not_silently_retain(text: str) -> None:
    name = text.split(maxsplit=1)[0]
    with pytest.raises(UserError, match=f"^data.csv, row 7: .*column '{name}' is empty") as caught:
        parse(text).holds(ROW, "data.csv, row 7")
    assert str(caught.value).endswith(
        f"say what an empty cell means, as in '{name} != None and ...'"
    )


@pytest.mark.parametrize("column", ["a b", "class", "and", "None"])
def test_the_remedy_names_the_column_as_it_can_be_read(column: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(f"`{column}` == 1").holds({column: None}, "row 7")
    remedy = str(caught.value).rpartition(" as in '")[2].removesuffix(" and ...'")
    assert parse(remedy).holds({column: 1}, "row 7") is True


def test_what_an_empty_cell_means_can_be_said_by_the_caller() -> None:
    for text in ("gap == 1", "not (gap == 1)", "gap like 'a%'", "gap == 1 or n == 4"):
        assert parse(text).holds(ROW, "row 7", empty=False) is False


def test_a_pattern_of_many_parts_takes_no_longer() -> None:
    # A regular expression would try the a's in all ways.
    text = "a" * 3000 + "b"
    assert parse(f"text like '{'%a' * 1000}%c'").holds({"text": text}, "row 7") is False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("group == 1", "one is text"),
        ("n in ['a', 'b']", "one is text"),
        ("group > 1", "one is text"),
        ("gap > 1", "cannot evaluate"),
        ("text * n == 'a'", "is not a number"),
        ("flag + 1 == 2", "is not a number"),
        ("n and flag", "neither true nor false"),
        ("n", "neither true nor false"),
        ("n / 0 > 1", "division"),
        ("n in 3", "cannot evaluate"),
        ("n like '3'", "is not text"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_row(text: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        parse(text).holds(ROW, "data.csv, row 7")
    assert str(caught.value).startswith("data.csv, row 7: ")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_column_is_told(value: float) -> None:
    with pytest.raises(UserError, match="row 7: column 'toxic' is"):
        parse("toxic > 0.5").holds({"toxic": value}, "row 7")


NUMBERS = st.integers(-50, 50)


@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_arithmetic_and_comparison_agree_with_python(a: int, b: int, c: int, sign: str) -> None:
    row, text = {"a": a, "b": b, "c": c}, f"a * b - c {sign} b + c"
    assert parse(text).holds(row, "") is eval(text, row.copy())


@given(st.text(max_size=60))
def test_any_text_is_either_refused_or_uses_only_what_is_allowed(text: str) -> None:
    try:
        parse(text)
    except UserError:
        return
    tree = ast.parse(plain(text.strip())[0], mode="eval")
    forbidden = (ast.Call, ast.Attribute, ast.Subscript, ast.Lambda, ast.Pow, ast.comprehension)
    assert not any(isinstance(node, forbidden) for node in ast.walk(tree))
