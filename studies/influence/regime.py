"""How much of a gap word frequencies do not explain, as a training gets longer, wider or faster.

    python -m studies.influence.regime results jigsaw --seeds 3 4 --out regime

Of each setting both ends of the gap are trained, beta 0 and gold, and measured; nothing is ranked.
A setting differs from that of the families (``bank.TRAINING``) by what its name says. Each model
becomes a Parquet file ``{out}/{setting}/{dataset}/seed{n}/{arm}.parquet``, which is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.io.files import atomic
from mamushi.io.tables import FORGET, RETAIN
from mamushi.lm.perplexity import text_nll
from mamushi.unlearning.trunk import starting_from
from studies.influence.bank import BATCH_TOKENS, BETA0, GOLD, RANKED, Bank
from studies.lib import report

HALF = {domain: count // 2 for domain, count in RANKED.items()}
SETTINGS: dict[str, dict[str, Any]] = {
    "families": {},
    "half_texts": {"ranked": HALF},
    "epochs2": {"epochs": 2},
    "epochs4": {"epochs": 4},
    "rate_half": {"learning_rate": 5e-5},
    "rate_double": {"learning_rate": 2e-4},
    "blocks1": {"trained_blocks": 1},
    "blocks8": {"trained_blocks": 8},
    "embedding_head": {"train_input_embedding": True, "train_output_head": True},
}
RESAMPLES = 2000
Doubles = NDArray[np.float64]


def make(bank: Bank, seed: int) -> None:
    """Train and measure both ends of a seed, unless they have files."""
    for arm in (BETA0, GOLD):
        removed = bank.ranked.ids[bank.forget].astype(str) if arm == GOLD else []
        retrain(bank, seed, arm, list(removed))


def retrain(
    bank: Bank, seed: int, arm: str, removed: Sequence[str] | Mapping[str, list[tuple[int, int]]]
) -> None:
    """Train without these texts, or with these tokens masked, and measure without relearning,
    unless the arm has a file."""
    path = bank.folder / f"seed{seed}" / f"{arm}.parquet"
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with starting_from(bank.trunk, bank.model):
        if isinstance(removed, Mapping):
            bank.masking(seed, removed)
        else:
            bank.without(seed, removed)
        nll = text_nll(bank.model, bank.held_out, BATCH_TOKENS, bank.accelerator, bank.raking)
    domains = bank.held_out.domains
    columns = {"tokens": nll.tokens, "nll": nll.nll, "deep": nll.deep}
    for name, domain in (("forget", FORGET), ("retain", RETAIN)):
        columns[name] = domains == domain
    with atomic(path) as part:
        pq.write_table(pa.table(columns), part)


def gaps(folder: Path, seeds: list[int]) -> tuple[Doubles, Doubles]:
    """Return the gap of each held-out forget text (seeds, 2, n), whole and deep, in nats, and the
    predicted tokens (n,), of texts with a deep NLL."""
    by_seed, tokens = [], np.empty(0)
    for seed in seeds:
        ends = [pq.read_table(folder / f"seed{seed}/{arm}.parquet") for arm in (GOLD, BETA0)]
        gold, beta0 = (np.array([end[name] for name in ("nll", "deep")]) for end in ends)
        inside = ends[0]["forget"].to_numpy() & np.isfinite(gold[1])
        by_seed.append((gold - beta0)[:, inside])
        tokens = ends[0]["tokens"].to_numpy()[inside]
    return np.array(by_seed), tokens.astype(np.float64)


def tell(printed: report.Report, name: str, folder: Path, seeds: list[int]) -> None:
    """Print the gap in nats per token, the deep one, and its share, with a 95% interval over texts
    by a bootstrap; seeds are averaged and have no part in it."""
    by_seed, tokens = gaps(folder, seeds)
    of_text = by_seed.mean(axis=0)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(len(tokens), np.full(len(tokens), 1 / len(tokens)), RESAMPLES)
    whole, deep = of_text @ counts.T / (counts @ tokens)
    ends = np.quantile(deep / whole, [0.025, 0.975])
    whole, deep = of_text.sum(axis=1) / tokens.sum()
    printed.value(f"{name}_seeds", len(seeds))
    printed.value(f"{name}_gap", float(whole))
    printed.value(f"{name}_deep", float(deep))
    printed.value(f"{name}_share", f"{deep / whole:.2f} {ends[0]:.2f} {ends[1]:.2f}")
    shares = by_seed[:, 1].sum(axis=1) / by_seed[:, 0].sum(axis=1)
    printed.value(f"{name}_by_seed", " ".join(f"{share:.2f}" for share in shares))


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("source", type=Path, help="the folder of results with texts and tokens")
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--out", type=Path, required=True)
    args: argparse.Namespace = parser.parse_args()
    printed = report.Report("regime")
    for dataset in args.datasets:
        for name in args.settings:
            bank = Bank(args.source, dataset, args.out / name, **SETTINGS[name])
            for seed in args.seeds:
                make(bank, seed)
            tell(printed, f"{dataset}_{name}", bank.folder, args.seeds)
    printed.write(args.results)


if __name__ == "__main__":
    main()
