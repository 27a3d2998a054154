"""What foresees a retraining: predictors of what a removal recovers, judged on archived models.

    python -m studies.predicted.run results [MORE ...]
    python -m studies.predicted.run results --predictions FILE

Each list of the archive (``studies/evidence/archive``) was retrained, with as many steps as the
model of all texts. A predictor says, before any training, which share of the gap a list recovers,
from the texts in the folder of results. Per dataset, over all lists of texts and seeds: ``error``,
the root mean square of predicted less measured share; ``bias``, its mean; ``within_B``, the correlation at
the budget B between lists, seeds taken out; ``retain_B``, the same of retain NLL. ``ceiling_B`` is
the correlation of a perfect predictor: lists that are the same in all seeds tell the noise.

``half_gap_error`` is the 95% quantile over selectors and seeds of how far the predicted budget of
half of the gap is from the measured one, the mean over seeds; ``at_S_error``, of the share S of it;
``pilot_error``, of the prediction for the half through one retraining at 0.5, from the mean over
the other seeds; ``pilots_error``, through two about the half; ``line_error``, of straight lines
through the one; ``covered``, the share of these that the interval of the advice covers.

``unigram`` reads the held-out texts, ``unigram_folds`` the ranked ones by folds.

Somebody else's predictor is a CSV file with the columns dataset, seed, arm (such as
``retrained/auto/beta0.50``) and recovered, and is judged beside them on the rows that it has.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.crossing import first_crossing
from mamushi.evidence.predicted import HALF_WIDTH, Proxy, budget
from mamushi.io import paths
from mamushi.io.domains import EVALUATION, FORGET, INFERENCE
from mamushi.lm.tokens import TokenSet, read_tokens
from mamushi.registry import plugins
from mamushi.running.threads import one_for_arithmetic
from studies.evidence.archive import Run, read
from studies.lib.report import Report, arguments

Doubles = NDArray[np.float64]
ARCHIVE = Path(__file__).parents[1] / "evidence" / "archive"
PILOT = 0.5
SHARES = (0.25, 0.75, 0.9)
"""Shares of the gap for which budgets are asked, beside the half."""


class List(NamedTuple):
    """A list that was retrained: ``removed`` are rows of the texts, and ``recovered`` and
    ``retain`` what was measured, as shares of the gap."""

    seed: int
    selector: str
    beta: float
    removed: NDArray[np.int64]
    recovered: float
    retain: float


def lists(run: Run, texts: TokenSet) -> list[List]:
    """Return all lists of texts that were retrained."""
    place = {name: row for row, name in enumerate(texts.ids)}
    rows = np.array([place[name] for name in run.ranked.ids])
    found = []
    for (seed, selector, beta), chosen in run.lists.items():
        arms = (run.cards.get((seed, arm)) for arm in (f"retrained/{selector}/beta{beta}", *ENDS))
        measured = [None if card is None else np.array(card["nll"]) for card in arms]
        if any(each is None for each in measured):
            continue
        own, start, gold = measured
        change = (own - start) / (gold - start)[0]
        found.append(List(seed, selector, float(beta), rows[chosen.astype(bool)], *change))
    return found


ENDS = ("beta0", "gold")
TEXTS = (paths.TOKENS, paths.EXAMPLES)
CLIPPED = (0.02, 0.98)
"""Shares beyond which a curve's power would rest on the noise of one retraining."""


def between(ours: list[List], values: Doubles) -> Doubles:
    """Return values less the mean of their seed."""
    seeds = np.array([each.seed for each in ours])
    means = {seed: values[seeds == seed].mean() for seed in set(seeds.tolist())}
    return values - np.array([means[seed] for seed in seeds.tolist()])


def ceiling(ours: list[List], values: Doubles) -> float:
    """Return the correlation with the measured values of what is not noise in them."""
    rest = between(ours, values)
    same: dict[tuple[str, bytes], list[float]] = {}
    for each, value in zip(ours, rest, strict=True):
        same.setdefault((each.selector, each.removed.tobytes()), []).append(float(value))
    noise = [np.var(group, ddof=1) for group in same.values() if len(group) > 1]
    share = 1 - np.mean(noise) / np.var(rest) if noise else float("nan")
    return float(np.sqrt(max(share, 0.0)))


def judged(report: Report, name: str, found: list[List], predicted: Doubles) -> None:
    """Report how well a predictor (lists, 1 or 2) foresees; NaN for lists that it does not know."""
    known = np.isfinite(predicted[:, 0])
    found = [each for each, use in zip(found, known, strict=True) if use]
    predicted = predicted[known]
    off = predicted[:, 0] - np.array([each.recovered for each in found])
    report.value(f"{name}_error", float(np.sqrt(np.mean(off**2))))
    report.value(f"{name}_bias", float(off.mean()))
    for beta in sorted({each.beta for each in found}):
        at = [i for i, each in enumerate(found) if each.beta == beta]
        ours = [found[i] for i in at]
        for what, column in (("recovered", 0), ("retain", 1))[: predicted.shape[1]]:
            real = between(ours, np.array([getattr(each, what) for each in ours]))
            said = between(ours, predicted[at, column])
            if said.std() > 1e-9:
                label = "within" if column == 0 else "retain"
                report.value(f"{name}_{label}_{beta}", float(np.corrcoef(said, real)[0, 1]))


def half_gaps(report: Report, name: str, found: list[List], predicted: Doubles) -> None:
    """Report how far budgets for half of the gap are off, without a retraining and with one."""
    curves: dict[tuple[str, int], dict[float, tuple[float, float]]] = {}
    for each, value in zip(found, predicted[:, 0], strict=True):
        curves.setdefault((each.selector, each.seed), {})[each.beta] = (
            float(value),
            each.recovered,
        )
    betas = sorted({each.beta for each in found})
    curves = {key: own for key, own in curves.items() if sorted(own) == betas}
    grid = [0.0, *betas, 1.0]
    real, said = (
        {
            key: np.array([0.0, *(own[beta][i] for beta in betas), 1.0])
            for key, own in curves.items()
        }
        for i in (1, 0)
    )
    errors: dict[str, list[float]] = {}
    for (selector, seed), own in said.items():
        here = real[selector, seed]
        same = [each for (name, _), each in real.items() if name == selector]
        apart = [real[key] for key in real if key[0] == selector and key[1] != seed]
        near = sorted(grid[1:-1], key=lambda beta: abs(here[grid.index(beta)] - 0.5))[:2]
        one, two = ([(beta, here[grid.index(beta)]) for beta in at] for at in ([PILOT], near))
        whole = np.mean(same, 0)
        others = first_crossing(grid, np.mean(apart, 0), 0.5)
        for what, guess, truth in (
            ("half_gap", budget(own, grid, 0.5), first_crossing(grid, whole, 0.5)),
            *(
                (f"at_{share}", budget(own, grid, share), first_crossing(grid, whole, share))
                for share in SHARES
            ),
            ("pilot", budget(through(own, grid, one), grid, 0.5), others),
            ("pilots", budget(through(own, grid, two), grid, 0.5), others),
            ("line", first_crossing([0, PILOT, 1], [0, one[0][1], 1], 0.5), others),
        ):
            off = np.nan if guess is None or truth is None else abs(guess - truth)
            errors.setdefault(what, []).append(off)
    for what, found_errors in errors.items():
        off = np.array(found_errors)
        report.value(f"{name}_{what}_n", len(off))
        report.value(f"{name}_{what}_error", float(np.nanquantile(off, 0.95)))
        report.value(f"{name}_{what}_largest", float(np.nanmax(off)))
        report.value(f"{name}_{what}_covered", float(np.mean(off <= HALF_WIDTH)))


def through(curve: Doubles, budgets: list[float], measured: list[tuple[float, float]]) -> Doubles:
    """Return the curve (budgets,) of what is recovered, raised to the powers by which it goes
    through what retraining at some budgets has recovered, ``measured`` as (budget, share): from 0
    to 1 as before, with a power that is linear between these budgets."""
    at, shares = np.array(sorted(measured)).T
    here = np.interp(at, budgets, curve)
    powers = np.log(np.clip(shares, *CLIPPED)) / np.log(np.clip(here, *CLIPPED))
    return np.asarray(np.clip(curve, 0, None) ** np.interp(budgets, at, powers))


def predictors(own: TokenSet, held: TokenSet) -> Mapping[str, Callable[[List], Any]]:
    """Return the predictors: the share of the texts and of their tokens are what each has to
    beat."""
    forget = own.domains == FORGET
    tokens = own.lengths / own.lengths[forget].sum()
    proxies = {"unigram": Proxy(own, held), "unigram_folds": Proxy(own, None)}
    return {
        "texts": lambda each: [len(each.removed) / forget.sum()],
        "tokens": lambda each: [tokens[each.removed].sum()],
        **{
            name: lambda each, by=by: by.curve([by.positions(each.removed)])[0]
            for name, by in proxies.items()
        },
    }


def others(path: Path, dataset: str, found: list[List]) -> Doubles:
    """Return the predictions of a file (lists, 1), NaN where it has none."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["dataset"] == dataset]
    known = {(int(row["seed"]), row["arm"]): float(row["recovered"]) for row in rows}
    arms = [(each.seed, f"retrained/{each.selector}/beta{each.beta:.2f}") for each in found]
    return np.array([[known.get(arm, np.nan)] for arm in arms])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of results with the texts")
    parser.add_argument("--archive", type=Path, default=ARCHIVE, help="the models")
    parser.add_argument("--predictions", type=Path, help="somebody else's, a CSV file")
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("predicted", threads=1)
    tokens_kinds = {k for k, each in plugins("selector").items() if each.literals.get("UNIT")}
    for (dataset, model), run in read(args.archive).items():
        both = (
            [paths.under(folder, pattern, dataset=dataset, model=model) for pattern in TEXTS]
            for folder in args.folders
        )
        files = next((found for found in both if found[0].is_file()), None)
        if files is None:
            continue
        training = run.cards[min(run.cards)]["settings"]["training"]
        own, held = (
            read_tokens(*files, section, training["max_length"])
            for section in (INFERENCE, EVALUATION)
        )
        found = [each for each in lists(run, own) if each.selector not in tokens_kinds]
        report.value(f"{dataset}_lists", len(found))
        for beta in sorted({each.beta for each in found}):
            ours = [each for each in found if each.beta == beta]
            for what, label in (("recovered", "ceiling"), ("retain", "retain_ceiling")):
                values = np.array([getattr(each, what) for each in ours])
                report.value(f"{dataset}_{label}_{beta}", ceiling(ours, values))
        for name, predict in predictors(own, held).items():
            start = time.process_time()
            predicted = np.array([predict(each) for each in found])
            report.value(
                f"{dataset}_{name}_cpu_ms", 1e3 * (time.process_time() - start) / len(found)
            )
            judged(report, f"{dataset}_{name}", found, predicted)
            half_gaps(report, f"{dataset}_{name}", found, predicted)
        if args.predictions:
            judged(report, f"{dataset}_given", found, others(args.predictions, dataset, found))
    print(report.write(args.results))


if __name__ == "__main__":
    main()
