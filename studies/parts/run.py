"""Whether a ranking follows the grade, or the size, of the parts of a forget domain.

    python -m studies.parts.run newsgroups 20news-bydate.tar.gz --part group --thin 0.3 0.1
    python -m studies.parts.run table tweets.csv --settings SETTINGS --grade hate_speech

On real texts with cheap vectors, by several cross-fitted estimators. For each part: the share of
its texts, and of the list, at each budget, and the AUC of its texts against the other forget texts,
whose chance is 0.5. For a grade: Spearman's correlation with the score over the forget texts. And
for `--thin`: all but so many of a part's texts are left out of the forget domain; the AUC of those
that stay against the other parts, less that of the same texts in the whole domain, as a mean over
disjoint draws with its t interval: below 0 a part goes later because it is rare. All intervals are
of 95%.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.paired import interval
from mamushi.evidence.confounds import area, correlation
from mamushi.registry import load, plugin
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.metrics import auc
from mamushi.selection.pool import Pool
from mamushi.selection.removals import count
from studies.lib.cheap import Corpus, corpus, texts_option
from studies.lib.report import Report, arguments

Mask = NDArray[np.bool_]
Doubles = NDArray[np.float64]
BUDGETS = (0.1, 0.25, 0.5, 0.75)
DRAWS = 5
"""Most disjoint draws of a part."""
ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "mamushi_lr": ("mamushi_lr", {}),
    "linear": ("linear", {"depths": [1]}),
    "one_network": ("mamushi", {"seeds_averaged": 1, "batch_size": 256}),
}


def main() -> None:
    parser = arguments(__doc__)
    texts_option(parser)
    parser.add_argument("--part", help="the label that tells the parts apart")
    parser.add_argument("--grade", help="a label of numbers")
    parser.add_argument("--thin", nargs="*", type=float, default=[], help="shares of a part")
    parser.add_argument("--name", help="of the results; by default the kind")
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=[*ESTIMATORS])
    args = parser.parse_args()
    start = time.process_time()
    one_for_arithmetic()
    texts = corpus(args)
    forget = texts.pool.forget
    report = Report("parts", threads=1)
    report.name = f"parts-{args.name or args.kind}"
    report.value("forget_texts", int(forget.sum()))
    report.value("retain_texts", int((~forget).sum()))
    for name in args.estimators:
        scores = scored(texts.pool, name)
        report.value(f"{name}_auc", auc(scores, forget))
        if args.grade:
            grade = texts.labels[args.grade].astype(np.float64)[forget]
            report.value(f"{name}_spearman_{args.grade}", shown(correlation(scores[forget], grade)))
        for part, own in parts(texts, args.part or args.grade):
            told(report, f"{name}_{part}", scores, forget, own)
            for share in args.thin:
                found = thinned(texts.pool, name, scores, own, share)
                low, high = interval(found)
                report.value(f"{name}_{part}_thin_{share}_draws", len(found))
                report.value(
                    f"{name}_{part}_thin_{share}", shown((float(np.mean(found)), low, high))
                )
    report.value("cpu_seconds", time.process_time() - start)
    print(report.write(args.results))


def parts(texts: Corpus, label: str) -> Iterator[tuple[str, Mask]]:
    """The parts of the forget domain by a label, each as a mask of all texts."""
    values = texts.labels[label].astype(str)
    for value in np.unique(values[texts.pool.forget]):
        yield value, texts.pool.forget & (values == value)


def scored(pool: Pool, name: str) -> Doubles:
    """Cross-fitted scores (n,) by an estimator."""
    kind, changes = ESTIMATORS[name]
    settings = {**plugin("selector", kind).defaults, **changes}
    with contextlib.redirect_stderr(io.StringIO()):
        found: Doubles = load("selector", kind).score(pool, settings, 0).scores
    return found


def told(report: Report, name: str, scores: Doubles, forget: Mask, own: Mask) -> None:
    """What the ranking does with a part."""
    order = np.flatnonzero(forget)[np.argsort(-scores[forget], kind="stable")]
    report.value(f"{name}_texts", int(own.sum()))
    report.value(f"{name}_of_domain", float(own.sum() / forget.sum()))
    for budget in BUDGETS:
        listed = own[order[: count(budget, len(order))]]
        report.value(f"{name}_listed_{budget}", float(listed.sum() / own.sum()))
        report.value(f"{name}_of_list_{budget}", float(listed.mean()))
    found, _ = area(scores[forget], own[forget], np.zeros(int(forget.sum()), dtype=np.int64))
    report.value(f"{name}_auc_in_domain", shown(found))


def thinned(pool: Pool, name: str, whole: Doubles, own: Mask, share: float) -> list[float]:
    """The AUC of the texts of a part that stay against the other parts, less that of the same texts
    by the scores of the ``whole`` domain: for each of several disjoint draws."""
    members = np.random.default_rng(0).permutation(np.flatnonzero(own))
    size = round(share * len(members))
    found = []
    for draw in range(min(DRAWS, len(members) // size)):
        stays = np.zeros(len(own), dtype=np.bool_)
        stays[members[draw * size : (draw + 1) * size]] = True
        kept = ~own | stays
        among = kept & pool.forget
        again = np.full(len(own), np.nan)
        again[kept] = scored(pool.part(kept), name)
        found.append(auc(again[among], stays[among]) - auc(whole[among], stays[among]))
    return found


def shown(found: tuple[float, float, float] | None) -> str:
    """An estimate and its interval in words."""
    return "none" if found is None else f"{found[0]:.3f} [{found[1]:.3f}, {found[2]:.3f}]"


if __name__ == "__main__":
    main()
