"""Long posts and code comments, ranked as the corpora of `run.py`.

    python -m studies.stack.further 20news-bydate.tar.gz results/base/smollm2_frozen/card.json

``long``: posts of more than 300 words, of one newsgroup against all others. ``comments``:
docstrings of the installed scikit-learn against those of other installed libraries, without code
and names of libraries; those of a file are a group. SmolLM2 embeds the first 128 tokens. Reported
is what `run.py` does, of the rankings that train no network.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mamushi.data.loaders import newsgroups
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.pool import Pool
from studies.lib.report import Report, arguments
from studies.stack.run import PLAIN, compare
from studies.unlabelled.groups import vectors

EACH, LENGTH, WORDS, SHORTEST = 250, 128, 300, 80
"""Texts of each domain, tokens that are embedded, words of a long post, characters of a comment."""
GROUP, LIBRARY = "talk.politics.mideast", "sklearn"
OTHERS = ("scipy", "pandas", "numpy", "matplotlib", "seaborn")
RANKINGS = (PLAIN, "tfidf", "stack", "words_alone")
CODE = re.compile(r"^ *(>>>|\.\.\.).*$", re.M)
NAMES = re.compile(rf"\b({'|'.join((*OTHERS, LIBRARY, 'scikit.learn', 'np', 'pd'))})\b", re.I)
Rows = list[tuple[str, bool, str]]
"""Of each text whether it is of the domain, and its group."""


def long_posts(archive: str) -> Rows:
    """Return posts of more than ``WORDS`` words."""
    raw = newsgroups.load({"path": archive, "forget": [GROUP], "group": None}, Path("."))
    first = {
        text: group == GROUP
        for text, group in zip(raw.texts, raw.labels["group"], strict=True)
        if len(text.split()) > WORDS
    }
    return [(text, forget, text) for text, forget in first.items()]


def docstrings(library: str) -> Iterator[tuple[str, str]]:
    """Yield file and docstring of each module, class and function of an installed library."""
    spec = find_spec(library)
    assert spec is not None and spec.origin is not None
    for path in sorted(Path(spec.origin).parent.rglob("*.py")):
        if "tests" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    yield str(path), ast.get_docstring(node) or ""


def comments() -> Rows:
    """Return docstrings of libraries, without examples of code and the names of libraries."""
    first = {
        NAMES.sub("", CODE.sub("", text)): (library == LIBRARY, path)
        for library in (*OTHERS, LIBRARY)
        for path, text in docstrings(library)
        if len(text) >= SHORTEST
    }
    return [(text, forget, path) for text, (forget, path) in first.items()]


def pool_of(rows: Rows, base: Path) -> Pool:
    """Return ``EACH`` texts of both domains, with their vectors."""
    rng = np.random.default_rng(0)
    forget = np.array([inside for _, inside, _ in rows])
    drawn = [rng.permutation(np.flatnonzero(forget == inside))[:EACH] for inside in (True, False)]
    places = np.sort(np.concatenate(drawn)).tolist()
    texts = [rows[place][0] for place in places]
    groups = np.unique([rows[place][2] for place in places], return_inverse=True)[1]
    return Pool(
        np.array([f"{place:06}" for place in places], dtype=object),
        forget[places],
        vectors(texts, base, LENGTH).astype(np.float16),
        texts=np.array(texts, dtype=object),
        groups=groups,
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("archive")
    parser.add_argument("base", type=Path, help="the card of the model that embeds")
    parser.add_argument("--seeds", type=int, default=3, help="of folds")
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("further", threads=1)
    for name, rows in (("comments", comments()), ("long", long_posts(args.archive))):
        compare(report, name, pool_of(rows, args.base), args.seeds, RANKINGS)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
