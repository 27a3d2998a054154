"""Windows tile a document, and each knows its characters."""

from itertools import pairwise
from typing import Any

import numpy as np

from mamushi.config.sections import Data
from mamushi.data.examples import build_examples
from mamushi.data.raw import Raw
from mamushi_extras.windows.windows import divide, document_of, span_of, window_spans

TEXT = "  One two three.\n\nFour five six seven eight nine ten.\r\n \r\nEleven\ntwelve.\n"
CUT = {"words": 3, "action": "cut"}


def parts(text: str, words: int) -> list[list[str]]:
    return [text[a:b].split() for a, b in window_spans(text, words)]


def test_windows_tile_a_text_and_end_with_a_paragraph() -> None:
    found = [*window_spans(TEXT, 3)]
    assert found[0][0] == 2 and found[-1][1] == len(TEXT)
    assert all(before[1] == after[0] for before, after in pairwise(found))
    assert [*window_spans(" \n", 3)] == []
    # Of about the same length; what is cut takes the break behind it along.
    lines = ["One two three.", "Four five", "six seven", "eight nine ten.", "Eleven twelve."]
    assert parts(TEXT, 3) == [line.split() for line in lines]
    assert TEXT[found[0][1] :].startswith("Four")
    ends = "a b\r\n\r\nc\u2029d\u2028\u2028e\r\nf\u2028g"
    assert parts(ends, 9) == [["a", "b"], ["c"], ["d"], ["e", "f", "g"]]
    assert parts("русский 「模型」3次", 1) == [["русский"], ["「模"], ["型」"], ["3"], ["次"]]


def test_no_window_is_too_long_and_none_is_longer_than_another_by_two() -> None:
    for n in (1, 2, 4, 5, 6, 17):
        for words in (2, 4, 5, 100):
            found = parts(" ".join(map(str, range(n))), words)
            assert [int(word) for window in found for word in window] == [*range(n)]
            lengths = [*map(len, found)]
            assert max(lengths) <= words and max(lengths) - min(lengths) <= 1


def documents() -> Raw:
    unwanted = "buy it now"
    texts = {
        "long": f"calm water\n\n{unwanted}\n\nstill here\n\n{unwanted}",
        "again": f"Calm  water\n\n{unwanted}\n\nstill here\n\n{unwanted} ",
        "near": f"calm water\n\n{unwanted}\n\nstill there\n\n{unwanted}",
        "short": "something else",
        "empty": " \n",
        "kept": "of the retain domain\n\nsomething else",
    }
    rows = len(texts)
    return Raw(
        ids=[*texts],
        texts=[*texts.values()],
        forget=np.array([True] * (rows - 1) + [False]),
        section=[None] * rows,
        stratum=[""] * rows,
        places=[f"row {i}" for i in range(rows)],
        labels={"kind": ["a"] * rows},
    )


def built(action: str) -> tuple[Any, Any, Any]:
    how = {"inference": 1.0}, {}, vars(Data()) | {"near_duplicates": 0.4}
    table, copies, counts = build_examples(
        divide(documents(), CUT | {"action": action}, True), *how
    )
    return table.to_pylist(), copies.to_pylist(), counts


def test_windows_have_the_label_of_their_document_and_are_its_group() -> None:
    rows, _, counts = built("remove")
    assert {row["group"] for row in rows} == {"long", "short", "kept"}
    assert all(row["domain"] == ("retain" if row["group"] == "kept" else "forget") for row in rows)
    assert all(row["label_kind"] == "a" for row in rows)
    whole = dict(zip(documents().ids, documents().texts, strict=True))
    for row in rows:
        start, stop = span_of(row["id"])
        assert row["text"] == whole[document_of(row["id"])][start:stop].strip()
    assert counts["sections"]["inference"] == {"forget": 5, "retain": 3}
    assert [step["dropped"]["forget"] for step in counts["steps"][:2]] == [0, 1]


def test_a_window_to_cut_has_copies_in_any_document() -> None:
    rows, copies, _ = built("cut")
    ours = [row["id"] for row in rows if row["domain"] == "forget"]
    # What a near copy of the document alone has is ranked as well.
    assert [document_of(name) for name in ours] == ["long"] * 3 + ["near"]
    (unwanted,) = [row["id"] for row in rows if row["text"] == "buy it now"]
    found = [row for row in copies if row["kept_id"] == unwanted]
    assert [document_of(row["id"]) for row in found] == ["long", *["again"] * 2, *["near"] * 2]
    # What a retain document has as well is in both domains.
    crossed = [document_of(row["id"]) for row in copies if row["reason"] == "cross_post"]
    assert crossed == ["short", "kept"]
