"""The retrain bank: what removing random texts does, and which ranking foresees it.

    python benchmarks/bank.py results synthetic tiny-llama --seed 0 --subsets 50

Each random subset of the forget texts that are ranked, of 1% to 50% of them, is removed, and the
rest trained on twice, with two seeds; subsets of a seed share order and steps. Measured is the mean
NLL of the held-out texts of each domain, less its mean over the bank. The table beside the result
file has them, and a killed run goes on from it. `--share` draws that share of the texts of each
domain first, to rank and to hold out, where a training on all of them is too dear.

A ranking predicts a subset's effect by the sum of its scores above the least of them. Its *linear
datamodelling score* is the rank correlation, over the subsets, of that with the effect (Park et
al., 2023); `texts` is the prediction by the number of texts alone. As larger subsets do more
whatever is in them, `within` is the rank correlation with that of the number taken out of both.
`reliability` is the rank correlation of the effects of the two seeds, brought to their mean by
Spearman and Brown's formula: no ranking can be expected to score above its square root.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from cells import EXECUTION, Cell, arguments, tuned
from numpy.typing import NDArray

from mamushi.artifacts.files import atomic
from mamushi.artifacts.tables import DOMAINS, EVALUATION, FORGET
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, subset
from mamushi.running.progress import Progress
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.metrics import average_ranks, spearman
from report import Report

Doubles = NDArray[np.float64]

SHARES = (0.01, 0.5)
SEEDS = 2
"""Trainings of each subset."""
EFFECTS = ("forget_nll", "retain_nll")


def drawn(texts: TokenSet, share: float, seed: int) -> TokenSet:
    """A share of the texts of each domain."""
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(texts.domains == domain) for domain in DOMAINS]
    some = [rng.choice(each, round(share * len(each)), replace=False) for each in places]
    return subset(texts, np.sort(np.concatenate(some)))


def removed(cell: Cell, number: int) -> NDArray[np.bool_]:
    """Which of the ranked texts the subset of this number removes (texts,)."""
    rng = np.random.default_rng([cell.seed, number])
    forget = np.flatnonzero(cell.forget)
    count = max(1, round(rng.uniform(*SHARES) * len(forget)))
    chosen = np.zeros(len(cell.forget), dtype=bool)
    chosen[rng.choice(forget, count, replace=False)] = True
    return chosen


def measured(cell: Cell, held: TokenSet, number: int, seed: int) -> dict[str, float]:
    """A row of the bank."""
    out = removed(cell, number)
    accelerator = cell.accelerator(seed)
    model = tuned(cell, cell.ranked, seed, accelerator, kept=~out)
    nll = text_nll(model, held, EXECUTION["batch_tokens"], accelerator)
    row = {"subset": number, "seed": seed, "removed": int(out.sum())}
    for domain in DOMAINS:
        own = held.domains == domain
        row[f"{domain}_nll"] = float(nll.nll[own].sum() / nll.tokens[own].sum())
    return row


def without(values: Doubles, size: Doubles) -> Doubles:
    """Ranks of the values, with what is linear in the ranks of the sizes taken out."""
    ranks, sizes = average_ranks(values), average_ranks(size)
    sizes = sizes - sizes.mean()
    return ranks - ranks.mean() - sizes * (sizes @ ranks) / (sizes @ sizes)


def correlation(a: Doubles, b: Doubles) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def whole(r: float) -> float:
    """Spearman and Brown: the reliability of the mean of two halves that correlate by ``r``."""
    return 2 * r / (1 + r)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--subsets", type=int, default=50)
    parser.add_argument("--share", type=float, default=1.0)
    args = parser.parse_args()
    one_for_arithmetic()
    cell = Cell(args.run, args.dataset, args.model, args.seed)
    cell.ranked = drawn(cell.ranked, args.share, 0)
    cell.forget = cell.ranked.domains == FORGET
    held = drawn(cell.texts(EVALUATION), args.share, 1)
    report = Report("bank", threads=1)
    report.value("forget_texts", int(cell.forget.sum()))
    report.value("texts", len(cell.forget))
    # No date in its name: another day goes on from it, another cell does not.
    of = f"{args.dataset}-{args.model}-seed{args.seed}"
    of += "" if args.share == 1 else f"-share{args.share:g}"
    table = args.results / f"bank-{of}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = csv.read_csv(table).to_pylist() if table.is_file() else []
    done = {(row["subset"], row["seed"]) for row in rows}
    wanted = [(number, seed) for number in range(args.subsets) for seed in range(SEEDS)]
    with Progress(len(wanted), "bank", "training") as progress:
        for each in wanted:
            if each not in done:
                rows.append(measured(cell, held, *each))
                with atomic(table) as path:
                    csv.write_csv(pa.Table.from_pylist(rows), path)
            progress.advance(1)
    found = {(row["subset"], row["seed"]): row for row in rows}
    effects = {
        name: np.array(
            [[found[number, seed][name] for number in range(args.subsets)] for seed in range(SEEDS)]
        )
        for name in EFFECTS
    }
    subsets = np.array([removed(cell, number) for number in range(args.subsets)], dtype=np.float64)
    size = subsets.sum(axis=1)
    predictions = {"texts": size}
    for path in sorted((cell.folder / "scores").glob("*.parquet")):
        scores = cell.scores(path.stem)
        least = scores[cell.forget].min()
        predictions[path.stem] = subsets @ np.where(cell.forget, scores - least, 0.0)
    for name, by_seed in effects.items():
        effect = by_seed.mean(axis=0)
        report.value(f"{name}_reliability", whole(spearman(*by_seed) or 0.0))
        inside = correlation(*(without(each, size) for each in by_seed))
        report.value(f"{name}_within_reliability", whole(inside))
        for ranking, predicted in predictions.items():
            report.value(f"{name}_{ranking}", spearman(predicted, effect) or 0.0)
            if ranking != "texts":
                inside = correlation(without(predicted, size), without(effect, size))
                report.value(f"{name}_{ranking}_within", inside)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
