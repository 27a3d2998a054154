"""What stays and says the same as a removed text is found; what is of its topic alone is not."""

from __future__ import annotations

import random

from mamushi.evidence.close import WINDOW, close

RNG = random.Random(0)
WORDS = [f"word{i}" for i in range(2000)]
TOPIC = [f"topic{i}" for i in range(8)]


def text(words: int = 40) -> list[str]:
    """Words by chance, a fifth of them of a topic that all texts have."""
    return [RNG.choice(TOPIC if i % 5 == 0 else WORDS) for i in range(words)]


REMOVED = [text() for _ in range(20)]
OTHERS = [text() for _ in range(300)]


def found(*planted: list[str]) -> dict[int, int]:
    """Which removed text each planted one is found to restate, after 300 others."""
    texts = [" ".join(words) for words in [*OTHERS, *planted]]
    pairs = close([" ".join(words) for words in REMOVED], texts)
    assert all(each.kept >= len(OTHERS) for each in pairs)
    return {each.kept - len(OTHERS): each.removed for each in pairs}


def test_the_order_of_words_does_not_count() -> None:
    words = [*REMOVED[3]]
    RNG.shuffle(words)
    assert found(words) == {0: 3}


def test_a_quote_is_found_wherever_it_stands_in_a_longer_text() -> None:
    for begin in (0, 7, 31, 55, 100):
        around = text(100)
        quoted = [*around[:begin], *REMOVED[5][:WINDOW], *around[begin:]]
        assert found(quoted) == {0: 5}, begin


def test_case_and_punctuation_do_not_count() -> None:
    assert found([f"{word.upper()}," for word in REMOVED[0]]) == {0: 0}


def test_a_text_with_half_of_its_words_replaced_is_found_and_with_three_quarters_is_not() -> None:
    for share, expected in ((0.4, {0: 7}), (0.75, {})):
        words = [*REMOVED[7]]
        for place in range(len(words)):
            if (place * 7) % 20 < 20 * share:
                words[place] = f"other{place}"
        assert found(words) == expected, share


def test_texts_of_the_same_topic_are_not_close() -> None:
    assert found(*(text() for _ in range(50))) == {}


def test_a_text_that_restates_several_is_shown_beside_the_one_it_restates_most_of() -> None:
    assert found([*REMOVED[1], *REMOVED[2][:14]]) == {0: 1}


def test_texts_without_words_are_close_to_nothing() -> None:
    assert close([], ["a b c"]) == close(["..."], ["!!", ""]) == close(["a"], []) == []


def test_texts_in_a_script_without_spaces_are_told_by_pairs_of_letters() -> None:
    letters = [chr(code) for code in range(0x4E00, 0x4E00 + 800)]

    def written(length: int = 60) -> str:
        return "".join(RNG.choice(letters) for _ in range(length))

    removed, others = [written() for _ in range(20)], [written() for _ in range(300)]
    quoted = f"{written(40)}，{removed[4][:40]}。{written(40)}"
    in_parts = f"{removed[9][30:]}，{removed[9][:30]}"
    pairs = close(removed, [*others, quoted, in_parts])
    assert {each.kept: each.removed for each in pairs} == {300: 4, 301: 9}
