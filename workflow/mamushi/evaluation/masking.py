"""Profanity masked for tables that show text: the first letter stays, stars replace the rest.

The words are stored as digests, so that none is spelled here. A word that is spelled letter by
letter is masked, too. This keeps a page readable; it is no filter.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_WORD = re.compile(r"[\w@$!]+")
_RUN = re.compile(r"(.)\1{2,}")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
"""A word in a name that is written in one, as that of an account."""
_HARMLESS = re.compile("scrap|debug|twatch|twater|scunthorpe|[aou]shit|minger")
"""Words with one of ``STEMS`` inside them by chance."""
LEET = str.maketrans("@4310!$57", "aaeioisst")
ENDINGS = ("", "s")

_listed = (Path(__file__).parent / "profanity.txt").read_text(encoding="utf-8").split("\n\n")
STEMS, WORDS = (frozenset(words.split()) for words in _listed)
"""Digests of words that are masked wherever a word has them, but for ``_HARMLESS`` ones; and of
words that begin harmless words too: masked alone, as a ``_PIECE`` of a name, or with one of
``ENDINGS``."""
SHORTEST = 4
"""Letters in the shortest of ``STEMS``."""
SPELLED = re.compile(r"(?<![\w@$!])(?:[\w@$!][ .,_*/|-]{1,3}){3,}[\w@$!](?![\w@$!])")
"""Four or more single letters with signs or spaces between them."""
_LONGEST = 16
"""Letters in the longest word that is looked for inside another, or in a run of single letters."""


def digest_of_words(word: str) -> str:
    """Return the first 8 hexadecimal digits of a word's SHA-256."""
    return hashlib.sha256(word.encode()).hexdigest()[:8]


def spellings(word: str) -> set[str]:
    """Return what a word may stand for: letters for look-alikes, stretches cut to two or one."""
    plain = unicodedata.normalize("NFKD", word).lower().translate(LEET)
    letters = "".join(c for c in plain if c.isalpha())
    return {_RUN.sub(r"\1", letters), _RUN.sub(r"\1\1", letters)}


def profane(word: str) -> bool:
    """Tell whether one of a word's spellings is on the list; a number is no word."""
    if not any(c.isalpha() for c in word):
        return False
    for spelling in set().union(*map(spellings, [word, *_PIECE.findall(word)])):
        harmless = _HARMLESS.search(spelling)
        if any(start == 0 or not harmless for start, _ in _spans(spelling, STEMS)):
            return True
        endings = filter(spelling.endswith, ENDINGS)
        if any(digest_of_words(spelling.removesuffix(ending)) in WORDS for ending in endings):
            return True
    return False


def _spans(letters: str, digests: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield where listed words begin and end."""
    for start in range(len(letters)):
        for stop in range(start + SHORTEST, min(start + _LONGEST, len(letters)) + 1):
            if digest_of_words(letters[start:stop]) in digests:
                yield start, stop


def mask(text: str) -> str:
    """Return ``text`` with every listed word masked, of the same length.

    >>> mask("Well, damn!")
    'Well, d***!'
    """
    return SPELLED.sub(_letters_masked, _WORD.sub(lambda match: _masked(match[0]), text))


@lru_cache(maxsize=1_000_000)
def _masked(word: str) -> str:
    plain = word.rstrip("!")
    shown = plain[0] + "*" * (len(plain) - 1) if plain and profane(plain) else plain
    return shown + word[len(plain) :]


def _letters_masked(match: re.Match[str]) -> str:
    """Mask every listed word in a run of single letters, wherever it begins and ends."""
    shown = list(match[0])
    places = [i for i, c in enumerate(shown) if _WORD.fullmatch(c)]
    plain = "".join(unicodedata.normalize("NFKD", shown[i]).lower()[:1] for i in places)
    plain = plain.translate(LEET)
    for start, stop in _spans(plain, STEMS | WORDS):
        for i in places[start + 1 : stop]:
            shown[i] = "*"
    return "".join(shown)
