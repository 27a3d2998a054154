"""The tables that stages hand to each other, with what their columns mean, for the page "Tables".
A change of columns runs nothing again by itself: see docs/guide/reruns.md."""

from mamushi.io.columns import table

# Texts, their vectors, rankings and removal lists -------------------------------------------------

EXAMPLES = table("""examples: The cleaned texts of a dataset, a row per kept text.
id string: Id of the text; of a window that of its document with its characters: `c7#120-480`.
text string: The text, without white space around it.
domain string
section string: `contamination`, `inference` or `evaluation`: see `datasets.NAME.sections`.
log_density_ratio float64?: The exact log p1(text)/p2(text) in nats; null but for synthetic texts.
group string?: What it shares with texts that are not independent of it, such as a thread.
label_* string?: Labels that came with the texts.""")

DUPLICATES = table("""duplicates: The texts that were dropped as copies, in the order of the files.
id string: Id of the text that was dropped.
kept_id string?: Id of the text that was kept for it; null for a cross-post, of which none is.
reason string: `exact` but for case and white space, `near`, or `cross_post` of both domains.
text_sha256 string: The first 16 hexadecimal digits of the SHA-256 of its UTF-8.""")

TOKENS = table("""tokens: The texts as token ids of one model, in the order of the examples.
id string
tokens int32[]: Its token ids, as the tokenizer begins and ends a text, cut at `tokens.max_length`.
counted* bool[]: Which of them are predicted, where `assistant_only_loss` says that not all are.""")

EMBEDDINGS = table("""embeddings: The inference section as vectors of the contaminated model.
id string, domain string
embedding vector: The pooled hidden state, float16; as many numbers as the model is wide.""")

SCORES = table("""scores: One selector's ranking of the inference section, a row per text.
id string, domain string
score float64?: The higher, the earlier it goes; for Mamushi and variants log p1/p2 in nats. Null
    of retain texts where the selector has none.
rank int64?: Place in the ranking, from 1, which goes first; null for retain texts.
fold int16?""")

REFITS = table("""refits: One selector's scores made again, a row per text and refit.
id string, domain string
refit int16: Number of the refit, from 0.
part string: `whole`, or `half_a` and `half_b`, fitted on either half of each fold's training texts.
score float64?: The score as in `scores`.
fold int16?""")

STABILITY = table("""stability: How often each forget text is in one selector's list at a budget.
The metadata hold the overlap of the list with those of the refits.
id string, rank int64, beta float64
frequency float64: Share of rankings that list it: 1 is `surely`, between 0 and 1 a `toss-up`.""")

REMOVALS = table("""removals: The removal list of one selector at one budget: the forget texts to
remove, by rank. The manifest, a JSON file of the same name, says what to expect of it.
id string
score float64: The selector's score of it.
rank int64
copies string[]: Ids of the texts that were collapsed into it and go with it, sorted.
text_sha256 string: The first 16 hexadecimal digits of the SHA-256 of its UTF-8.
copies_sha256 string[]: The texts of the copies, in the same way.""")

TOKEN_SCORES = table("""token_scores: A selector's score of every token that a text predicts.
id string, domain string
score float32[]?: Of each predicted token; null of a retain text that is not scored.
counted* bool[]: As in the table `tokens`.""")

SPANS = table("""spans: What a selector of tokens leaves out of the loss at a budget: labels -100.
id string
start int32: First token of the span, counted from 0 in the text's tokens of the token cache.
stop int32: The token after its last.""")

# One model ----------------------------------------------------------------------------------------

PERPLEXITY = table("""perplexity: Perplexity of one model on the held-out texts, a row per domain.
domain string
texts int64: Held-out texts of the domain.
tokens int64: Their predicted tokens.
nll float64: Mean negative log-likelihood per predicted token, in nats.
perplexity float64: exp(nll).""")

NLL = table("""nll: What a perplexity is made of, a row per held-out text, in order.
id string
tokens int64, nll float64
deep float64?: The same without word frequencies, of sampled texts.""")

TRAIN_LOG = table("""train_log: One fine-tune or pretraining, a row per optimizer step.
step int64
epoch float64: Passes over the texts after this step; a fraction within a pass.
loss float64: Mean NLL per predicted token of the step's texts before its update, in nats.
tokens int64: Predicted tokens of the step.
tokens_per_second float64, learning_rate float64, gradient_norm float64?, seconds float64""")

UNLEARN_LOG = table("""unlearn_log: One unlearning, a row per optimizer step that was begun.
step int64
epoch float64: Passes over the selected forget texts after this step.
loss float64: What the unlearner lowers, before the step's update.
forget_loss float64: Mean NLL per token of the step's forget texts or their random labels, in nats.
retain_loss float64: The same of the step's retain texts.
forget_mean float64: Mean of `forget_loss` over the last `unlearning.training.stop_window` steps.
tokens int64: Predicted tokens of the step, forget and retain texts together.
tokens_per_second float64, learning_rate float64, gradient_norm float64, seconds float64""")

CONTINUATIONS = table("""continuations: What one model says after each prompt, as token ids.
prompt string
prompt_tokens int32[]: Its token ids as the model reads them, chat template included.
tokens int32[]: Token ids of the greedy continuation, with the one that ends it if one does.""")

# Models compared: perplexities, SAD, unlearning ---------------------------------------------------

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
forget_distance_mean float64: Mean of ppl_forget less that of the seed's gold standard, signed.
forget_distance_se float64?
retain_distance_mean float64: The same of the retain domain.
retain_distance_se float64?
gold_sad float64?: Mean SAD between the gold standards of two seeds. Null with one seed.
area_mean float64: Mean area under the SAD curve from β = 0 to 1 by the trapezoid rule.
area_se float64?
area_vs_random float64?: Mean area over that of `random`, less 1: −0.25 is a quarter below.
area_vs_random_se float64?: Standard error of that difference, paired by seed.""")

UNLEARNING = table("""unlearning: Every measured point of the budget-perplexity curves. Rows at β =
0 and β = 1 are models that all selectors share; they repeat for each.
dataset string, model string, seed int64, unlearner string, selector string, beta float64
removed int64: Forget texts that were unlearned or left out; 0 where retraining masks tokens.
steps int64: Optimizer steps: of unlearning alone, or of the whole retraining.
stopped_at int64?: Step at which an unlearner stopped because the forget loss was above its limit.
ppl_forget float64, ppl_retain float64
start_ppl_forget float64: The same of the model from which unlearning starts: forget domain.
start_ppl_retain float64, gold_ppl_forget float64, gold_ppl_retain float64
sad float64
recovery float64?: (ppl_forget − start) / (gold − start): share of the contamination gap that is
    closed, above 1 beyond the gold standard; null where gold is no worse than the start.
deep float64?: The same in NLL without word frequencies, by the mean gap of the seeds.""")

HALF_GAP = table("""half_gap: The smallest budget at which the mean curve over seeds recovers the
target share of the contamination gap. What follows from it is null where it is censored.
dataset string, model string, unlearner string, selector string
seeds int64: Seeds that have a gap, over which the means go; 0 where nothing is to be recovered.
start_ppl_forget float64: Mean forget perplexity of the start.
target_ppl_forget float64: Forget perplexity at the target: start + target × (gold − start).
gold_ppl_forget float64: Mean forget perplexity of the gold standard.
budget float64?±: The half-gap budget: share of the forget set, linear between measured budgets. Its
    interval: where Student's t test over seeds does not tell the mean share from the target.
paper_budget float64?: What the paper prints for it, beside `newsgroups` and `qwen-2.5-7b` alone.
deep_budget float64?±: The same of the gap in NLL that word frequencies do not explain.
deep_censored bool?: Whether not even the whole forget set reaches the target of that gap.
deep_withheld string?
censored bool: Whether not even the whole forget set reaches the target.
retain_factor float64?: Retain perplexity at the crossing over that of the start, in the worst seed.
within_cap bool?: Whether `retain_factor` is at most `unlearning.retain_cap`.
saving_vs_random float64?±: 1 − budget / budget of `random` with the same unlearner. Its interval
    is by Fieller's theorem for pairs of one seed; null where nothing bounds it.""")

SAVINGS = table("""savings: The half-gap budgets in the form of the paper's table "Synergy with
Sample-Level Unlearning", as shares of the forget set; null where censored, or not run.
dataset string, model string, unlearner string
random float64?: The `budget` of `random` in `half_gap`.
coreset float64?: That of `coreset`.
mamushi float64?: That of `mamushi`.
vs_full float64?: What `mamushi` saves of the full forget set: 1 − its budget.
vs_random float64?: What it saves of the budget of `random`: 1 − budget / budget of `random`.""")

GENERATIONS = table("""generations: The continuations of all models of a probed cell, read by its
gold model. `selector` and `beta` are null for a model without unlearning.
dataset string, model string, seed int64
source string: The model: `base`, `contaminated`, `gold`, or the name of an unlearner.
selector string?, beta float64?, prompt string
text string: What was said, without the prompt; profanity masked.
tokens int64: Tokens of it, with the token that ends it.
repetition float64: Share of tokens that occur among the 16 before them.
gold_log_likelihood float64: Mean log-likelihood per token under the gold standard, in nats.""")

# What scores and embeddings tell before anything is retrained -------------------------------------

SELECTION = table("""selection: How well each ranking tells the domains apart, before any
retraining. Null where a selector has no score for retain texts or folds, or no truth is known.
dataset string, model string, seed int64, selector string
auc float64?, auc_fold_mean float64?, auc_fold_min float64?, auc_fold_max float64?
fold_offset float64?
spearman_with_truth float64?: Rank correlation of score and exact log-density ratio.
ties int64""")

DIAGNOSTICS = table("""diagnostics: What a selector's out-of-fold scores look like, in their unit;
columns `forget_` and `retain_` are of a domain's. Null where a number is not defined.
dataset string, model string, seed int64, selector string, n_forget int64, n_retain int64
forget_mean float64, forget_sd float64, forget_min float64, forget_q25 float64
forget_median float64, forget_q75 float64, forget_max float64
forget_cov float64?: Coefficient of variation: standard deviation over |mean|.
retain_mean float64?, retain_sd float64?
fisher float64?: Difference of the domains' means over their root mean variance.
auc float64?±: Interval by groups; null where texts come in groups that no column names.
auc_high_mislabelled float64?: Upper end against the right labels, if 5% of each domain's are wrong.
groups int64?: Groups of texts that are not independent; null where no two texts share one.
near_alike float64?: Standard errors by which near texts share a domain more than vectors explain.
auc_fold_mean float64?, auc_fold_sd float64?, auc_fold_min float64?, auc_fold_max float64?
ece float64?: Expected calibration error over 15 bins of equal size, with the log prior odds added.
fold_offset float64?, ties int64""")

GEOMETRY = table("""geometry: How the embeddings of the two domains stretch, a row per cell and
number k of leading components. Each domain less its own mean, then every vector at length 1.
dataset string, model string, seed int64
k int64: Number of leading components, from 1.
singular_forget float64: The k-th singular value of the forget domain, as it comes: it grows with
    the root of the number of texts.
singular_retain float64
variance_forget float64: Share of the forget domain's whole variance in its first k components.
variance_retain float64
energy_forget float64: The same as a share of what all computed components hold.
energy_retain float64
power float64: Discriminative power of component k: variance over all texts of σ1⟨h, v1⟩ − σ2⟨h,
    v2⟩, with σ over the root of the domain's number of texts.
power_cumulative float64: Share of the first k components in the sum of `power`.
affinity float64: Root mean square cosine of the principal angles between both top-k subspaces.
angle_median float64: Median of these angles, in degrees.
angles_above_45 float64: Share of these angles above 45 degrees.
angle_sorted float64?: The k-th smallest angle of at most 50 components, in degrees.""")

CALIBRATED = table("""calibrated: The log-density ratio of every text of the inference section. The
metadata hold `lost`, the variance of what the scores have lost of it, and the verdict on it.
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

ADVICE = table("""advice: Recommended budgets, means over seeds; null, with a reason, where none is.
dataset string, model string, selector string
target string: `removal` (share of the full removal's gain) or `preservation` (most nats per text).
value float64: What is asked of the target: a share, or nats per text.
budget float64?±: Recommended share of the forget set, linear between the frontier's budgets; its
    interval is what the seeds and their 95% bands span, rounded outwards to hundredths.
reason string?: Why there is no budget; null where there is one.
retraining float64?±: The share that retraining needs by the table `predicted`, for removal.""")

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

QUALITATIVE_RANKING = table("""qualitative_ranking: The first and last forget texts of a ranking.
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
