"""What models can still do: scores in tasks of lm-evaluation-harness."""

from mamushi.io.columns import table

TASK_SCORES = table("""task_scores: What one model reaches in tasks of lm-evaluation-harness, a row
per task, metric and filter. A file per model.
task string: Task or group of lm-evaluation-harness by name.
metric string: Its metric, such as `acc`, or `acc_norm`, where choices count by their length.
filter string: What the harness does to answers before it scores them; `none` for most tasks.
version string?: The task's version.
examples int64?: Examples that were scored; null for a group.
value float64: The metric, as the harness gives it.
se float64?: Its standard error over examples, as the harness gives it; null without one.""")

TASKS = table("""tasks: What all models reach in tasks of lm-evaluation-harness, beside gold, a row
per model, task, metric and filter.
dataset string, model string, seed int64
method string: Whose model: an endpoint (`base`, which is asked once, `contaminated`, `beta0`,
    `gold`), `retraining`, or an unlearner.
selector string?, beta float64?
task string: Task or group of lm-evaluation-harness by name.
metric string: Its metric.
filter string: What the harness does to answers before it scores them.
version string?: The task's version.
examples int64?: Examples that were scored; null for a group.
value float64: The metric, as the harness gives it.
se float64?
gold float64: The same of the gold model of this seed. Both read the same examples, so that the
    difference is known better than two standard errors say.""")
