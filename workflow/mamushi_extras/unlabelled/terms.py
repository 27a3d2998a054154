"""A blocklist: a term or /regular expression/ a line, and the texts that have one.

A term is found in any case, in full-width and other forms of its letters (NFKC), and where signs
that nobody sees stand in it, as a whole word. In a script without spaces, and beside a letter of
one, there is no edge of a word to be asked for; and behind a term in Hangul a word may go on, as
with a particle. An expression is applied to the text as it is, in any case.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import regex

from mamushi.data.scripts import LETTER, UNSPACED
from mamushi.errors import located

PATTERN = re.compile(r"/(.*)/", re.DOTALL)
LETTERS = rf"[[\w\p{{M}}\p{{N}}]--{UNSPACED}]"
"""What a word is made of where it has an edge."""
HANGUL = regex.compile(r"\p{Hangul}")
UNSEEN = regex.compile(r"[\p{Cf}\p{Default_Ignorable_Code_Point}]")


def read_terms(path: str) -> Callable[[str], bool]:
    """Return what says of a text whether it has a term of a file."""
    by_edges, patterns = defaultdict[tuple[str, str], set[str]](set), list[re.Pattern[str]]()
    with located(path):
        for line in Path(path).read_text(encoding="utf-8-sig").splitlines():
            # A mark of the byte order stands within a file that was put together of several.
            if written := PATTERN.fullmatch(line.strip("\ufeff \t")):
                patterns.append(re.compile(written[1], re.IGNORECASE))
            elif term := folded(line):
                by_edges[edges(term)].add(term)
    terms = [
        f"{left}(?:{'|'.join(map(re.escape, sorted(alike)))}){right}"
        for (left, right), alike in by_edges.items()
    ]
    search = regex.compile("|".join(terms) or "(?!)", regex.V1).search
    return lambda text: bool(search(folded(text)) or any(one.search(text) for one in patterns))


def folded(text: str) -> str:
    """Return a text after NFKC and folding of case and white space, without signs that nobody
    sees."""
    text = unicodedata.normalize("NFKC", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", UNSEEN.sub("", text).casefold())
        # A capital I with a dot, as in Turkish, keeps the dot as a mark.
        text = text.replace("i\u0307", "i")
    return " ".join(text.casefold().split())


def edges(term: str) -> tuple[str, str]:
    """Return what must not stand before and behind a term, as expressions."""
    unmarked = (letter for letter in reversed(term) if unicodedata.category(letter)[0] != "M")
    last = next(unmarked, term[-1])
    goes_on = LETTER.match(last) or HANGUL.match(last)
    left = "" if LETTER.match(term) else rf"(?<!{LETTERS})"
    # A letter with another mark is another letter.
    return left, r"(?!\p{M})" if goes_on else rf"(?!{LETTERS})"
