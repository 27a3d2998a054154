"""How often the intervals that the program shows are given, and how often they hold.

    python -m studies.coverage.run [--draws 200] [--worlds NAME ... --earlier REPORT]

Each world's truth is known: that of an AUC is the AUC of a logistic regression's fits on new texts
with the right labels, and a budget's the frontier of the exact ratio on new texts. ``NAME_given``
is how often there is an interval, ``NAME_holds`` how often that holds. Where only some worlds are
drawn, an earlier report has the rows of the others.
"""

import contextlib
import io
import zlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from mamushi.evaluation.half_gap import crossing, saving_columns
from mamushi.evidence import verdict
from mamushi.evidence.advice import first_reached, predicted_budget
from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.confounds import leaking_columns
from mamushi.evidence.dependence import Dependence, dependence
from mamushi.evidence.frontier import Frontier, RemovalOrder, frontier_rows, gain
from mamushi.registry import plugin
from mamushi.running.machine import limit_threads
from mamushi.selection.folds import stratified_folds
from mamushi.selection.metrics import DELONG_FACTOR, auc
from mamushi.selection.pool import Pool
from mamushi_extras.audit import auditing
from mamushi_extras.audit.adds import NO, YES
from mamushi_extras.effects.contrasts import contrast, interval
from mamushi_extras.effects.deep_gap import deep_curve
from mamushi_extras.left.attacks import compare
from mamushi_extras.unlabelled.corpus import Corpus
from studies.lib.report import Report, arguments

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rng = np.random.Generator
Results = dict[str, bool | None]  # By interval whether it holds; None where it is not given.
FRESH, RESAMPLES, TOPICS, BUDGETS = 4000, 100, 8, 41
DEEP = 0.137  # Nats a token: a small gap.


def inside(low: float | None, true: float, high: float | None) -> bool | None:
    """Return whether an interval holds the truth, None without one; no upper end is 1."""
    if low is None or np.isnan(low):
        return None
    return bool(low <= true <= (1.0 if high is None else high))


@dataclass(frozen=True)
class Texts:
    """Texts as vectors of a ``width``, the domains ``apart`` along one direction. A group of
    ``size``, or one of a fifth of each domain (``heavy``), shares a part of its vectors' variance,
    in all directions or, ``narrow``, in three, of which one tells the domains apart; ``named``, a
    column says which. Of labels in both domains a share is ``wrong``, of retain texts another one
    are forget texts, ``mislaid``. Forget texts may be like retain texts, ``alike``."""

    forget: int = 240
    retain: int = 360
    width: int = 32
    apart: float = 1.2
    size: int = 1
    shared: float = 0.0
    mislaid: float = 0.0
    wrong: float = 0.0
    alike: float = 0.0
    kind: str = ""

    def groups(self) -> NDArray[np.int64]:
        """Return the code (n,) of each text's group."""
        counts = np.arange(self.forget), np.arange(self.retain)
        fifths = (np.maximum(count - len(count) // 5, 0) for count in counts)
        one, two = fifths if self.kind == "heavy" else (count // self.size for count in counts)
        return np.concatenate([one, two + one.max() + 1])

    def vectors(self, domain: Mask, groups: NDArray[np.int64], seed: int) -> Doubles:
        """Draw vectors (n, width) of texts, of the forget ``domain`` (n,) or not. The ``seed``
        alone says where directions and topics lie."""
        fixed, rng = np.random.default_rng([seed, 0]), np.random.default_rng([seed, len(groups)])
        n, d = len(domain), self.width
        three, _ = np.linalg.qr(fixed.normal(size=(d, 3)))
        centres, shares = fixed.normal(size=(TOPICS, d)), fixed.dirichlet(np.ones(TOPICS), 2)
        alone, together = rng.normal(size=(n, d)), rng.normal(size=(groups.max() + 1, d))[groups]
        x = np.sqrt(self.shared) * together + np.sqrt(1 - self.shared) * alone
        if self.kind == "narrow":
            x = alone + (x - alone) @ three @ three.T
        if self.kind == "topics":
            x += centres[np.where(domain, *(rng.choice(TOPICS, n, p=each) for each in shares))]
        is_apart = domain & (rng.random(n) >= self.alike)
        return np.asarray(x + self.apart * is_apart[:, None] * three[:, 0])


def rank(world: Texts, rng: Rng) -> Results:
    """Rank texts by a cross-fitted logistic regression: its AUC, that with the further end that is
    told for wrong labels, and the bound on what of its lists is like retain texts."""
    seed, n = int(rng.integers(2**31)), world.forget + world.retain
    forget = np.arange(n) < world.forget
    domain = forget ^ (rng.random(n) < np.where(forget, world.wrong, world.wrong + world.mislaid))
    x = world.vectors(domain, groups := world.groups(), seed).astype(np.float16)
    ids = np.array([f"{i:06d}" for i in range(n)], dtype=object)
    pool = Pool(ids, forget, x, groups=groups if world.kind == "named" else None)
    selector = plugin("selector", "mamushi_lr")
    settings = {**selector.defaults, "solver": "newton-cholesky", "alpha": 1e-3}
    with contextlib.redirect_stderr(io.StringIO()):
        scored = selector.code.score(pool, settings, seed)
    # A fold's scores are linear in the vectors, so that they tell its weights.
    design = np.column_stack([x.astype(np.float64), np.ones(n)])
    folds = [scored.fold == number for number in range(settings["folds"])]
    fits = [np.linalg.lstsq(design[rows], scored.scores[rows])[0] for rows in folds]
    new = np.arange(2 * FRESH) < FRESH
    fresh = world.vectors(new, np.arange(2 * FRESH), seed)
    again = np.column_stack([fresh, np.ones(2 * FRESH)]) @ np.column_stack(fits)
    truth = float(np.mean([auc(of_fold, new) for of_fold in again.T]))
    value, low, high = verdict.auc_interval(scored.scores, forget, (), pool.groups)
    near, far = dependence(x, forget, pool.groups).ends(value, low, high)
    falling, above = -np.sort(-scored.scores[forget]), np.sort(again[~new], axis=None)
    groups2 = None if pool.groups is None else pool.groups[~forget]
    is_bounded = True
    for k in range(1, world.forget + 1, max(1, world.forget // 50)):
        share = k / world.forget
        true = (1 - np.searchsorted(above, falling[k - 1]) / len(above)) / share
        told = verdict.share_bound(scored.scores[~forget], falling[k - 1], share, groups2)
        is_bounded &= (told["upper_bound"] or 0.0) >= min(true, 1.0)
    results: Results = {"auc": inside(near, truth, far)}
    results["also_retain"] = None if near is None else is_bounded
    if world.wrong or world.mislaid:
        results["auc_mislabelled"] = inside(near, truth, verdict.auc_of_right_labels(far or 1.0))
    return results


def leak(rng: Rng) -> Results:
    """Follow a column that tells the domain by fixed scores, which know nothing else."""
    forget = np.arange(400) < 160
    source = (rng.random(400) < np.where(forget, 0.9, 0.1)) + 0.0
    score, columns = rng.normal(source, 1), {"source": source}
    rows = leaking_columns(score, forget, columns, None, DELONG_FACTOR)
    among = inside(rows[0]["low"], 0.5, rows[0]["high"]) if rows else None
    return {"auc": None if verdict.leak_reason(rows) else False, "among_equal": among}


def foresee(far: float, rng: Rng) -> Results:
    """Advise half of a removal, of forget texts at 1 and of a fifth of them at ``far``."""

    def draw(n: int) -> tuple[Doubles, Mask, Doubles]:
        forget = np.arange(n) < 0.4 * n
        is_far = forget & (rng.random(n) < 0.2)
        x = rng.normal(np.where(is_far, far, 1.0 * forget), 1)
        return x, forget, np.logaddexp(np.log(0.8) + x - 0.5, np.log(0.2) + far * (x - far / 2))

    def order_of(x: Doubles, forget: Mask) -> RemovalOrder:
        first, behind = np.argsort(-x[forget]), np.argsort(-x[~forget])
        return RemovalOrder(first, False, (-x[forget][first], -x[~forget][behind], behind))

    x, forget, _ = draw(1000)
    folds = stratified_folds(forget, 5, 0).astype(np.int64)
    scores = RatioScores(np.exp(rng.uniform(-1, 1)) * x, forget, folds)
    checks = verdict.ratio_checks(scores, estimate := scores.estimate(), RESAMPLES, 0)
    withheld = verdict.judge_scores(scores, estimate, checks, Dependence())["reason"]
    budgets = np.linspace(0, 1, BUDGETS)
    rows = frontier_rows(scores, {"own": order_of(x, forget)}, budgets, RESAMPLES, 0)
    advised = predicted_budget([[{**row, "withheld": withheld} for row in rows]], "removal", 0.5)
    big, new, ratio = draw(100_000)
    exact, _ = Frontier(ratio, new).at(order_of(big, new), (budgets * new.sum()).astype(np.int64))
    curve = [{"beta": b, "gain": g} for b, g in zip(budgets, gain(exact), strict=True)]
    true = first_reached([*curve], "gain", 0.5)
    low, high = advised["budget_low"], advised["budget_high"]
    halves = {"budget_low": inside(low, true, None), "budget_high": inside(low and 0.0, true, high)}
    return {"budget": inside(low, true, high), **halves}


def retrain(
    seeds: int, per_group: int, rng: Rng, n: int = 150, gap: float = 0.3, draws: int = 0
) -> Results:
    """Retrain models that recover half of the ``gap`` on ``n`` forget texts, and differ from gold
    by 0.01 nats on retain texts; with errors over seeds, groups of texts, texts, and what is left.
    On other retain texts gold loses 0.4 of the gap, and they lose 0.8 of that: net, they recover
    0.3. Where seeds are trained on several ``draws`` of texts, or all on one, that errs as well."""
    groups = np.arange(n) // per_group
    tokens = np.maximum(rng.lognormal(3, 0.8, n), 2).round()

    def noise() -> Doubles:
        of_text = rng.standard_t(3, groups.max() + 1)[groups] + rng.standard_t(3, n)
        errors = rng.normal(size=(seeds, 1)) + of_text + rng.standard_t(3, (seeds, n))
        if draws:
            errors += rng.normal(size=(draws, 1)) + rng.standard_t(3, (draws, n))
        return np.asarray(0.03 * errors)

    def nll(mean: float, share: float) -> list[Doubles]:
        """Return the NLL (S, n) under beta 0, gold and models that go a share of the way."""
        beta0, opens = (3 + noise()) * tokens, mean + 0.1 * rng.normal(size=n)
        return [beta0, *(beta0 + (at * opens + noise()) * tokens for at in (1, share))]

    beta0, gold, arm = of_forget = nll(gap, 0.5)
    changed = beta0 + (0.01 + noise()) * tokens
    start, end, model = np.concatenate([of_forget, nll(0.4 * gap, 0.8)], axis=-1)
    both, forget = (np.tile(tokens, 2), np.tile(groups, 2)), np.arange(2 * n) < n
    effects = {
        "recovered": (0.5, contrast(arm, beta0, tokens, groups, gap=(beta0, gold))),
        "retain_change": (0.01, contrast(changed, beta0, tokens, groups)),
        "recovered_net": (0.3, contrast(model, start, *both, forget=forget, gap=(start, end))),
        "to_beta0": (gap / 2, contrast(arm, beta0, tokens, groups)),
        "to_gold": (-gap / 2, contrast(arm, gold, tokens, groups)),
    }
    return {name: inside(told.low, true, told.high) for name, (true, told) in effects.items()}


def sweep(seeds: int, rng: Rng) -> Results:
    """Cross half of the gap at 0.4 by a selector and at 0.6 by chance, with seeds that differ, also
    by a common part; the excess of relearning is a mean over seeds. Half of the deep gap of texts
    that differ is crossed at 0.4, too."""
    beta, common = np.linspace(0, 1, 6), rng.normal(size=seeds)

    def curves(at: float) -> Doubles:
        height = 0.5 / at + 0.1 * (common + rng.normal(size=seeds))
        return np.minimum(height[:, None] * beta, 1.5)

    own, chance = (crossing(beta, curves(at), 0.5) for at in (0.4, 0.6))
    ends = (saving_columns(own, chance).get(f"saving_vs_random_{end}") for end in ("low", "high"))
    low, high = interval(0.1 + 0.02 * rng.normal(size=seeds))
    spared, excess = inside(next(ends), 1 / 3, next(ends)), inside(low, 0.1, high)
    tokens, opens = rng.integers(8, 30, 80).astype(float), DEEP * (1 + rng.normal(size=80))

    def nll(share: float) -> Doubles:
        learned = share + 0.05 * rng.normal(size=(seeds, 1))
        return np.asarray((3 + learned * opens + 0.03 * rng.normal(size=(seeds, 80))) * tokens)

    models = np.array([nll(min(at / 0.8, 1.0)) for at in beta])
    deep = deep_curve(beta, models, (models[0], models[-1]), (tokens, None), 0.5)[1]
    told = inside(deep.get("deep_budget_low"), 0.4, deep.get("deep_budget_high"))
    half_gap = inside(own.low, 0.4, own.high)
    return {"half_gap": half_gap, "saving": spared, "excess": excess, "deep_budget": told}


def recognize(seeds: int, rng: Rng) -> Results:
    """Recognize 200 members, whose scores models raise by half of the spread of texts, more or less
    by seed, beside gold models, which know nothing of them."""
    member, easy = np.arange(400) < 200, rng.normal(size=400)
    gold, model = easy + 0.3 * rng.normal(size=(2, seeds, 400))
    model += (0.5 + 0.1 * rng.normal(size=(seeds, 1))) * member
    outside, within = 1 + 0.3**2, 1 + 0.3**2 + 0.1**2  # Variances of others, and of members.
    tpr = norm.sf(norm.isf(0.01) * np.sqrt(outside), 0.5, np.sqrt(within))
    truth = {"auc": (norm.cdf(0.5 / np.sqrt(outside + within)), 0.5), "tpr": (tpr, 0.01)}
    results: Results = {}
    for measure, (true, chance) in truth.items():
        row = compare(model, gold, np.tile(member, (seeds, 1)), ~member, measure)
        for of, at in {"": true, "gold_": chance, "difference_": true - chance}.items():
            results[f"{of}{measure}"] = inside(row[f"{of}low"], at, row[f"{of}high"])
    return results


def ask(wrong: float, rng: Rng) -> Results:
    """Audit a list of 200 of 1,000 texts of which 80% are of the domain, as are 5% of 3,000 retain
    texts, by 100 answers of two readers, who each get a share ``wrong``."""
    source = np.repeat([1, 2], [1000, 3000])
    domain = rng.random(4000) < np.where(source == 1, 0.8, 0.05)
    place = -rng.normal(1.0 * domain)
    source[np.argsort(place[:1000])[:200]] = 0
    likely = np.where(source == 2, auditing.RETAIN_TEXT, auditing.FORGET_TEXT)
    codes, listed = auditing.stratify(source, place), source == 0
    of_texts = pd.DataFrame({"texts": 1, "likely": likely, "listed": listed})
    strata = of_texts.groupby(codes).agg({"texts": "sum", "likely": "mean", "listed": "first"})
    read = auditing.draw_sample(codes, auditing.allocate(strata, 100), rng)
    said = domain[read] ^ (rng.random((2, len(read))) < wrong)
    merged = auditing.agreed_answers(pd.DataFrame(np.where(said.T, YES, NO)), 2)
    every = (merged.notna(), merged == YES, merged == auditing.UNSURE)
    answers = np.array([np.bincount(codes[read], which, len(strata)) for which in every])
    told = auditing.estimate(strata, answers, rng)
    truth = {"precision": domain[listed].mean(), "recall": domain[listed].sum() / domain.sum()}
    truth |= {"before": domain.mean(), "after": domain[~listed].mean()}
    return {name: inside(told[name][1], true, told[name][2]) for name, true in truth.items()}


def estimate(of_domain: float, rng: Rng) -> Results:
    """Estimate the share of a domain in a corpus of 2,000 texts, by 100 examples and 300 texts to
    keep, both drawn at random, and the precision and the recall of its first 200 texts."""
    domain = np.r_[np.ones(100), rng.random(2000) < of_domain, np.zeros(300)].astype(bool)
    number = np.arange(2400)
    masks = number < 100, (number >= 100) & (number < 2100), number >= 2100
    corpus = Corpus(number.astype(str).astype(object), rng.normal(2.0 * domain), *masks)
    first = corpus.order[:200]
    truth = domain[masks[1]].mean(), domain[first].mean(), norm.sf(corpus.score[first[-1]], 2.0)
    told = zip(truth, (corpus.share(), *corpus.list_rates(200)), strict=True)
    holds = (inside(ends["low"], true, ends["high"]) for true, ends in told)
    return dict(zip(("share", "precision", "recall"), holds, strict=True))


TEXTS = {
    "independent": Texts(),
    "topics": Texts(kind="topics"),
    "ten": Texts(10, 200, 16, 2.5),
    "fifteen": Texts(15, 200, 16, 2.5),
    "fifteen_strong": Texts(15, 200, 16, 4.0),
    "fifteen_alike": Texts(15, 200, 16, 4.0, alike=0.1),
    "hundred_alike": Texts(100, 200, 16, 4.0, alike=0.03),
    "fives_named": Texts(size=5, shared=0.3, kind="named"),
    "twenties_named": Texts(size=20, shared=0.5, kind="named"),
    "fives": Texts(size=5, shared=0.3),
    "twenties_weak": Texts(size=20, shared=0.1),
    "fifth": Texts(kind="heavy", shared=0.5),
    "three_directions": Texts(size=20, shared=0.5, kind="narrow"),
    "wrong_5": Texts(wrong=0.05),
    "wrong_10": Texts(wrong=0.1),
    "mislaid_15": Texts(mislaid=0.15),
}
WORLDS: dict[str, Callable[[Rng], Results]] = {
    **{name: partial(rank, world) for name, world in TEXTS.items()},
    **{"leaking": leak, "one_cluster": partial(foresee, 1.0)},
    **{"two_clusters": partial(foresee, 3.0), "seeds_5_fives": partial(retrain, 5, 5)},
    **{f"seeds_{n}": partial(retrain, n, 1) for n in (1, 2, 3, 5)},
    **{f"seeds_{n}_draws": partial(retrain, n, 1, draws=n) for n in (2, 5)},
    "seeds_5_one_draw": partial(retrain, 5, 1, draws=1),
    **{f"deep_{n}": partial(retrain, n, 1, gap=DEEP) for n in (2, 5)},
    **{f"subgroup_{n}": partial(retrain, n, 1, n=60) for n in (2, 5)},
    "subgroup_fifteen": partial(retrain, 5, 1, n=15),
    **{f"curves_{n}": partial(sweep, n) for n in (1, 2, 5)},
    **{f"membership_{n}": partial(recognize, n) for n in (2, 5)},
    **{"audit": partial(ask, 0.0), "audit_errs": partial(ask, 0.02)},
    **{"corpus": partial(estimate, 0.2), "corpus_little": partial(estimate, 0.02)},
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=[*WORLDS])
    parser.add_argument("--earlier", type=Path, help="a report with the rows of the other worlds")
    args = parser.parse_args()
    limit_threads()
    report = Report("coverage", threads=1)
    lines = args.earlier.read_text(encoding="utf-8").splitlines() if args.earlier else []
    rows = dict[str, float | str](line.split(" ", 1) for line in lines if line[0] != "#")
    if rows.setdefault("draws", str(args.draws)) != str(args.draws):
        parser.error(f"the earlier report has {rows['draws']} draws")
    for name in args.worlds:
        results = defaultdict[str, list[bool | None]](list)
        for number in range(args.draws):
            rng = np.random.default_rng([number, zlib.crc32(name.encode())])
            for key, holds in WORLDS[name](rng).items():
                results[key].append(holds)
        for key, every in results.items():
            there = [holds for holds in every if holds is not None]
            rows[f"{name}_{key}_given"] = len(there) / len(every)
            rows[f"{name}_{key}_holds"] = float(np.mean(there)) if there else "none"
    for row in rows.items():
        report.value(*row)
    report.write(args.results)


if __name__ == "__main__":
    main()
