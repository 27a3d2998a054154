"""Progress of a stage: lines for a log, a bar for whoever looks on."""

from __future__ import annotations

import re

import pytest

from mamushi.running.progress import Progress


def test_a_count_within_another_one_is_of_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(4, "refits", "refit", every=3600.0) as whole:
        whole.began -= 90.0
        whole.advance()
        assert capsys.readouterr().err == ""
        with Progress(5, "mamushi", "fold", every=0.0) as inner:
            inner.advance(note="AUC 0.9")
    (line,) = capsys.readouterr().err.splitlines()
    said = r"refits 2/4, mamushi: 1/5 folds, 30%, 0:01:3\d gone, 0:03:3\d left, AUC 0.9"
    assert re.fullmatch(said, line)
