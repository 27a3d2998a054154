"""Each stage's numbers are those of its `VERSION`."""

from pathlib import Path

import pytest

from tests.golden import Arithmetic, Recorded, problems, record, stored


def test_numbers_change_with_the_version_of_their_stage_alone(demo: Path) -> None:
    """After a change that is meant: raise `VERSION`, then ``python -m tests.golden``."""
    here = Arithmetic.here()
    old, new = stored(here), record(demo)
    if old is None:
        pytest.skip(f"no record of the arithmetic of {here}; python -m tests.golden makes it")
    assert problems(old, new) == []
    assert {name: stage.version for name, stage in new.items()} == {
        name: stage.version for name, stage in old.items()
    }, "record the numbers of the new versions: python -m tests.golden"


def test_what_changes_alone_is_named() -> None:
    def pair(version: int, mean: float) -> dict[str, Recorded]:
        train = Recorded("m.train", version, [], {"t: a": [3.0, mean]})
        return {"train": train, "ask": Recorded("m.ask", 1, ["train"], {"e: b": [1.0, mean]})}

    assert problems(pair(1, 1.0), pair(1, 1.0005)) == []
    assert problems(pair(1, 1.0), pair(2, 1.5)) == []
    alone = [line.split(",")[0] for line in problems(pair(1, 1.0), pair(1, 1.5))]
    assert alone == ["ask: raise VERSION of m.ask", "train: raise VERSION of m.train"]
    assert problems(pair(1, 1.0), pair(2, 1.0)) == [
        "m.train: its VERSION is another one, its numbers are the same"
    ]


def test_a_record_is_of_the_same_bits_or_else_of_the_same_processor() -> None:
    here = Arithmetic("a", "1")
    assert here.is_of(here) and Arithmetic("b", "1").is_of(here)
    assert Arithmetic("a", None).is_of(here)
    assert not Arithmetic("b", None).is_of(here) and not Arithmetic("a", "2").is_of(here)
