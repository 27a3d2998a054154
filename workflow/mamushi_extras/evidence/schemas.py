"""What retraining is predicted to do, and how alike the selectors rank."""

from mamushi.io.columns import table

PREDICTED = table("""predicted: What retraining is predicted to do at a budget, by a unigram model
of the texts that remain; of no selector that has read the words by which it is predicted.
dataset string, model string, seed int64, selector string, beta float64
removed int64: Texts, or tokens of a selector of tokens.
recovered float64?: Share of the gap in forget NLL from the model of all texts to that of none.""")

AGREEMENT = table("""agreement: How alike two selectors rank the forget texts: a row per cell, pair
and budget of the grid. Ties of a score go by id.
dataset string, model string, seed int64
first string: Name of a selector of the grid, or of `evidence.compared`.
second string: Name of the other one.
beta float64, removed int64
shared float64?: Share of the first `removed` texts that both lists have; β by chance.
spearman float64?: Rank correlation of the two whole rankings; null of a single text.""")
