"""What is shown of texts: profanity masked (the mildest words of the list), and repetition."""

import pytest

from mamushi.evaluation.masking import mask
from mamushi.evaluation.probes import repetition

MASKED = {
    "Well, damn!": "Well, d***!",
    "DAMN. Crap?": "D***. C***?",
    "damned crappy": "d***** c*****",
    "d@mn d4mn cr4p": "d*** d*** c***",
    "daaaaamn": "d*******",
    "d_a_m_n": "d******",
    "“damn”-it": "“d***”-it",
    "Hoe, hoes, h0e, #hoe": "H**, h***, h**, #h**",
    "a hooker, goddammit, jackoff!": "a h*****, g********, j******!",
    "@ThatDamnCat and goddamnit, #myhoe": "@*********** and g********, #myhoe",
    "oh, D.4.M.N": "oh, D.*.*.*",
}
HARMLESS = [
    "",
    "A class of bass players assumed the cockpit.",
    "scrap scraps, dam, condemn, debuggers, wristwatch",
    "D*** it, already masked!",
    "4 of 8, 717, 455!",
    "plan a b or c, a b c d e f g",
    "Shoes, a hoedown, Phoenix, hooked, ritardando, Japan, a whole nutshell, muffin, kinky",
    "Grüße aus Scunthorpe von König, naïve 😀 Ἀθῆναι",
]


@pytest.mark.parametrize("text", [*MASKED, *HARMLESS])
def test_listed_words_keep_their_first_letter_and_length_and_others_all(text: str) -> None:
    assert mask(text) == MASKED.get(text, text)


@pytest.mark.parametrize(
    ("tokens", "window", "expected"),
    [
        ([], 16, 0.0),
        ([7, 7, 7, 7], 16, 3 / 4),
        # The first 1 is two tokens before the second: within a window of two, not of one.
        ([1, 2, 1], 2, 1 / 3),
        ([1, 2, 1], 1, 0.0),
    ],
)
def test_repetition(tokens: list[int], window: int, expected: float) -> None:
    assert repetition(tokens, window) == pytest.approx(expected)
