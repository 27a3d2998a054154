"""Which texts a blocklist hits."""

from pathlib import Path

import pytest

from mamushi_extras.unlabelled.terms import read_terms

FOUND = {
    "between other characters": ("毒品", "有人卖毒品给学生"),
    "kana": ("ドラッグ", "彼はドラッグを売る"),
    "full-width": ("Drug", "彼はｄｒｕｇを売る"),
    "Thai": ("ยาเสพติด", "เขาขายยาเสพติดให้เด็ก"),
    "Han then Latin": ("毒abc", "卖毒abc给"),
    "a number beside Han": ("13", "第13号"),
    "Hangul with a particle": ("마약", "그는 마약을 팔았다"),
    "case": ("Straße", "in der STRASSE"),
    "a dotted I": ("istanbul", "İSTANBUL'da"),
    "signs without width": ("gearbox", "the g\u200be\u2060arbox"),
    "several words": ("gear \u3000 box", "the GEAR\nbox"),
    "punctuation": ("c++", "in C++, mostly"),
    "an expression": ("/g.arb?ox/", "the GEARBOX"),
}
MISSED = {
    "within a word": ("gear", "the gearbox"),
    "with a mark": ("क", "कि"),
    "Thai with another vowel": ("กน", "กนั"),
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


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf\t gearbox\r\nclutch  \r\n",
        b"\xef\xbb\xbf/gear.ox/\r/^clutch$/\n\xe2\x80\x8b\n",
    ],
)
def test_what_stands_around_a_term_in_its_file_is_none_of_it(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "terms.txt"
    path.write_bytes(content)
    found = read_terms(str(path))
    assert found("a gearbox") and found("CLUTCH") and not found("an engine")
