"""Words of scripts without spaces, and what is never divided."""

import numpy as np
import pytest

from mamushi.data.duplicates import find_duplicates
from mamushi.data.scripts import begins, spaced, units
from mamushi.selection.linear import count_ngrams
from mamushi.selection.pool import Pool

CHINESE = "汽车需要机油和刹车液，每几年更换一次。发动机的皮带也要检查！"
THAI = "รถยนต์ต้องการน้ำมันเครื่องและน้ำมันเบรก"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("你好，世界。", "你 好， 世 界。"),
        ("用GPU-2训练「模型」3次 now", "用 GPU-2 训 练 「模 型」 3 次 now"),
        ("毒品abc毒品", "毒 品 abc 毒 品"),
        ("スーパーで", "ス ー パ ー で"),
        ("น้ำดี", "น้ำ ดี"),
        ("བོད་སྐད་", "བོ ད་ སྐ ད་"),
        ("한국어와 漢字", "한국어와 漢 字"),
        ("don't «split» this", "don't «split» this"),
        ("русский  עברית العربية हिन्दी", "русский  עברית العربية हिन्दी"),
    ],
)
def test_each_character_of_a_script_without_spaces_is_a_word(text: str, words: str) -> None:
    assert spaced(text) == words
    assert [text[at] for at in begins(text, 0, len(text))] == [w[0] for w in words.split()]


def test_parts_and_pairs_of_a_word() -> None:
    assert [*units("毒品店ABC毒 Слово 13")] == ["毒品", "品店", "abc", "毒", "слово"]


@pytest.mark.parametrize("text", [CHINESE, THAI, "機械の部品を洗う時は油を使わずに水を使うこと"])
def test_near_copies_without_spaces_are_found(text: str) -> None:
    rng = np.random.default_rng(0)
    letters = sorted(set(spaced(text).split()))
    others = ["".join(rng.choice(letters, 120)) for _ in range(30)]
    # One more sign in the middle, other punctuation at the end.
    near = [f"{it[:50]}{letters[0]}{it[50:]}!" for it in others[:10]]
    every = [*others, *near]
    found = find_duplicates(every, np.ones(len(every), bool), threshold=0.9, words=3)
    assert np.flatnonzero(found.near).tolist() == [*range(30, 40)]
    assert found.roots[30:].tolist() == [*range(10)]


def test_words_of_a_ranking_are_characters_and_their_pairs() -> None:
    texts = ["毒品abc和水", "水和abc毒品", "Abc and water"]
    pool = Pool(
        np.array(["a", "b", "c"], dtype=object),
        np.array([True, False, False]),
        np.zeros((3, 1), np.float16),
        texts=np.array(texts, dtype=object),
    )
    counts = count_ngrams(pool)[0]
    # Five words and their four pairs; in another order one pair is the same.
    assert np.asarray(counts.sum(axis=1)).ravel().tolist() == [9, 9, 5]
    shared = counts[0].multiply(counts[1])
    assert shared.nnz == 5 + 1
    assert counts[0].multiply(counts[2]).nnz == 1
