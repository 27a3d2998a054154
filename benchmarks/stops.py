"""Where to stop masking tokens: what word counts say before any retraining, and what was measured.

    python benchmarks/stops.py results --model smollm2_frozen --datasets jigsaw newsgroups

For each dataset the share of the tokens at which retraining recovers all of the gap in held-out
forget NLL, interpolated between the budgets of the run, with a t interval over seeds; and where
each of some rules would have stopped, as a mean over the seeds. No rule reads an evaluation text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.data.labels import group_codes
from mamushi.evaluation.paired import interval
from mamushi.io import paths, schemas
from mamushi.io.domains import CONTAMINATION, FORGET, INFERENCE
from mamushi.io.files import read_json
from mamushi.io.shards import ranked
from mamushi.io.tables import read_table
from mamushi.lm.tokens import TokenSet, read_tokens
from mamushi.selection.folds import stratified_folds
from mamushi.selection.selectors.token_unigram import log_ratio
from mamushi.selection.unigram import counts, nll, vocabulary
from report import Report, arguments

Doubles = NDArray[np.float64]
NORMAL = 1.959963984540054
STEPS = np.linspace(0, 1, 201)
"""Shares at which a rule is looked at."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("root", type=Path, help="the run's folder of results")
    parser.add_argument("--model", required=True)
    parser.add_argument("--datasets", nargs="+", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--selector", default="token_unigram")
    args = parser.parse_args()
    report = Report("stops")
    for dataset in args.datasets:
        cells = [{"dataset": dataset, "model": args.model, "seed": seed} for seed in args.seeds]
        found = [measured(args.root, cell, args.selector) for cell in cells]
        low, high = interval(found)
        report.value(f"{dataset}_measured", f"{np.mean(found):.3f} [{low:.3f}, {high:.3f}]")
        said = [rules(args.root, cell, args.selector) for cell in cells]
        for name in said[0]:
            report.value(f"{dataset}_{name}", float(np.mean([each[name] for each in said])))
    report.write(args.results)


def measured(root: Path, cell: dict[str, Any], selector: str) -> float:
    """Return the share of masked tokens at which all of the gap is recovered."""

    def nll(arm: str) -> float:
        table = read_table(paths.under(root, paths.PERPLEXITY, **cell, arm=arm), schemas.PERPLEXITY)
        (row,) = [row for row in table.to_pylist() if row["domain"] == FORGET]
        return float(row["nll"])

    start, gold = nll("beta0"), nll("gold")
    found = [(0.0, 0.0)]
    for path in manifests(root, cell, selector):
        about = read_json(path)
        arm = f"retrained/{selector}/{path.stem}"
        share = about["masked"] / about["tokens"]
        found.append((share, (nll(arm) - start) / (gold - start)))
    shares, recovered = np.array(found).T
    return crossing(shares, recovered)


def manifests(root: Path, cell: dict[str, Any], selector: str) -> list[Path]:
    """Return the manifests of a cell's masks, by budget."""
    of = {**cell, "selector": selector, "beta": "*"}
    return sorted(root.glob(str(paths.under("", paths.SPANS_MANIFEST, **of))))


def crossing(shares: Doubles, recovered: Doubles) -> float:
    """Return where all is recovered for the first time; NaN where it never is."""
    above = np.flatnonzero(recovered >= 1 - 1e-9)
    if not len(above):
        return float("nan")
    ends = [above[0] - 1, above[0]]
    return float(np.interp(1.0, recovered[ends], shares[ends]))


def rules(root: Path, cell: dict[str, Any], selector: str) -> dict[str, float]:
    """Return the share of the tokens at which each rule stops."""
    examples, cache = (paths.under(root, each, **cell) for each in (paths.EXAMPLES, paths.TOKENS))
    about = read_json(manifests(root, cell, selector)[0])
    texts, others = (
        read_tokens(cache, examples, each, about["max_length"])
        for each in (INFERENCE, CONTAMINATION)
    )
    prior, folds = about["settings"]["prior"], about["settings"]["folds"]
    groups = group_codes(ranked(examples, "group")["group"])
    fold = stratified_folds(texts.domains == FORGET, folds, cell["seed"], groups)
    size = vocabulary(texts, others)
    every = [counts(each, np.ones(len(each), bool), size) for each in (texts, others)]
    token, score, sure = [], [], []
    for number in range(folds):
        known = sum(every) - counts(texts, fold == number, size)
        ratio, error = log_ratio(known, prior), errors(known, prior)
        own = predicted(texts, (fold == number) & (texts.domains == FORGET))
        token.append(own)
        score.append(ratio[own])
        sure.append(ratio[own] - NORMAL * error[own])
    tokens, scores = np.concatenate(token), np.concatenate(score)
    order = tokens[np.argsort(-scores, kind="stable")]
    retain = np.bincount(predicted(texts, texts.domains != FORGET), minlength=size)
    return {
        "above_zero": float((scores > 0).mean()),
        "surely_above_zero": float((np.concatenate(sure) > 0).mean()),
        "excess": float(np.clip(1 - np.exp(-scores), 0, None).mean()),
        **of_unigrams(order, retain, every[1], prior),
    }


def predicted(texts: TokenSet, chosen: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the tokens of the chosen texts but their first."""
    return np.concatenate([texts[place][1:] for place in np.flatnonzero(chosen)])


def errors(known: Doubles, prior: float) -> Doubles:
    """Return the standard error of each log ratio (Monroe, Colaresi and Quinn 2008)."""
    share = prior * known.sum(axis=0) / known.sum()
    with np.errstate(divide="ignore"):
        return np.sqrt((1 / (known + share)).sum(axis=0))


def of_unigrams(
    order: NDArray[np.int32], retain: Doubles, other: Doubles, prior: float
) -> dict[str, float]:
    """Return where a unigram model of what is left predicts the other section's forget texts as one
    of the retain texts does: trained to the end (``unigrams``), and by one gradient step from that
    of the retain texts (``one_step``)."""
    size, total = len(retain), len(order)
    forget = np.bincount(order, minlength=size)
    both = forget + retain + other.sum(axis=0)
    held, base = other[0] / other[0].sum(), both / both.sum()
    start, gold = nll(forget + retain, other[0]), nll(retain, other[0])
    left = [forget - np.bincount(order[: int(s * total)], minlength=size) for s in STEPS]
    reached = np.array([nll(each + retain, other[0]) for each in left])
    whole = (reached - start) / (gold - start)
    model = (retain + prior * base) / (retain.sum() + prior)
    gain = (held - model)[order] - model @ (held - model)
    one = np.concatenate([[0.0], np.cumsum(gain) / gain.sum()])
    shares = np.arange(total + 1) / total
    return {"unigrams": crossing(STEPS, whole), "one_step": crossing(shares, one)}


if __name__ == "__main__":
    main()
