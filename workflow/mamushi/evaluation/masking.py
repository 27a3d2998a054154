"""Profanity masked for tables that show text: the first letter stays, stars replace the rest.

The words are stored as digests, so that none is spelled here. A word that is spelled letter by
letter, with spaces or signs between them, is masked too. This keeps a page readable; it is no
filter.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

WORD = re.compile(r"[\w@$!]+")
SPELLED = re.compile(r"(?<![\w@$!])(?:[\w@$!][ .,_*/|-]{1,3}){3,}[\w@$!](?![\w@$!])")
"""Four or more single letters with signs or spaces between them."""
RUN = re.compile(r"(.)\1{2,}")
LEET = str.maketrans("@4310!$57", "aaeioisst")
ENDINGS = ("", "s")

_STEMS = """
06a1d8bf7fc2 08a841e99678 09bcdd1e2a6d 0a3ab406419b 0f28c4960d96 0fcb77e9e007 120f6e5b4ea3
158869a97379 1b0f93c2886c 1b8304489575 2189c0ed714f 2b3240970c71 30a989afc82c 41b4d5e85655
5100cfd63d4e 566f532d486c 66415f8ce37b 665cb762e3bc 6ac3c336e409 7bc671151cbf 819837a1df89
83b589751859 84b9b8578e74 85fc17f7069a 886d51e97ad7 8aaf9c84021d 8f5083e3e5c7 958ce5c321d2
9ae315a94e42 a43df7c2ff13 a78a7c503fbd bcd1642bca16 bdb1cc258d69 c2c3b68b4883 d751137f9b2f
d75a838dc758 dcb50ee3659f dd92623b0a4b e512a0558344 e9143a29033d ed6bf432aec2 eef3bd091670
f50c51ed2315 fb96c27642b4
"""
STEMS = frozenset(_STEMS.split())
"""Digests of words that are masked wherever a word begins with them."""
_WORDS = """
1600725e92dc 16ea09fc78ca 17bde8b40646 2062f8009306 3534157b260f 3b1e0d7c5dd4 594810adcbee
65961619eae0 70aafb426695 796e43a5a8cd 83621b34ec59 89133bc00e9b 94a2b576a9f5 94a877e2ce63
98b52c4b6b7d 9915ba2d8222 ad505b0be8a4 affc87570066 b04a8a400635 c1b4ed05397d c3de533e9b7f
cbbd0f71af28 cc02032349c8 dc2abe4ed2d8 e7b98c6aa5b9 ee5a869b5ace f9d0d9b18ae9
"""
WORDS = frozenset(_WORDS.split())
"""Digests of words that begin harmless words too: masked alone or with one of ``ENDINGS``."""
SHORTEST = 4
"""Letters in the shortest of ``STEMS``."""
LONGEST = 16
"""Letters in the longest word that is looked for in a run of single letters."""


def digest(word: str) -> str:
    """The first 12 hexadecimal digits of a word's SHA-256."""
    return hashlib.sha256(word.encode()).hexdigest()[:12]


def spellings(word: str) -> set[str]:
    """What a word may stand for: letters for look-alikes, and stretched letters cut to two or one.

    >>> sorted(spellings("D4mnnn!t"))
    ['damnit', 'damnnit']
    """
    plain = unicodedata.normalize("NFKD", word).lower().translate(LEET)
    letters = "".join(c for c in plain if c.isalpha())
    return {RUN.sub(r"\1", letters), RUN.sub(r"\1\1", letters)}


def profane(word: str) -> bool:
    """Whether one of a word's spellings is on the list; a number is no word."""
    if not any(c.isalpha() for c in word):
        return False
    for spelling in spellings(word):
        if any(digest(spelling[:n]) in STEMS for n in range(SHORTEST, len(spelling) + 1)):
            return True
        for ending in ENDINGS:
            if spelling.endswith(ending) and digest(spelling.removesuffix(ending)) in WORDS:
                return True
    return False


def mask(text: str) -> str:
    """``text`` with every listed word masked, of the same length.

    >>> mask("Well, damn!")
    'Well, d***!'
    """

    def masked(match: re.Match[str]) -> str:
        word = match[0].rstrip("!")
        shown = word[0] + "*" * (len(word) - 1) if word and profane(word) else word
        return shown + match[0][len(word) :]

    return SPELLED.sub(_letters_masked, WORD.sub(masked, text))


def _letters_masked(match: re.Match[str]) -> str:
    """A run of single letters with every listed word in it masked, wherever it begins: in such a
    run nothing says where a word ends."""
    shown = list(match[0])
    places = [i for i, c in enumerate(shown) if WORD.fullmatch(c)]
    plain = "".join(unicodedata.normalize("NFKD", shown[i]).lower()[:1] for i in places)
    plain = plain.translate(LEET)
    for start in range(len(plain)):
        for stop in range(start + SHORTEST, min(start + LONGEST, len(plain)) + 1):
            if digest(plain[start:stop]) in STEMS | WORDS:
                for i in places[start + 1 : stop]:
                    shown[i] = "*"
    return "".join(shown)
