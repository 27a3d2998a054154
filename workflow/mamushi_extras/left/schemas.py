"""What is left of the removed texts in a model, beside gold models, and what it can still do."""

from mamushi.io.columns import table

LIKELIHOODS = table("""likelihoods: What one model makes of single forget texts, from which
membership inference starts, a row per text of the inference and the evaluation section. A file per
model.
id string
section string: `inference` (may have been trained on) or `evaluation` (held out).
tokens int64, nll float64""")

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
value float64?: The measure of the model, with its interval over texts and seeds; what is null is
    missing for the reason in `why`.
low float64?, high float64?
gold float64?±: The measure of the gold models of the same seeds, which never saw the texts.
difference float64?±: Value less gold, paired by texts and seeds.
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

RELEARNING_CURVE = table("""relearning_curve: One model while it is fine-tuned on a few forget
texts, a row per number of steps that is measured; 0 is the model before any.
step int64
examples int64: Forget texts that it is fine-tuned on.
ppl_forget float64, ppl_retain float64""")

RELEARNED_TEXTS = table("""relearned: What one model makes of each held-out text while it is
fine-tuned on a few others, a row per text and number of steps that is measured, but 0.
step int64, id string, tokens int64, nll float64""")

RELAPSE = table("""relapse: What comes back of the forget domain when models are fine-tuned on a few
of its texts, beside the gold model of each seed.
dataset string, model string
source string: `retraining`, or the name of an unlearner.
selector string: Selector of the removed texts.
beta float64: Budget at which they were removed.
step int64, seeds int64
raised float64: Nats per token by which deletion raised the NLL of held-out forget texts.
regained float64: Nats per token by which the steps lower the NLL of held-out forget texts.
gold_regained float64: The same of the gold models.
excess float64: regained - gold_regained: what comes back that was not just learned.
excess_low float64?, excess_high float64?
relearned_net float64?±: Share that is left of the gap between start and gold, after as many steps,
    in held-out forget NLL less retain NLL: 1, the aim, is as if the domain had never been seen.
relearned_net_beside_gold string?
relearned_net_withheld string?
relearned float64?±: The same of forget NLL alone.
relearned_beside_gold string?
relearned_withheld string?
retain_lost float64: Nats per token by which the steps raise the NLL of held-out retain texts.
why string?""")
