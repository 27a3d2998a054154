"""What a ranking loses behind a screen: the posts of `groups.py`, of which few pass.

    python -m studies.unlabelled.screened 20news-bydate.tar.gz results/base/smollm2_frozen/card.json

Each of five newsgroups is the domain, 100 of its posts are examples, and all other posts the
corpus. Reported is the precision of a list of as many texts as the corpus has of the domain, which
is its recall as well, and the recall of a list twice as long: of all texts (``all``), of those that
pass a screen (``5%``, and so on), and by the words of the screen alone. ``_passed`` is the share of
the domain that passes. Texts are ranked by words and embeddings, and ``_vectors`` by these alone;
behind a screen the words are what it says of them. 100 texts are known to be wanted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mamushi.data.conversations import Conversations
from mamushi.running.threads import one_for_arithmetic
from mamushi_extras.unlabelled.screen import fit_screen
from studies.lib.report import Report, arguments
from studies.unlabelled.groups import GROUPS, embedder, posts, read
from studies.unlabelled.positive import WANTED, Doubles, Source, both, logistic

EXAMPLES, PASSED, SAMPLE = 100, (0.05, 0.1, 0.2), 5000


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("archive")
    embedder(parser, "posts.npy")
    parser.add_argument("--draws", type=int, default=10)
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("screened", threads=1)
    texts, groups = posts(args.archive)
    x, words = read(texts, args)
    by_name: dict[str, list[float]] = {}
    for group in GROUPS:
        source = Source(x, np.array(groups) == group, words)
        drawn = [of_draw(source, texts, seed) for seed in range(args.draws)]
        for name in drawn[0]:
            value = float(np.mean([values[name] for values in drawn]))
            report.value(f"{group}_{name}", value)
            by_name.setdefault(name, []).append(value)
    for name, values in by_name.items():
        report.value(f"mean_{name}", float(np.mean(values)))
    report.write(args.results)


def of_draw(source: Source, texts: list[str], seed: int) -> dict[str, float]:
    """What the lists of one draw of examples have."""
    rng = np.random.default_rng([seed, EXAMPLES])
    ours, rest = (rng.permutation(np.flatnonzero(source.forget == of)) for of in (True, False))
    marked = [ours[:EXAMPLES], rest[:WANTED]]
    corpus = np.setdiff1d(np.arange(len(texts)), np.concatenate(marked))
    examples, kept = ([texts[row] for row in rows] for rows in marked)
    fitted = fit_screen(examples, [texts[row] for row in rng.permutation(corpus)[:SAMPLE]])
    count = int(source.forget[corpus].sum())
    shares: dict[str, float] = {}

    def listed(name: str, rows: NDArray[np.int64], score: Doubles) -> None:
        hit = source.forget[rows[np.argsort(-score, kind="stable")]]
        shares[name] = float(hit[:count].sum() / count)
        shares[f"{name}_twice"] = float(hit[: 2 * count].sum() / count)

    def ranked(name: str, inside: NDArray[np.int64], margin: Doubles | None = None) -> None:
        rows = np.concatenate([*marked, inside])
        place, here = np.arange(len(rows)), EXAMPLES + WANTED
        label = place < EXAMPLES
        vectors = logistic(source.x[rows], label, seed)
        if margin is None:
            score = both(source, rows, label, seed)
        else:
            score = sum((entries - entries.mean()) / entries.std() for entries in (vectors, margin))
        listed(name, inside, score[here:])
        listed(f"{name}_vectors", inside, vectors[here:])

    ranked("all", corpus)
    listed("words", corpus, fitted.scores(texts[row] for row in corpus)[:, 0])
    for share in PASSED:
        entries = ((int(row), "", {"text": texts[row]}) for row in corpus)
        screen = replace(fitted)
        rows = np.array(
            [
                n
                for n, *_ in screen.through(
                    entries, Conversations("text"), round(share * len(corpus))
                )
            ]
        )
        ranked(f"{share:.0%}", rows, screen.margins(examples, [*kept, *(texts[r] for r in rows)]))
        shares[f"{share:.0%}_passed"] = float(source.forget[rows].sum() / count)
    return shares


if __name__ == "__main__":
    main()
