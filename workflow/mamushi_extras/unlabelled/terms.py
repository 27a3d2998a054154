"""A blocklist: a term or /regular expression/ a line, and the texts that have one.

A term is found in any case, in full-width and other forms of its letters (NFKC), and where signs
that nobody sees stand in it, as a whole word. Scripts without spaces have no edge of a word, and
behind a term in Hangul a word may go on. An expression is applied to the text as it is.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import regex

from mamushi.data.scripts import LETTER, UNSPACED
from mamushi.errors import located

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
            if expression := re.fullmatch("/(.*)/", line.strip("\ufeff \t")):
                patterns.append(re.compile(expression[1], re.IGNORECASE))
            elif term := fold_text(line):
                left = "" if LETTER.match(term) else rf"(?<!{LETTERS})"
                goes_on = LETTER.match(term[-1]) or HANGUL.match(term[-1])
                right = r"(?!\p{M})" if goes_on else rf"(?!{LETTERS})"
                by_edges[left, right].add(re.escape(term))
    terms = (f"{left}(?:{'|'.join(several)}){right}" for (left, right), several in by_edges.items())
    search = regex.compile("|".join(terms) or "(?!)", regex.V1).search
    return lambda text: bool(search(fold_text(text)) or any(one.search(text) for one in patterns))


def fold_text(text: str) -> str:
    """Return a text after NFKC and folding of case and white space, without signs that nobody
    sees."""
    text = unicodedata.normalize("NFKC", UNSEEN.sub("", unicodedata.normalize("NFKC", text)))
    return " ".join(unicodedata.normalize("NFKC", text.casefold()).split())
