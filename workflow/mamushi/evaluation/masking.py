"""Profanity masked for tables that show text: the first letter stays, stars replace the rest.

The words are stored as digests, so that none is spelled here. This keeps a page readable; it is no
filter.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

_WORD = re.compile(r"[\w@$!]+")
_SPELLED = re.compile(r"(?<![\w@$!])(?:[\w@$!][ .,_*/|-]{1,3}){3,}[\w@$!](?![\w@$!])")
"""Four or more single letters with signs or spaces between them."""
_RUN = re.compile(r"(.)\1{2,}")
_HARMLESS = re.compile("scrap|debug|twatch|twater|scunthorpe|[aou]shit|minger")
"""Words with one of ``STEMS`` inside them by chance."""
LEET = str.maketrans("@4310!$57", "aaeioisst")
_listed = (Path(__file__).parent / "profanity.txt").read_text(encoding="utf-8").split("\n\n")
STEMS, WORDS = (frozenset(words.split()) for words in _listed)
"""Digests of words that are masked wherever a word has them, but for ``_HARMLESS`` ones; and of
words that begin harmless words too: masked alone or with an s."""
SHORTEST, LONGEST = 4, 16
"""Letters in the shortest of ``STEMS``, and in the longest that is looked for inside a word."""


def mask(text: str) -> str:
    """Return ``text`` with every listed word masked, of the same length.

    >>> mask("Well, damn!")
    'Well, d***!'
    """
    plain = _WORD.sub(lambda match: _star_out_word(match[0]), text)
    return _SPELLED.sub(lambda match: _star_out_letters(match[0]), plain)


@lru_cache(maxsize=1_000_000)
def _star_out_word(word: str) -> str:
    """Return a word with stars for all letters but the first if it is profane."""
    plain = word.rstrip("!")
    shown = plain[0] + "*" * (len(plain) - 1) if plain and is_profane(plain) else plain
    return shown + word[len(plain) :]


def _star_out_letters(run: str) -> str:
    """Do the same to letters that are spelled out one by one, as in `w o r d`."""
    is_listed = is_profane(re.sub(r"[ .,_*/|-]", "", run))
    return run[0] + re.sub(r"[\w@$!]", "*", run[1:]) if is_listed else run


def is_profane(word: str) -> bool:
    """Tell whether a word is on the list. Signs count as the letters that they look like, and of a
    repeated letter one or two are kept."""
    if not any(c.isalpha() for c in word):
        return False
    plain = unicodedata.normalize("NFKD", word).lower().translate(LEET)
    letters = "".join(c for c in plain if c.isalpha())
    for spelling in {_RUN.sub(r"\1", letters), _RUN.sub(r"\1\1", letters)}:
        if {_digest(spelling), _digest(spelling.removesuffix("s"))} & WORDS:
            return True
        # A harmless word may still begin with a stem.
        for start in range(1 if _HARMLESS.search(spelling) else len(spelling)):
            stops = range(start + SHORTEST, min(start + LONGEST, len(spelling)) + 1)
            if any(_digest(spelling[start:stop]) in STEMS for stop in stops):
                return True
    return False


def _digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()[:8]
