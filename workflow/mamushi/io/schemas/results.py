"""What models are compared by: perplexities, SAD, unlearning."""

from mamushi.io.columns import table

SAD = table("""sad: Every measurement of the grid. Rows at β = 0 (nothing removed) and β = 1 (the
gold standard itself) are models that all selectors of a cell share; they repeat for each.
dataset string, model string, seed int64, selector string, beta float64
removed int64: Texts that are removed or, by a selector of tokens, tokens that may be masked.
ppl_forget float64, ppl_retain float64, gold_ppl_forget float64, gold_ppl_retain float64
sad float64
log_sad float64: The same of log perplexities, in nats per token.""")

SAD_SUMMARY = table("""sad_summary: Means and standard errors over seeds of the table `sad`; of a
single seed errors are null. The area columns repeat on each row of a curve.
dataset string, model string, selector string, beta float64, removed int64, seeds int64
ppl_forget_mean float64, ppl_forget_se float64?, ppl_retain_mean float64, ppl_retain_se float64?
sad_mean float64, sad_se float64?, log_sad_mean float64, log_sad_se float64?
forget_distance_mean float64: Mean of ppl_forget less that of the gold standard of the seed, with
    its sign: unlike SAD, not moved up by noise where it is near 0.
forget_distance_se float64?
retain_distance_mean float64: The same of the retain domain.
retain_distance_se float64?
gold_sad float64?: Mean SAD between the gold standards of two seeds: how far one model is from gold
    by its seed alone. Null with one seed.
area_mean float64: Mean area under the SAD curve from β = 0 to 1 by the trapezoid rule, in
    perplexity; lower is better.
area_se float64?
area_vs_random float64?: Mean area over that of `random`, less 1: −0.25 is a quarter below.
area_vs_random_se float64?: Standard error of that difference, paired by seed.""")

SAD_DIFFERENCES = table("""sad_differences: Paired differences of SAD between selectors: a row per
dataset, model and selector for each measured budget and for the area under the curve, against
random selection and against the best of the others. Below gold in both domains a difference is
minus the sum of both perplexities' changes: predicting retain texts better is charged. Intervals
are by Student's t, each of one comparison; with a single seed all numbers are null.
dataset string, model string, selector string
quantity string: What is compared: `sad` at a budget, or `area` under the whole curve.
beta float64?: The budget; null for the area.
reference string: `random`, or `best`: of the other selectors but random, that of the lowest mean.
other string: That selector's name.
seeds int64
difference float64?±: Mean over seeds of the selector's value less the other's at the same seed, in
    perplexity; negative is nearer to gold.
p float64?: Two-sided, of the paired t test; null where the difference is the same in all seeds.
p_holm float64?, comparisons int64?""")

EFFECTS = table("""effects: The primary measurement: what retraining without a list changes on
held-out texts, a row per dataset, model, selector and budget, with errors over seeds and texts.
Lists of chance are one selector, `random`. Below 20 independent texts, and with a gap that is not
clearly above 0, numbers are null. Shares have intervals by Fieller's theorem; those of differences
to `random` are of that comparison alone.
dataset string, model string, selector string, beta float64
lists int64: Removal lists of a seed, over which the mean goes.
seeds int64: With one seed, errors are over texts alone.
steps string: How steps were counted: `aligned`, `matched` or `by_data`.
equal_steps bool: Whether gold, beta 0 and all models of the budget took equally many steps; else
    changes against gold and beta 0 are of texts and steps together.
recovered float64?±: Share of the gap in forget NLL that is recovered: the mean over seeds of its
    change from beta 0, over that of gold. 0 is beta 0, 1 is gold; beyond 1 is worse than gold.
recovered_beside_gold string?
recovered_vs_random float64?±
p float64?: Two-sided p of no difference to `random`.
p_holm float64?, comparisons int64?
pooled bool?: Whether the spread over seeds is that of all models of the budget, which tests of
    equal spread allow from four seeds on; else it is that of the difference alone.
retain_change float64?±: Mean retain NLL per token less that of gold, in nats; above 0 is worse.
retain_margin float64: `evaluation.retain_margin`, in nats per token.
non_inferior string: Whether the retain domain is worse than gold by less than the margin: `yes`
    where all of the interval is below it, `no` where all is above, else `cannot be told`.
retain_vs_random float64?±, withheld string?
deep float64?±: Share that is recovered of the gap that word frequencies do not explain: as
    `recovered`, with every model's mean prediction made the same.
deep_beside_gold string?
deep_gap float64?±: That gap, gold less beta 0, in nats per token.
deep_vs_random float64?±, deep_withheld string?""")

SUBGROUPS = table("""subgroups: Who pays for a removal, and who is removed: a row per dataset,
model, selector, budget, domain and value of a column, such as the parts of a forget domain.
Intervals are over texts and seeds, and null of fewer than 20 texts.
dataset string, model string, selector string, beta float64, domain string, subgroup string
value string: Its value: the 20 most frequent ones, and thirds of numbers that have more.
texts int64: Held-out texts of the group with a token to predict.
seeds int64
to_beta0 float64: Mean NLL per token less that of beta 0, in nats: above 0 the group is predicted
    worse for the removal.
to_beta0_low float64?, to_beta0_high float64?
to_gold float64: Mean NLL per token less that of the gold standard, which removed all, in nats.
to_gold_low float64?, to_gold_high float64?
recovered float64?±: Of forget texts, the share of the group's own gap in held-out NLL from beta 0
    to gold that the removal recovers; null as in `effects`.
ranked int64?: Forget texts of the group in the inference section; null of the retain domain.
listed float64?: Share of these that the removal list has, a mean over seeds: above beta they go
    before the other forget texts. Null of a selector of tokens.
of_list float64?: Share of the removal list that these make, likewise; null of an empty list.""")

UNLEARNING = table("""unlearning: Every measured point of the budget-perplexity curves. Rows at β =
0 and β = 1 are models that all selectors share; they repeat for each.
dataset string, model string, seed int64, unlearner string, selector string, beta float64
removed int64: Forget texts that were unlearned or left out, or of which tokens were unlearned; of
    retraining 0 where tokens are masked.
steps int64: Optimizer steps: of unlearning alone, or of the whole retraining.
stopped_at int64?: Step at which an unlearner stopped because the forget loss was above its limit.
ppl_forget float64, ppl_retain float64
start_ppl_forget float64: The same of the model from which unlearning starts: forget domain.
start_ppl_retain float64, gold_ppl_forget float64, gold_ppl_retain float64
sad float64
recovery float64?: (ppl_forget − start) / (gold − start): share of the contamination gap that is
    closed, above 1 beyond the gold standard; null where gold is no worse than the start.
deep float64?: The same in NLL without word frequencies (`deep` of the table `effects`), by the mean
    gap of the seeds.""")

HALF_GAP = table("""half_gap: The smallest budget at which the mean curve over seeds recovers the
target share of the contamination gap, a row per dataset, model, unlearner and selector. What
follows from the budget is null where it is censored.
dataset string, model string, unlearner string, selector string
seeds int64: Seeds that have a gap, over which the means go; 0 where nothing is to be recovered.
start_ppl_forget float64: Mean forget perplexity of the start.
target_ppl_forget float64: Forget perplexity at the target: start + target × (gold − start).
gold_ppl_forget float64: Mean forget perplexity of the gold standard.
budget float64?±: The half-gap budget: share of the forget set, linear between measured budgets. Its
    interval: where Student's t test over seeds does not tell the mean share from the target.
paper_budget float64?: What the paper prints for it, beside `newsgroups` and `qwen-2.5-7b` alone.
deep_budget float64?±: The budget that recovers the target share of the gap in NLL that word
    frequencies do not explain, likewise; its interval is over seeds and texts.
deep_censored bool?: Whether not even the whole forget set reaches the target of that gap.
deep_withheld string?
censored bool: Whether not even the whole forget set reaches the target.
retain_factor float64?: Retain perplexity at the crossing over that of the start, in the worst seed.
within_cap bool?: Whether `retain_factor` is at most `unlearning.retain_cap`.
saving_vs_random float64?±: 1 − budget / budget of `random` with the same unlearner. Its interval
    is by Fieller's theorem for pairs of one seed; null where nothing bounds it.""")

GENERATIONS = table("""generations: The continuations of all models of a probed cell, read by its
gold model. `selector` and `beta` are null for a model without unlearning.
dataset string, model string, seed int64
source string: The model: `base`, `contaminated`, `gold`, or the name of an unlearner.
selector string?, beta float64?, prompt string
text string: What was said, without the prompt; profanity masked.
tokens int64: Tokens of it, with the token that ends it.
repetition float64: Share of tokens that occur among the 16 before them.
gold_log_likelihood float64: Mean log-likelihood per token under the gold standard, in nats.""")

RELAPSE = table("""relapse: What comes back of the forget domain when models are fine-tuned on a few
of its texts, over seeds, beside the gold model of each seed: a row per kind of models and step.
dataset string, model string
source string: `retraining`, or the name of an unlearner.
selector string: Selector of the removed texts.
beta float64: Budget at which they were removed.
step int64, seeds int64
raised float64: Nats per token by which deletion has raised the NLL of held-out forget texts above
    that of the model from which unlearning starts.
regained float64: Nats per token by which the steps lower the NLL of held-out forget texts.
gold_regained float64: The same of the gold models.
excess float64: regained - gold_regained: what comes back that was not just learned.
excess_low float64?, excess_high float64?
relearned float64?±: Of the gap in held-out forget NLL between the start of unlearning and gold,
    both after as many steps, the share that is left: 1, the aim, is as if the domain had never been
    seen.
relearned_beside_gold string?
relearned_withheld string?
retain_lost float64: Nats per token by which the steps raise the NLL of held-out retain texts.
why string?""")
