"""The table of this room."""

from mamushi.io.columns import table

TOKEN_CROSS_ENTROPY = table("""cross_entropy: How much better each token of the inference section is
foreseen by a model that has learned the domain than by its twin, which was trained alike on retain
texts alone, a row per text.
id string, domain string
fold int16?: Without a model that other texts have contaminated: the fold of the text, which both
    models of the fold have not seen; else null.
cross_entropy float32[]: Of each token but the first, in nats: its NLL under the twin, less that
    under the other model.""")
