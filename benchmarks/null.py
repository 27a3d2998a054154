"""Whether what is asked of models says chance where there is nothing to be found.

    python benchmarks/null.py results synthetic tiny-llama --seeds 0 1 2 3 4 5 --gold 6 7 8 9 10 11

Of a finished run with gold models of ``--seeds`` and of further seeds (``--gold``): the forensic
test of gold models against other gold models, two halves of them and 500 random ways to halve and
pair them, of which 5% may have p below 0.05; and for comparison of retrained models against gold
(`tell_*`). Naming the texts of a list, which no gold model has seen, from the gold model of the
list's seed (`name_*`). Each attack's AUC, and its share of members at 1% false accusations, of the
forget texts of the inference section against held-out ones, under gold, which has seen neither, and
under beta 0, which has seen the first (`gold_*`, `beta0_*`). Intervals are of 95%, over seeds and
texts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import DOMAINS, FORGET, INFERENCE, read_table
from mamushi.evaluation import forensic
from mamushi.evaluation.attacks import (
    ATTACKS,
    Scored,
    auc,
    compare,
    likelihood_ratio,
    per_token,
    simple_scores,
    tpr,
)
from mamushi.evaluation.cohort import Cohort, read_nll
from mamushi.evaluation.klom import margins
from mamushi.evaluation.sources import RETRAINING, Source
from mamushi.running.threads import one_for_arithmetic
from report import Report, arguments

Doubles = NDArray[np.float64]

SPLITS = 500
STATISTICS = ("nll", "tokens", "zlib", "min_k", "min_k_plus")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("root", type=Path, help="the folder of results of a finished run")
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--seeds", nargs="+", type=int, required=True)
    parser.add_argument("--gold", nargs="*", type=int, default=[], help="seeds of more gold models")
    parser.add_argument("--lists", nargs="*", default=["random/0.50", "mamushi/0.50"])
    args = parser.parse_args()
    one_for_arithmetic()
    cohort = Cohort(args.dataset, args.model, tuple(args.seeds), args.root)
    everyone = Cohort(args.dataset, args.model, (*args.seeds, *args.gold), args.root)
    pairs = (name.split("/") for name in args.lists)
    lists = [Source(RETRAINING, selector, float(beta)) for selector, beta in pairs]
    report = Report("null", threads=1)
    for domain in DOMAINS:
        here = everyone.of(domain)
        gold = margins(everyone.gold[:, here], everyone.tokens[here])
        halves(report, domain, gold)
        for each in lists:
            said = margins(cohort.nll(each.arm)[:, here], cohort.tokens[here])
            name = f"tell_{each.selector}_{each.beta:.2f}_{domain}"
            told(report, name, forensic.tell_models_apart(said, gold[: len(said)]))
    for each in lists:
        named(report, cohort, each)
    attacked(report, cohort)
    report.write(args.results)


def told(report: Report, name: str, found: forensic.ModelTest) -> None:
    report.value(f"{name}_share", found.share)
    report.value(f"{name}_chance", f"{found.low:.4g} {found.high:.4g}")
    report.value(f"{name}_p", found.p)


def halves(report: Report, domain: str, gold: Doubles) -> None:
    """Gold models against gold models: margins (S, n)."""
    half = len(gold) // 2
    tested = forensic.tell_models_apart(gold[:half], gold[half : 2 * half])
    told(report, f"tell_gold_{domain}", tested)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(SPLITS):
        drawn = gold[rng.permutation(len(gold))]
        found.append(forensic.tell_models_apart(drawn[:half], drawn[half : 2 * half]))
    p = np.array([each.p for each in found])
    report.value(f"tell_gold_{domain}_pairs", half)
    report.value(f"tell_gold_{domain}_splits_share", float(np.mean([e.share for e in found])))
    report.value(f"tell_gold_{domain}_splits_below_0.05", float(np.mean(p < forensic.LEVEL)))
    report.value(f"tell_gold_{domain}_splits_below_0.50", float(np.mean(p <= 0.5)))


def named(report: Report, cohort: Cohort, each: Source) -> None:
    """Naming the texts of a list among held-out ones by how the gold model of the seed differs from
    those of others."""
    unseen = [i for i, one in zip(cohort.ids, cohort.texts.forget, strict=True) if one]
    gold = cohort.files(paths.RELAPSE_NLL, arm="gold")
    found = []
    for seed, removed in enumerate(cohort.lists(each)):
        said = [read_nll(one, [*removed, *unseen]) for one in gold]
        every = np.array([margins(nll, np.maximum(tokens, 1)) for tokens, nll in said])
        apart = every[seed] - np.delete(every, seed, axis=0).mean(axis=0)
        found.append(forensic.name_removed_texts(apart[: len(removed)], apart[len(removed) :]))
    mean, low, high = forensic.mean_over_seeds(found)
    name = f"name_{each.selector}_{each.beta:.2f}_gold_auc"
    report.value(name, mean)
    report.value(f"{name}_interval", f"{low:.4g} {high:.4g}")


def columns(path: Path) -> dict[str, Doubles]:
    """What a model makes of the texts, (n,) each."""
    table = read_table(path, schemas.LIKELIHOODS)
    return {name: table[name].to_numpy().astype(np.float64) for name in STATISTICS}


def attacked(report: Report, cohort: Cohort) -> None:
    """Each attack on gold models and on beta 0."""

    def read(endpoint: str) -> list[dict[str, Doubles]]:
        return [columns(path) for path in cohort.files(paths.MEMBERSHIP, arm=endpoint)]

    (first, *_) = cohort.files(paths.MEMBERSHIP, arm="gold")
    sections = read_table(first, schemas.LIKELIHOODS)["section"].to_pylist()
    member = np.array([section == INFERENCE for section in sections])
    report.value("texts", f"{member.sum()} {FORGET} of {INFERENCE}, {(~member).sum()} held out")
    asked = {endpoint: read(endpoint) for endpoint in ("gold", "beta0")}
    base = cohort.files(paths.MEMBERSHIP, arm="base")[0]
    before = columns(base)
    outside, inside = (np.array([per_token(one) for one in asked[e]]) for e in ("gold", "beta0"))
    scores: dict[str, list[dict[str, Doubles]]] = {}
    for endpoint, models in asked.items():
        for seed, one in enumerate(models):
            others = np.arange(len(models)) != seed
            shadows = (outside[others], inside[others])
            each = dict(simple_scores(one, before))
            each["likelihood_ratio"] = likelihood_ratio(per_token(one), *shadows, seen=member)
            scores.setdefault(endpoint, []).append(each)
    for attack in ATTACKS:
        pairs = zip(scores["beta0"], scores["gold"], strict=True)
        seeds = [Scored(one[attack], two[attack], member, ~member) for one, two in pairs]
        for what, measure in (("auc", auc), ("tpr", tpr)):
            found = compare(seeds, measure)
            for endpoint, value in (("gold", found.gold), ("beta0", found.model)):
                report.value(f"{endpoint}_{attack}_{what}", value.value)
                interval = f"{value.low:.4g} {value.high:.4g}"
                report.value(f"{endpoint}_{attack}_{what}_interval", interval)


if __name__ == "__main__":
    main()
