"""What the paper proves, measured."""

from mamushi.io.columns import table

THEORY = table("""theory: What the paper proves, measured where the exact ratio is known: a row per
cell, statement and, where it is about one, budget. The forget texts of the cell are the whole
population, p1, and p2 = p1 e^−l with the exact log ratio l; l̂ is the calibrated estimate, within
[−B, B]. Sums are finite there, so each statement has to hold.
dataset string, model string, seed int64, selector string
beta float64?: The budget; null for a statement that is about none.
statement string: `decomposition`, `optimal_removal`, `optimal_preservation` (of all sets of twelve
    of the texts), `bce_minimum`, `bce_regret`, `l1_from_bce`, `mass`, `transfer_removal`,
    `transfer_preservation`, and the last two as `bce_*` by the error that the cross-entropy allows.
measured float64: What was found: sets that are better than the threshold's (`optimal_*`); the
    largest deviation from what is said to be equal (`decomposition`, `bce_minimum`, `bce_regret`);
    E_p1|l̂ − l| in nats (`l1_from_bce`); p1 of the texts in one of the two regions alone (`mass`);
    what the estimated region loses in nats (else).
bound float64: What the paper says that it does not exceed, 0 for what is equal.
holds bool: Whether it does not, but for rounding.
loose float64?: The bound over what was measured; null where that is rounding or the bound is 0.
error float64?: The error of l̂ that the bound rests on, E_p1|l̂ − l| in nats.
tau_error float64?: r_τ, how far the thresholds of the two regions are apart, in nats.
delta float64?: The δ of the least bound, in nats; null where none is better than p1 ≤ 1.
margin float64?: M, the smallest with p1(|l − τ| ≤ t) ≤ 2Mt at t = δ + r_τ, per nat.
largest_ratio float64?: B, the largest |l|, in nats.""")
