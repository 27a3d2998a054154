"""What is left of the removed texts in a model, beside gold models, and what it can still do."""

from mamushi.io.columns import table

LIKELIHOODS = table("""likelihoods: What one model makes of single forget texts, from which
membership inference starts, a row per text of the inference and the evaluation section. A file per
model.
id string
section string: `inference` (may have been trained on) or `evaluation` (held out).
tokens int64: Predicted tokens, all but the first.
nll float64: Sum of their negative log-likelihoods, in nats.""")

MEMBERSHIP = table("""membership: How well attacks tell texts from held-out ones under each model,
a row per dataset, model, method, set of texts, attack and measure.
dataset string, model string
method string: Whose model: an endpoint (`base`, `contaminated`, `beta0`), `retraining`, or an
    unlearner.
selector string?, beta float64?
members string: The texts that are asked about, forget texts of the inference section: `removed` and
    `kept` ones by the list, or `forget`, all of them, where there is no list.
attack string: `loss`, `reference` (against the base model) or `likelihood_ratio` (gold and beta 0
    models of other seeds).
measure string: `auc`, where chance is 0.5, or `tpr`, the share of texts found while 1% of the
    held-out ones are accused, where it is 0.01.
texts int64: Texts that are asked about, in the seed with the fewest.
others int64: Held-out texts that they are told from.
seeds int64
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

SCORED = """task string: Task or group of lm-evaluation-harness by name.
metric string: Its metric, such as `acc`, or `acc_norm`, where choices count by their length.
filter string: What the harness does to answers before it scores them; `none` for most tasks.
version string?: The task's version.
examples int64?: Examples that were scored; null for a group.
value float64: The metric, as the harness gives it.
se float64?: Its standard error over examples, as the harness gives it; null without one."""

TASK_SCORES = table(f"""task_scores: What one model reaches in tasks of lm-evaluation-harness, a row
per task, metric and filter. A file per model.
{SCORED}""")

TASKS = table(f"""tasks: What all models reach in tasks of lm-evaluation-harness, beside gold, a row
per model, task, metric and filter.
dataset string, model string, seed int64
method string: Whose model: an endpoint (`base`, which is asked once, `contaminated`, `beta0`,
    `gold`), `retraining`, or an unlearner.
selector string?, beta float64?
{SCORED}
gold float64: The same of the gold model of this seed. Both read the same examples, so that the
    difference is known better than two standard errors say.""")
