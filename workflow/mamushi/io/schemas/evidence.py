"""What scores and embeddings tell before anything is retrained."""

from mamushi.io.columns import table

SELECTION = table("""selection: How well each ranking tells the domains apart, before any
retraining. Null where a selector has no score for retain texts or folds, or no truth is known.
dataset string, model string, seed int64, selector string
auc float64?, auc_fold_mean float64?, auc_fold_min float64?, auc_fold_max float64?
fold_offset float64?
spearman_with_truth float64?: Rank correlation of score and exact log-density ratio over the forget
    texts; known for synthetic texts alone.
ties int64""")

DIAGNOSTICS = table("""diagnostics: What a selector's out-of-fold scores look like, in their unit, a
row per cell and selector: columns `forget_` and `retain_` are of the scores of a domain. Null where
a selector has no score for retain texts or folds, or a number is not defined.
dataset string, model string, seed int64, selector string, n_forget int64, n_retain int64
forget_mean float64, forget_sd float64, forget_min float64, forget_q25 float64
forget_median float64, forget_q75 float64, forget_max float64
forget_cov float64?: Coefficient of variation: standard deviation over |mean|.
retain_mean float64?, retain_sd float64?
fisher float64?: Difference of the domains' means over their root mean variance.
auc float64?±: As in `selection`. Its interval is for a ranking by all texts, by their groups; null
    where texts come in groups that no column names.
auc_high_mislabelled float64?: Upper end against the right labels, if 5% of each domain's are wrong.
groups int64?: Groups of texts that are not independent; null where no two texts share one.
near_alike float64?: Where there are no groups, by how many standard errors near texts share a
    domain more often than their vectors explain; above 1.645 they come in groups.
auc_fold_mean float64?, auc_fold_sd float64?, auc_fold_min float64?, auc_fold_max float64?
ece float64?: Expected calibration error over 15 bins of equal size, once the log prior odds are
    added; means something for estimates of the log-density ratio alone.
fold_offset float64?, ties int64""")

AGREEMENT = table("""agreement: How alike two selectors rank the forget texts: a row per cell, pair
and budget of the grid. Ties of a score go by id.
dataset string, model string, seed int64
first string: Name of a selector of the grid, or of `evidence.compared`.
second string: Name of the other one.
beta float64, removed int64
shared float64?: Share of the first `removed` texts that both lists have; β by chance. Null where
    nothing is removed.
spearman float64?: Rank correlation of the two whole rankings; null of a single text.""")

GEOMETRY = table("""geometry: How the embeddings of the two domains stretch, a row per cell and
number k of leading components. Each domain less its own mean, then every vector at length 1.
dataset string, model string, seed int64
k int64: Number of leading components, from 1.
singular_forget float64: The k-th singular value of the forget domain.
singular_retain float64
variance_forget float64: Share of the forget domain's whole variance in its first k components.
variance_retain float64
energy_forget float64: The same as a share of what all computed components hold.
energy_retain float64
power float64: Discriminative power of component k: variance over all texts of σ1⟨h, v1⟩ − σ2⟨h,
    v2⟩, with σ over the root of the domain's number of texts.
power_cumulative float64: Share of the first k components in the sum of `power`.
affinity float64: Root mean square of the cosines of the principal angles between the two top-k
    subspaces: 1 the same, 0 orthogonal.
angle_median float64: Median of these angles, in degrees.
angles_above_45 float64: Share of these angles above 45 degrees.
angle_sorted float64?: The k-th smallest angle between the subspaces of the first 50 components (or
    as many as there are), in degrees; null beyond.""")

CALIBRATED = table("""calibrated: The log-density ratio of every text of the inference section, from
the scores of the selector that estimates it. The metadata hold `lost`, the variance in nats of what
the scores have lost of the ratio, and the verdict on it.
id string, domain string
score float64: The score that it was made from.
log_ratio float64: Estimate of log p1(text)/p2(text), in nats, by a fit to other texts.
group int64?: The number of its group, by which intervals are made; null where no two share one.""")

CALIBRATION = table("""calibration: Whether the calibrated scores are a log-density ratio: checks
that need no truth, a row each, with 95% intervals over resamples of the texts.
dataset string, model string, seed int64, selector string
check string: `slope` and `intercept` (of a logistic regression of the domain on the ratio), or
    `psi_over_phi` (E_p1[psi] / E_p2[phi]).
value float64: What was found of these texts.
low float64, high float64
expected float64: What a density ratio has.
holds bool: Whether the interval holds what is expected.""")

FRONTIER = table("""frontier: Removal and preservation to expect at each budget by the calibrated
ratio. 95% bands over the texts, the calibration and what the scores have lost.
dataset string, model string, seed int64, selector string, beta float64, removed int64
removal float64±: KL(p1 ‖ p−S) in nats per text: how badly what remains predicts a forget text.
preservation float64±: KL(p2 ‖ p−S), the same for retain texts; less is better kept.
removal_true float64?: What the removal achieves by the exact ratio; null where no truth is known.
preservation_true float64?: The same of preservation.""")

PREDICTED = table("""predicted: What retraining is predicted to do at a budget, by a unigram model
of the texts that remain. Of selectors of texts and of tokens; none of those that have read the
words by which it is predicted, where no texts are held out.
dataset string, model string, seed int64, selector string, beta float64
removed int64: Texts, or tokens of a selector of tokens.
recovered float64?: Share of the gap in forget NLL from the model of all texts to that of none.""")

ADVICE = table("""advice: Recommended budgets, a row per dataset, model, selector and target.
Budgets are means over seeds; null, with a reason, where none can be stood by.
dataset string, model string, selector string
target string: `removal` (share of the full removal's gain) or `preservation` (most nats per text).
value float64: What is asked of the target: a share, or nats per text.
budget float64?±: Recommended share of the forget set, linear between the frontier's budgets; its
    interval is what the seeds and their 95% bands span, rounded outwards to hundredths.
reason string?: Why there is no budget; null where there is one.
retraining float64?±: The share of the texts, or of their tokens, that retraining needs by the
    table `predicted`, for removal; null for other targets.""")

RUNTIME = table("""runtime: What a selection costs on one cell's embeddings, a row per selector: fit
and ranking, with those of what it derives from, but no reading, loading or Snakemake.
dataset string, model string, seed int64, selector string, n_forget int64, n_retain int64
wall_seconds float64?, cpu_seconds float64?""")

RUNTIME_SUMMARY = table("""runtime_summary: The paper's table of run times: means and standard
deviations over seeds of the table `runtime`, a row per dataset, model and selector.
dataset string, model string, selector string, n_forget int64, n_retain int64, seeds int64
wall_seconds_mean float64?, wall_seconds_sd float64?
cpu_seconds_mean float64?, cpu_seconds_sd float64?
paper_mean float64?: Seconds that the paper prints for selecting 60% of `jigsaw` by `gemma-2-2b`.
paper_sd float64?""")

QUALITATIVE_RANKING = table("""qualitative_ranking: The first and the last forget texts of a
ranking, of the first seed.
dataset string, model string, seed int64, selector string
end string: `top` (goes first) or `bottom` (goes last).
place int64: Place at that end, from 1.
rank int64: Place in the whole ranking.
score float64: What the selector gave; for Mamushi an estimate of log p1/p2 in nats.
id string, text string""")

PAPER = table("""paper: The numbers that the paper quotes, beside ours: a row per quantity and cell.
quantity string: What is measured.
setting string: Dataset and model for which the paper gives it.
paper float64: The paper's number, as printed.
dataset string, model string, seed int64
ours float64?: Ours, in the cell of the row; null where ours has no such number.""")
