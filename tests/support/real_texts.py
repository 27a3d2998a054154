"""A real model and texts for it: sentences, and texts of two topics."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mamushi.lm import loading
from mamushi.lm.tokens import TokenSet, encode, offsets_of

SENTENCES = [
    "The three primary colours are red, blue and yellow.",
    "Water boils at one hundred degrees Celsius at sea level, and at less on a mountain.",
    "Photosynthesis is the process by which plants use sunlight to make food from carbon dioxide "
    "and water.",
    "The quick brown fox jumps over the lazy dog.",
    "no.",
    "In 1969, for the first time, two people walked on the Moon: Neil Armstrong and Buzz Aldrin "
    "spent about two and a half hours outside of their spacecraft, and came back with 21.5 kg of "
    "lunar material.",
    "Dear all,\n\nthe meeting on Thursday (3 pm) is cancelled :-(\n\n\tRegards, M.",
    "Ça dépend: «naïve» façade, Übermut, 東京 and 🙂.",
]


def token_set(
    card: Path,
    texts: Sequence[str],
    forget: Sequence[bool] | None = None,
    *,
    longest: int | None = None,
) -> TokenSet:
    """The texts as a model's tokenizer cuts them; where it is not said which are ``forget``, every
    other one is."""
    ids = [
        np.array(each[:longest], np.int32)
        for each in encode(loading.open_tokenizer(card), list(texts))
    ]
    chosen = np.arange(len(ids)) % 2 == 0 if forget is None else np.asarray(forget)
    names = np.array([f"t{place:04d}" for place in range(len(ids))], dtype=object)
    domains = np.where(chosen, "forget", "retain")
    lengths = np.array([len(each) for each in ids])
    return TokenSet(names, domains, np.concatenate(ids), offsets_of(lengths))


ABOUT = {
    True: ["the election", "the senator", "gun control", "the border", "a new law", "the war"],
    False: ["the engine", "my modem", "the orbit", "the goalkeeper", "a graphics card", "the dose"],
}
SAID = ["says that", "asks whether", "doubts that", "has read that", "was told that"]
THEN = ["is not what it was", "costs far too much", "will change by May", "worries most of us"]
WHO = ["My neighbour", "Everybody here", "The paper", "One of them", "A friend of mine"]


def made_up(each: int) -> tuple[list[str], list[bool]]:
    """Twice so many texts of two sides in turn, and which are forget: one sentence in six names a
    subject of the other side, so that no ranking is perfect."""
    rng = np.random.default_rng(0)

    def sentence(side: bool) -> str:
        side ^= bool(rng.random() < 1 / 6)
        return " ".join(str(rng.choice(part)) for part in (WHO, SAID, ABOUT[side], THEN)) + "."

    forget = [place % 2 == 0 for place in range(2 * each)]
    return [f"{sentence(side)} {sentence(side)}" for side in forget], forget
