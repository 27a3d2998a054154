"""The ranking of a corpus that nobody labelled."""

from mamushi.io.columns import table

POSTERIOR = table("""posterior: One selector's ranking of a corpus that nobody labelled, a row per
text. The metadata hold the share of the domain, or why it is withheld.
id string, domain string
score float64: As in `scores`; `forget` are the examples.
rank int64?: Place among the texts of the corpus, from 1, which goes first; null for others.
fold int16?
log_ratio float64: Estimate of log p1/pC, of the domain to the corpus, in nats.
posterior float64: Probability to be of the domain, at the estimate of its share.""")
