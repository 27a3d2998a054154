"""Profanity masked for tables that show text: the first letter stays, stars replace the rest.

The words are stored as digests, so that none is spelled here. A word that is spelled letter by
letter, with spaces or signs between them, is masked too. This keeps a page readable; it is no
filter.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"[\w@$!]+")
SPELLED = re.compile(r"(?<![\w@$!])(?:[\w@$!][ .,_*/|-]{1,3}){3,}[\w@$!](?![\w@$!])")
"""Four or more single letters with signs or spaces between them."""
RUN = re.compile(r"(.)\1{2,}")
LEET = str.maketrans("@4310!$57", "aaeioisst")
ENDINGS = ("", "s")

_STEMS = """
0018842878a5 019507b1d43a 024735644757 0550b85bc85a 064866530e80 06a1d8bf7fc2 08a841e99678
09861b8dfda0 09bcdd1e2a6d 0a3ab406419b 0c53136334b7 0f28c4960d96 0fcb77e9e007 120f6e5b4ea3
158869a97379 1b0f93c2886c 1b8304489575 2144e97d390e 2189c0ed714f 24e566ddf065 27099f42b6c4
29edf765580e 2b3240970c71 2f89253abd26 30a989afc82c 41b4d5e85655 4f19c4a13021 4fc4f506ec9e
5100cfd63d4e 5631dd76ff9b 566f532d486c 65aa7bedef5f 66415f8ce37b 665cb762e3bc 6ac3c336e409
74774fdc2ddc 7b73af5aaa29 7bc671151cbf 819837a1df89 83b589751859 84b9b8578e74 85fc17f7069a
886d51e97ad7 8aaf9c84021d 8f5083e3e5c7 91a2a257a28e 92fb8bce5edf 93433e08c106 952729c9c541
958ce5c321d2 9ae315a94e42 a43df7c2ff13 a77ac6b90734 a78a7c503fbd afb353d3e677 b726c4b4a1b4
bcd1642bca16 bdb1cc258d69 bf6ad233d46b c1cf820f7840 c2c3b68b4883 c701497955ae cda7b5c2ae62
d2833f44e8c9 d751137f9b2f d75a838dc758 db42bf8d570e dcb50ee3659f dd92623b0a4b e31d610d1e88
e512a0558344 e5b2fac952e8 e9143a29033d ea2a3c6bcbb5 ed6bf432aec2 ed939b046a78 eef3bd091670
efb6121bb591 f1e173c487b3 f25c9491c4e3 f50c51ed2315 f63ffdd83c42 f6961016377d f7c51ee5c8d1
fa38a8d3e5b9 fb96c27642b4
"""
STEMS = frozenset(_STEMS.split())
"""Digests of words that are masked wherever a word begins with them."""
_WORDS = """
038c9ccdd226 045c89d13d24 095080134d6c 0be9b885f4a3 1137605d4dab 12815a8ffae0 15551266fa4f
1600725e92dc 16ea09fc78ca 17bde8b40646 2062f8009306 2f34b7a451c6 314c33495ff0 32c2aaad55e4
3534157b260f 380c97e6c558 3b1e0d7c5dd4 3c8400b402ba 40582c4d824a 43508b5c03b8 4dc9418555a2
4e8a200044ae 594810adcbee 619bc82e0d20 63bd9333b1a0 65961619eae0 68399462dc9e 693ee9961bef
6b95d47887bf 70aafb426695 73aa7803fdf6 796e43a5a8cd 7d2969e37aa4 80c6b7cd4107 82e695c9e75f
83621b34ec59 83b548c26ffd 83ebccea9fff 89133bc00e9b 94a2b576a9f5 94a877e2ce63 94c6d2e10a76
96e6d32dad90 98b52c4b6b7d 9915ba2d8222 acc96930e3a6 ad505b0be8a4 affc87570066 b04a8a400635
b5975fae7b60 bb0689e399cc bbd19b708f38 bf298d06f88a c1b4ed05397d c3de533e9b7f cbbd0f71af28
cc02032349c8 d37707a92cac dc2abe4ed2d8 dcd2ee35085f e14a747f150b e7b98c6aa5b9 ea1813aeb494
ee5a869b5ace ef4e73770095 f59e28f8bb64 f9d0d9b18ae9 ffc07c6dc895
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
    return SPELLED.sub(_letters_masked, WORD.sub(lambda match: _masked(match[0]), text))


@lru_cache(maxsize=1_000_000)
def _masked(word: str) -> str:
    """A word masked if it is listed; one that was seen before is not looked up again."""
    plain = word.rstrip("!")
    shown = plain[0] + "*" * (len(plain) - 1) if plain and profane(plain) else plain
    return shown + word[len(plain) :]


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
