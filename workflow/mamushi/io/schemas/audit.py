"""What is left of the removed texts in a model, beside gold models."""

from mamushi.io.columns import group, table

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
others int64: Held-out texts that they are told from.
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
    texts are like by themselves, and the value alone says nothing.
verdict string?: By the interval of the difference `more than gold` or `less than gold`, else `not
    told from gold`, which is no proof that they are alike.
why string?""")

MEMBERSHIP = table(f"""membership: How well attacks tell texts from held-out ones under each model,
a row per dataset, model, method, set of texts, attack and measure.
{WHOSE}
attack string: `loss`, `reference` (against the base model) or `likelihood_ratio` (gold and beta 0
    models of other seeds).
measure string: `auc`, where chance is 0.5, or `tpr`, the share of texts found while 1% of the
    held-out ones are accused, where it is 0.01.
{AGAINST_GOLD}""")

RELAPSE = table("""relapse: What comes back of the forget domain when models are fine-tuned on a few
of its texts, over seeds, beside the gold model of each seed: a row per kind of models and step.
dataset string, model string
source string: `retraining`, or the name of an unlearner.
selector string: Selector of the removed texts.
beta float64: Budget at which they were removed.
step int64: Optimizer steps so far.
seeds int64: Seeds, each with a model of either kind.
raised float64: Nats per token by which deletion has raised the NLL of held-out forget texts above
    that of the model from which unlearning starts; below 0 it has lowered it.
regained float64: Nats per token by which the steps lower the NLL of held-out forget texts; below 0
    they raise it.
gold_regained float64: The same of the gold models.
excess float64: regained - gold_regained: what comes back that was not just learned.
excess_low float64?: Lower end of its 95% t interval over seeds; null of one seed.
excess_high float64?
retain_lost float64: Nats per token by which the steps raise the NLL of held-out retain texts.
seeds_needed_low int64?, seeds_needed_high int64?, why string?""")
