"""What is shown of texts: profanity masked (the mildest words of the list), and repetition."""

import pytest

from mamushi.evaluation.masking import mask
from mamushi.evaluation.probes import repetition

MASKED = {
    "Well, damn!": "Well, d***!",
    "damned crappy": "d***** c*****",
    "d@mn d4mn cr4p": "d*** d*** c***",
    "daaaaamn": "d*******",
    "d_a_m_n": "d******",
    "“damn”-it": "“d***”-it",
    "Hoe, hoes, h0e, #hoe": "H**, h***, h**, #h**",
    "a hooker, goddammit, jackoff!": "a h*****, g********, j******!",
    "@ThatDamnCat and goddamnit, #myhoe": "@*********** and g********, #myhoe",
}
HARMLESS = [
    "",
    "A class of bass players assumed the cockpit.",
    "scrap scraps, dam, condemn, debuggers, wristwatch",
    "plan a b or c, a b c d e f g",
    "Shoes, a hoedown, Phoenix, hooked, ritardando, Japan, a whole nutshell, muffin, kinky",
    "Grüße aus Scunthorpe von König, naïve 😀 Ἀθῆναι",
]


@pytest.mark.parametrize("text", [*MASKED, *HARMLESS])
def test_listed_words_keep_their_first_letter_and_length_and_others_all(text: str) -> None:
    assert mask(text) == MASKED.get(text, text)


def test_repetition() -> None:
    assert repetition([], 16) == 0
    # The first 1 is two tokens before the second: within a window of two, not of one.
    assert [repetition([1, 2, 1], window) for window in (2, 1)] == [pytest.approx(1 / 3), 0]
