"""What is left of the removed texts in a model, beside gold models."""

from mamushi.artifacts.columns import group, table

WHOSE = group("""dataset string, model string
method string: Whose model: an endpoint (`base`, `contaminated`, `beta0`), `retraining`, or an
    unlearner.
selector string?, beta float64?
members string: The texts that are asked about, forget texts of the inference section: `removed` and
    `kept` ones by the list, or `forget`, all of them, where there is no list.
planted int64?: Of those just the texts that are so many times in the contamination section,
    compared with texts that were held out for them; null for all, compared with all held-out forget
    texts.""")

AGAINST_GOLD = group("""texts int64: Texts that are asked about, in the seed with the fewest.
others int64?: Held-out texts that they are told from; null for `memorization`.
seeds int64
start float64?: The measure of the model before: of beta 0 for retraining, of the start for an
    unlearner; null for endpoints.
value float64?: The measure of the model; null where `why` says what is missing.
low float64?: Lower end of the 95% interval, over texts and seeds; of one seed over texts alone.
high float64?
gold float64?: The measure of the gold models of the same seeds, which never saw the texts.
gold_low float64?, gold_high float64?
difference float64?: Value less gold, paired by texts and seeds.
difference_low float64?, difference_high float64?
at_fault bool?: Whether gold's interval leaves out chance: the attack then takes for memory what the
    texts are like by themselves, and the value alone says nothing. Null without chance.
verdict string?: By the interval of the difference `more than gold` or `less than gold`, else `not
    told from gold`, which is no proof that they are alike.
why string?""")

KIND_OF_MODELS = group("""dataset string, model string
source string: `retraining`, or the name of an unlearner; in some tables `gold` or another endpoint.
selector string?: Selector of the removed texts; null for an endpoint.
beta float64?: Budget at which they were removed; null for an endpoint.""")

MEMBERSHIP = table(f"""membership: How well attacks tell texts from held-out ones under each model,
a row per dataset, model, method, set of texts, attack and measure.
{WHOSE}
attack string: `loss`, `zlib`, `min_k`, `min_k_plus`, `reference` (against the base model) or
    `likelihood_ratio` (gold and beta 0 models of other seeds).
measure string: `auc`, where chance is 0.5, or `tpr`, the share of texts found while 1% of the
    held-out ones are accused, where it is 0.01.
{AGAINST_GOLD}""")

MEMORIZATION = table(f"""memorization: How well each model completes texts from their beginnings, a
row per dataset, model, method, set of texts, prefix, decoding and measure.
{WHOSE}
prefix float64
decoding string: `greedy`, or `sampled`: the best of `left.extraction.samples` completions.
measure string: `exact` (share of the texts that are completed token by token) or `rouge_l` (mean).
{AGAINST_GOLD}""")

LEFT = table(f"""left: What is left, on a page: of `membership` the AUC of the loss, and of the
likelihood ratio or, with too few seeds for it, of the reference; of `memorization` what is
completed greedily from the longest prefix.
{WHOSE}
question string: `member` or `memorized`.
measure string: The attack and its `auc`, or `exact` or `rouge_l`.
{AGAINST_GOLD}""")

KLOM = table(f"""klom: How far the models of all seeds are from the gold models of all seeds, by the
likelihoods of held-out texts: a row per dataset, model, selector, budget and domain. Retrained
models are those of the grid, unlearned ones those of the probe.
{KIND_OF_MODELS}
domain string, texts int64
seeds int64: Seeds, each with a model of either kind.
excess float64?: How much more the margins of a model surprise the gold models of the other seeds
    than those of the gold model of its own seed do, in nats a text; 0 of models that are like gold.
excess_low float64?: Lower end of the 95% interval by a jackknife of whole seeds, model and gold
    together; null of fewer than 3 seeds.
excess_high float64?
p float64?: Two-sided p that there is no difference; null where there is too little to say.
seeds_needed_low int64?, seeds_needed_high int64?, why string?""")

RELAPSE = table(f"""relapse: What brings the forget domain back, over seeds, each model against the
gold model of its seed treated the same: a row per kind of models, treatment and amount.
{KIND_OF_MODELS}
treatment string: `relearn forget`, `relearn retain` or `relearn unrelated`.
amount int64: Optimizer steps.
seeds int64: Seeds, each with a model of either kind.
raised float64: Nats per token by which deletion has raised the NLL of held-out forget texts above
    that of the model from which unlearning starts; below 0 it has lowered it.
regained float64: Nats per token by which the treatment lowers the NLL of held-out forget texts;
    below 0 it raises it.
gold_regained float64: The same of the gold models.
excess float64: regained - gold_regained: what comes back that was not just learned.
excess_low float64?: Lower end of its 95% t interval over seeds; null of one seed.
excess_high float64?
retain_lost float64: Nats per token by which the treatment raises the NLL of held-out retain texts.
seeds_needed_low int64?, seeds_needed_high int64?, why string?""")

UTILITY = table(f"""utility: Perplexity of groups of held-out retain texts, side by side: a row per
model, column and value.
{KIND_OF_MODELS}
subgroup string
value string: Its value: the 20 most frequent ones, and thirds of numbers that have more.
texts int64, seeds int64
ppl float64: Perplexity; exp of the mean NLL per token over seeds.
ppl_low float64?: Lower end of the 95% interval, over texts and seeds; null of fewer than 10 texts.
ppl_high float64?""")
