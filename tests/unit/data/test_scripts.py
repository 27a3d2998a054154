"""Words of scripts without spaces, and what is never divided."""

import pytest

from mamushi.data.scripts import space_words, word_units


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("你好，世界。", "你 好， 世 界。"),
        ("用GPU-2训练「模型」3次 now", "用 GPU-2 训 练 「模 型」 3 次 now"),
        ("น้ำดี", "น้ำ ดี"),
        ("བོད་སྐད་", "བོ ད་ སྐ ད་"),
        ("한국어와 漢字", "한국어와 漢 字"),
        ("русский  עברית العربية हिन्दी", "русский  עברית العربية हिन्दी"),
    ],
)
def test_each_character_of_a_script_without_spaces_is_a_word(text: str, words: str) -> None:
    assert space_words(text) == words


def test_parts_and_pairs_of_a_word() -> None:
    assert [*word_units("毒品店ABC毒 Слово 13")] == ["毒品", "品店", "abc", "毒", "слово"]
