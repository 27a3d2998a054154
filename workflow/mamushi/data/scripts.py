"""Words where there are no spaces between them: each character is one (a grapheme cluster)."""

import re
import unicodedata
from collections.abc import Iterator

import regex

SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}\p{Tibetan}\p{Javanese}\p{Balinese}"
UNSPACED = rf"[[{SCRIPTS}\p{{Line_Break=SA}}\u30FC\uFF70]--\p{{P}}]"
"""A character of a script without spaces: of those above, or whose lines break at words that only
a dictionary knows, as of Thai, Lao, Khmer and Myanmar."""
OPENING = r"[\p{Ps}\p{Pi}]"  # Goes with what stands behind it, other punctuation with that before.
LETTER = regex.compile(UNSPACED, regex.V1)
PIECES = regex.compile(
    rf"{OPENING}{{0,3}}(?={UNSPACED})\X(?:(?=[[\p{{P}}\p{{Cf}}]--{OPENING}])\X)*+"
    rf"|(?:(?!{UNSPACED})\X)+?(?={OPENING}{{0,3}}{UNSPACED}|\Z)|\X",
    regex.V1 | regex.DOTALL,
)
"""The words of what is written without spaces: in a row of other letters there is one."""
_PARTS = regex.compile(rf"{UNSPACED}+|(?:(?!{UNSPACED}).)+", regex.V1 | regex.DOTALL)


def has_unspaced(text: str) -> bool:
    """Return whether a text has a character of a script without spaces."""
    return not text.isascii() and LETTER.search(text) is not None


def space_words(text: str) -> str:
    """Return a text with a space behind each word; one of scripts with spaces as it is."""
    if not has_unspaced(text):
        return text
    return " ".join(match[0] for run in text.split() for match in PIECES.finditer(run))


def word_units(text: str) -> Iterator[str]:
    """Yield the words of a text, of a script without letter cases its pairs of letters: some of
    these are written without spaces."""
    for run in re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", text)):
        for word in _PARTS.findall(run) if has_unspaced(run) else [run]:
            if word.lower() != word.upper():
                yield word.lower()
            else:
                yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
