"""What foresees a retraining: predictors of what a removal recovers, judged on archived models.

    python -m studies.predicted.run results [MORE ...]
    python -m studies.predicted.run results --predictions FILE

Each list of the archive (``studies/evidence/archive``) was retrained, with as many steps as the
model of all texts. A predictor says, before any training, which share of the gap a list recovers,
from the texts in the folder of results. Per dataset, over all lists of texts and seeds: ``error``,
the root mean square of predicted less measured share; ``bias``, its mean; ``within_B``, the
correlation at the budget B between lists, seeds taken out; ``retain_B``, the same of retain NLL.
``ceiling_B`` is the correlation of a perfect predictor: lists that are the same in all seeds tell
the noise.

``half_gap_error`` is the 95% quantile over selectors and seeds of how far the predicted budget of
half of the gap is from the measured one, the mean over seeds; ``at_S_error``, of the share S of it;
``covered``, the share of these that the interval of the advice covers.

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
    rows_found = []
    for (seed, selector, beta), chosen in run.lists.items():
        arms = (run.cards.get((seed, arm)) for arm in (f"retrained/{selector}/beta{beta}", *ENDS))
        measured = [None if card is None else np.array(card["nll"]) for card in arms]
        if any(nll is None for nll in measured):
            continue
        end, start, gold = measured
        change = (end - start) / (gold - start)[0]
        rows_found.append(List(seed, selector, float(beta), rows[chosen.astype(bool)], *change))
    return rows_found


ENDS = ("beta0", "gold")
TEXTS = (paths.TOKENS, paths.EXAMPLES)


def between(ours: list[List], values: Doubles) -> Doubles:
    """Return values less the mean of their seed."""
    seeds = np.array([row.seed for row in ours])
    means = {seed: values[seeds == seed].mean() for seed in set(seeds.tolist())}
    return values - np.array([means[seed] for seed in seeds.tolist()])


def ceiling(ours: list[List], values: Doubles) -> float:
    """Return the correlation with the measured values of what is not noise in them."""
    rest = between(ours, values)
    same: dict[tuple[str, bytes], list[float]] = {}
    for row, value in zip(ours, rest, strict=True):
        same.setdefault((row.selector, row.removed.tobytes()), []).append(float(value))
    noise = [np.var(group, ddof=1) for group in same.values() if len(group) > 1]
    share = 1 - np.mean(noise) / np.var(rest) if noise else float("nan")
    return float(np.sqrt(max(share, 0.0)))


def judged(report: Report, name: str, rows: list[List], predicted: Doubles) -> None:
    """Report how well a predictor (lists, 1 or 2) foresees; NaN for lists that it does not know."""
    foreseen = np.isfinite(predicted[:, 0])
    rows = [row for row, use in zip(rows, foreseen, strict=True) if use]
    predicted = predicted[foreseen]
    off = predicted[:, 0] - np.array([row.recovered for row in rows])
    report.value(f"{name}_error", float(np.sqrt(np.mean(off**2))))
    report.value(f"{name}_bias", float(off.mean()))
    for beta in sorted({row.beta for row in rows}):
        at = [i for i, row in enumerate(rows) if row.beta == beta]
        ours = [rows[i] for i in at]
        for measure, column in (("recovered", 0), ("retain", 1))[: predicted.shape[1]]:
            real = between(ours, np.array([getattr(row, measure) for row in ours]))
            guess = between(ours, predicted[at, column])
            if guess.std() > 1e-9:
                label = "within" if column == 0 else "retain"
                report.value(f"{name}_{label}_{beta}", float(np.corrcoef(guess, real)[0, 1]))


def half_gaps(report: Report, name: str, lists: list[List], predicted: Doubles) -> None:
    """Report how far predicted budgets for the half, and for other shares of the gap, are off."""
    curves: dict[tuple[str, int], dict[float, tuple[float, float]]] = {}
    for row, value in zip(lists, predicted[:, 0], strict=True):
        pair = float(value), row.recovered
        curves.setdefault((row.selector, row.seed), {})[row.beta] = pair
    betas = sorted({row.beta for row in lists})
    whole = {key: curve for key, curve in curves.items() if sorted(curve) == betas}
    grid = [0.0, *betas, 1.0]
    foreseen, real = (
        {key: np.array([0.0, *(curve[b][i] for b in betas), 1.0]) for key, curve in whole.items()}
        for i in (0, 1)
    )
    errors: dict[str, list[float]] = {}
    for (selector, _), curve in foreseen.items():
        mean = np.mean([values for (name_, _), values in real.items() if name_ == selector], 0)
        for share in (0.5, *SHARES):
            guess, truth = budget(curve, grid, share), first_crossing(grid, mean, share)
            error = np.nan if guess is None or truth is None else abs(guess - truth)
            errors.setdefault("half_gap" if share == 0.5 else f"at_{share}", []).append(error)
    for label, values in errors.items():
        distance = np.array(values)
        report.value(f"{name}_{label}_n", len(distance))
        report.value(f"{name}_{label}_error", float(np.nanquantile(distance, 0.95)))
        report.value(f"{name}_{label}_largest", float(np.nanmax(distance)))
        report.value(f"{name}_{label}_covered", float(np.mean(distance <= HALF_WIDTH)))


def predictors(ranked: TokenSet, held: TokenSet) -> Mapping[str, Callable[[List], Any]]:
    """Return the predictors: the share of the texts and of their tokens are what each has to
    beat."""
    forget = ranked.domains == FORGET
    tokens = ranked.lengths / ranked.lengths[forget].sum()
    proxies = {"unigram": Proxy(ranked, held), "unigram_folds": Proxy(ranked, None)}
    return {
        "texts": lambda row: [len(row.removed) / forget.sum()],
        "tokens": lambda row: [tokens[row.removed].sum()],
        **{
            name: lambda row, by=by: by.curve([by.positions(row.removed)])[0]
            for name, by in proxies.items()
        },
    }


def read_predictions(path: Path, dataset: str, lists: list[List]) -> Doubles:
    """Return the predictions of a file (lists, 1), NaN where it has none."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["dataset"] == dataset]
    by_arm = {(int(row["seed"]), row["arm"]): float(row["recovered"]) for row in rows}
    arms = [(row.seed, f"retrained/{row.selector}/beta{row.beta:.2f}") for row in lists]
    return np.array([[by_arm.get(arm, np.nan)] for arm in arms])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of results with the texts")
    parser.add_argument("--archive", type=Path, default=ARCHIVE, help="the models")
    parser.add_argument("--predictions", type=Path, help="somebody else's, a CSV file")
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("predicted", threads=1)
    tokens_kinds = {k for k, row in plugins("selector").items() if row.unit == "tokens"}
    for (dataset, model), run in read(args.archive).items():
        both = (
            [paths.under(folder, pattern, dataset=dataset, model=model) for pattern in TEXTS]
            for folder in args.folders
        )
        files = next((rows for rows in both if rows[0].is_file()), None)
        if files is None:
            continue
        training = run.cards[min(run.cards)]["settings"]["training"]
        ranked, held = (
            read_tokens(*files, section, training["max_length"])
            for section in (INFERENCE, EVALUATION)
        )
        rows = [row for row in lists(run, ranked) if row.selector not in tokens_kinds]
        report.value(f"{dataset}_lists", len(rows))
        for beta in sorted({row.beta for row in rows}):
            ours = [row for row in rows if row.beta == beta]
            for measure, label in (("recovered", "ceiling"), ("retain", "retain_ceiling")):
                values = np.array([getattr(row, measure) for row in ours])
                report.value(f"{dataset}_{label}_{beta}", ceiling(ours, values))
        for name, predict in predictors(ranked, held).items():
            start = time.process_time()
            predicted = np.array([predict(row) for row in rows])
            report.value(
                f"{dataset}_{name}_cpu_ms", 1e3 * (time.process_time() - start) / len(rows)
            )
            judged(report, f"{dataset}_{name}", rows, predicted)
            half_gaps(report, f"{dataset}_{name}", rows, predicted)
        if args.predictions:
            judged(
                report, f"{dataset}_given", rows, read_predictions(args.predictions, dataset, rows)
            )
    print(report.write(args.results))


if __name__ == "__main__":
    main()
