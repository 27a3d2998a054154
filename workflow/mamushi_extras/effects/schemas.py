"""What a removal changes, for whom, and which selectors differ."""

from mamushi.io.columns import table

EFFECTS = table("""effects: The primary measurement: what retraining without a list changes on
held-out texts, with errors over seeds and texts; shares have intervals by Fieller's theorem. Lists
of chance are one selector, `random`. Below 20 independent texts, and with a gap that is not clearly
above 0, numbers are null.
dataset string, model string, selector string, beta float64
lists int64: Removal lists of a seed, over which the mean goes.
seeds int64: With one seed nothing has an interval, and the column `withheld` says so.
steps string: How steps were counted: `aligned`, `matched` or `by_data`.
equal_steps bool: Whether gold, beta 0 and all models of the budget took equally many steps.
recovered_net float64?±: Share of the gap that is recovered: the mean over seeds of the change from
    beta 0, in forget NLL less that in retain NLL, over gold's. 0 is beta 0, 1 is gold; beyond 1 is
    worse than gold.
recovered_net_beside_gold string?
recovered_net_gap float64?±: That gap, gold less beta 0, in nats per token.
recovered_net_vs_random float64?±, recovered_net_withheld string?
recovered float64?±: The same of forget NLL alone. Gold has seen fewer texts and is worse on retain
    texts, too: as much of its gap is no property of the domain.
recovered_beside_gold string?
recovered_vs_random float64?±
p float64?: Two-sided p of no difference to `random` in `recovered_net`.
p_holm float64?, comparisons int64?
pooled bool?: Whether the spread over seeds is that of all models of the budget.
retain_change float64?±: Mean retain NLL per token less that of gold, in nats; above 0 is worse.
retain_margin float64: `evaluation.retain_margin`, in nats per token.
non_inferior string: Whether the retain domain is worse than gold by less than the margin: `yes`
    where all of the interval is below it, `no` where all is above, else `cannot be told`.
retain_vs_random float64?±, withheld string?
deep_net float64?±: As `recovered_net`, of the gap that word frequencies do not explain.
deep_net_beside_gold string?
deep_net_gap float64?±: That gap, gold less beta 0, forget less retain, in nats per token.
deep_net_vs_random float64?±, deep_net_withheld string?
deep float64?±: As `recovered`, of that gap.
deep_beside_gold string?
deep_gap float64?±: That gap of forget texts alone, in nats per token.
deep_vs_random float64?±, deep_withheld string?""")

SUBGROUPS = table("""subgroups: Who pays for a removal, and who is removed, by the values of columns
of labels. Intervals are over texts and seeds, and null of fewer than 20 texts or
one seed.
dataset string, model string, selector string, beta float64, domain string
subgroup string: `all`, `words` (length, in thirds of both domains together), or a column `label_*`.
value string: Its value: the 20 most frequent ones, and thirds of numbers that have more.
texts int64: Held-out texts of the group with a token to predict.
seeds int64
to_beta0 float64: Mean NLL per token less that of beta 0, in nats; above 0 is worse for the removal.
to_beta0_low float64?, to_beta0_high float64?
to_gold float64: Mean NLL per token less that of the gold standard, which removed all, in nats.
to_gold_low float64?, to_gold_high float64?, withheld string?
recovered float64?±: Of forget texts, the share of the group's own gap in held-out NLL from beta 0
    to gold that the removal recovers; null as in `effects`.
ranked int64?: Forget texts of the group in the inference section, in the mean over seeds; null of
    the retain domain.
listed float64?: Share of these that the list has, a mean over seeds; null of a selector of tokens.
of_list float64?: Share of the removal list that these make, likewise; null of an empty list.""")

SAD_DIFFERENCES = table("""sad_differences: Paired differences of SAD between selectors, against
random selection and against the best of the others: a row per dataset, model and selector for each
budget and for the area under the curve. Intervals are by Student's t, each of one comparison.
dataset string, model string, selector string
quantity string: What is compared: `sad` at a budget, or `area` under the whole curve.
beta float64?: The budget; null for the area.
reference string: `random`, or `best`: of the other selectors but random, that of the lowest mean.
other string: That selector's name.
seeds int64
difference float64?±: Mean of the selector's value less the other's of the same seed, in perplexity.
p float64?: Two-sided, of the paired t test; null where the difference is the same in all seeds.
p_holm float64?, comparisons int64?""")
