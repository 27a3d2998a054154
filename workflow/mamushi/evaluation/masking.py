"""Profanity masked for tables that show text: the first letter stays, stars replace the rest.

The words are stored as digests, so that none is spelled here. A word that is spelled letter by
letter is masked, too. This keeps a page readable; it is no filter.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[\w@$!]+")
_RUN = re.compile(r"(.)\1{2,}")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
"""A word in a name that is written in one, as that of an account."""
_HARMLESS = re.compile("scrap|debug|twatch|twater|scunthorpe|[aou]shit|minger")
"""Words with one of ``STEMS`` inside them by chance."""
LEET = str.maketrans("@4310!$57", "aaeioisst")
ENDINGS = ("", "s")

_STEMS = """
00188428 019507b1 02473564 0550b85b 06486653 06a1d8bf 08a841e9 09861b8d 09bcdd1e 0a3ab406 0c531363
0f28c496 0fcb77e9 120f6e5b 158869a9 1b0f93c2 1b830448 2144e97d 2189c0ed 24e566dd 27099f42 29edf765
2b324097 2f89253a 30a989af 41b4d5e8 4f19c4a1 4fc4f506 5100cfd6 5631dd76 566f532d 65aa7bed 66415f8c
665cb762 6ac3c336 74774fdc 7b73af5a 7bc67115 819837a1 83b58975 84b9b857 85fc17f7 886d51e9 8aaf9c84
8f5083e3 91a2a257 92fb8bce 93433e08 952729c9 958ce5c3 9ae315a9 a43df7c2 a77ac6b9 a78a7c50 afb353d3
b726c4b4 bcd1642b bdb1cc25 bf6ad233 c1cf820f c2c3b68b c7014979 cda7b5c2 d2833f44 d751137f d75a838d
db42bf8d dcb50ee3 dd92623b e31d610d e512a055 e5b2fac9 e9143a29 ea2a3c6b ed6bf432 ed939b04 eef3bd09
efb6121b f1e173c4 f25c9491 f50c51ed f63ffdd8 f6961016 f7c51ee5 fa38a8d3 fb96c276
"""
STEMS = frozenset(_STEMS.split())
"""Digests of words that are masked wherever a word has them, but for ``_HARMLESS`` ones."""
_WORDS = """
038c9ccd 045c89d1 09508013 0be9b885 1137605d 12815a8f 15551266 1600725e 16ea09fc 17bde8b4 2062f800
2f34b7a4 314c3349 32c2aaad 3534157b 380c97e6 3b1e0d7c 3c8400b4 40582c4d 43508b5c 4dc94185 4e8a2000
594810ad 619bc82e 63bd9333 65961619 68399462 693ee996 6b95d478 70aafb42 73aa7803 796e43a5 7d2969e3
80c6b7cd 82e695c9 83621b34 83b548c2 83ebccea 89133bc0 94a2b576 94a877e2 94c6d2e1 96e6d32d 98b52c4b
9915ba2d acc96930 ad505b0b affc8757 b04a8a40 b5975fae bb0689e3 bbd19b70 bf298d06 c1b4ed05 c3de533e
cbbd0f71 cc020323 d37707a9 dc2abe4e dcd2ee35 e14a747f e7b98c6a ea1813ae ee5a869b ef4e7377 f59e28f8
f9d0d9b1 ffc07c6d
"""
WORDS = frozenset(_WORDS.split())
"""Digests of words that begin harmless words too: masked alone, as a ``_PIECE`` of a name, or with
one of ``ENDINGS``."""
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
        last = 0 if _HARMLESS.search(spelling) else len(spelling)
        for start in range(min(last, len(spelling) - SHORTEST) + 1):
            stops = range(start + SHORTEST, min(start + _LONGEST, len(spelling)) + 1)
            if any(digest_of_words(spelling[start:stop]) in STEMS for stop in stops):
                return True
        endings = filter(spelling.endswith, ENDINGS)
        if any(digest_of_words(spelling.removesuffix(ending)) in WORDS for ending in endings):
            return True
    return False


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
    for start in range(len(plain)):
        for stop in range(start + SHORTEST, min(start + _LONGEST, len(plain)) + 1):
            if digest_of_words(plain[start:stop]) in STEMS | WORDS:
                for i in places[start + 1 : stop]:
                    shown[i] = "*"
    return "".join(shown)
