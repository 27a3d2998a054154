"""The table of this room."""

from mamushi.io.columns import table

TOKEN_INFLUENCE = table("""influence: How much a step of training on each token of the inference
section would help with other forget texts, a row per text. The metadata have the points, the
targets and the length of the step.
id string, domain string
fold int16?: Of a model that was contaminated before: the half of the texts that it is of, where
    those of the other half are its targets; else null.
influence float32[]: Of each token but the first, in nats: what a step on it alone would take off
    the mean NLL of the forget targets, less what it would take off that of the retain targets,
    summed over the points.""")
