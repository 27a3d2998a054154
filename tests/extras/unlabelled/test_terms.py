"""Which texts a blocklist hits."""

from pathlib import Path

import pytest

from mamushi_extras.unlabelled.like import read_terms

FOUND = {
    "between other characters": ("毒品", "有人卖毒品给学生"),
    "full-width": ("Drug", "彼はｄｒｕｇを売る"),
    "Han then Latin": ("毒abc", "卖毒abc给"),
    "Hangul with a particle": ("마약", "그는 마약을 팔았다"),
    "case": ("Straße", "in der STRASSE"),
    "signs without width": ("gearbox", "the g\u200be\u2060arbox"),
    "an expression": ("/g.arb?ox/", "the GEARBOX"),
}
MISSED = {
    "within a word": ("gear", "the gearbox"),
    "with a mark": ("क", "कि"),
    "Hangul within a word": ("약", "마약을"),
    "an expression as it is": ("/drug/", "the ｄｒｕｇ"),
}


CASES = [pytest.param(*case, True, id=name) for name, case in FOUND.items()]
CASES += [pytest.param(*case, False, id=f"not {name}") for name, case in MISSED.items()]


@pytest.mark.parametrize(("term", "text", "hits"), CASES)
def test_a_term_is_found_as_a_word(tmp_path: Path, term: str, text: str, hits: bool) -> None:
    path = tmp_path / "terms.txt"
    path.write_text(term, encoding="utf-8")
    assert read_terms(str(path))(text) == hits
