"""Texts, their vectors, rankings and removal lists."""

from mamushi.io.columns import table

EXAMPLES = table("""examples: The cleaned texts of a dataset, a row per kept text.
id string: Id of the text, unique in the dataset; of a window that of its document, `#` and its
    characters there, as `c7#120-480`.
text string: The text, without white space around it.
domain string
section string: `contamination` (trains the embedder), `inference` (is ranked, and trains what is
    compared) or `evaluation` (held out; measures perplexity).
log_density_ratio float64?: The exact log p1(text)/p2(text) in nats; null but for synthetic texts.
group string?: What it shares with texts that are not independent of it, such as a thread; these are
    of one section and one fold. Null for a text on its own.
label_* string?: Labels that came with the texts.""")

DUPLICATES = table("""duplicates: The texts that were dropped as copies, a row each, in the order of
the files.
id string: Id of the text that was dropped.
kept_id string?: Id of the text that was kept for it; null for a cross-post, of which none is.
reason string: `exact` (equal once case and white space are folded), `near` (shares enough word
    shingles) or `cross_post` (stands in both domains).
text_sha256 string: The first 16 hexadecimal digits of the SHA-256 of its UTF-8.""")

TOKENS = table("""tokens: The texts as token ids of one model, in the order of the examples.
id string
tokens int32[]: Its token ids, as the tokenizer begins and ends a text, cut at `tokens.max_length`.
counted* bool[]: Which of them are predicted, where `assistant_only_loss` says that not all are.""")

EMBEDDINGS = table("""embeddings: The texts of the inference section as vectors of the contaminated
model.
id string, domain string
embedding vector: The pooled hidden state, float16; as many numbers as the model is wide.""")

SCORES = table("""scores: One selector's ranking of the inference section, a row per text. The
metadata hold what else the selector tells.
id string, domain string
score float64?: The higher, the earlier a forget text is removed; for Mamushi and its variants an
    estimate of log p1/p2 in nats. Null of retain texts where the selector has none.
rank int64?: Place in the ranking, from 1, which goes first; null for retain texts.
fold int16?""")

REFITS = table("""refits: One selector's scores of the inference section made again, a row per text
and refit.
id string, domain string
refit int16: Number of the refit, from 0.
part string: `whole` (other folds and networks), or `half_a` and `half_b` (fitted on either half of
    each fold's training texts: two independent estimates).
score float64?: The score as in `scores`.
fold int16?""")

STABILITY = table("""stability: How often each forget text is in one selector's list at a budget, a
row per text and budget. The metadata hold the overlap of the list with those of the refits.
id string, rank int64, beta float64
frequency float64: Share of the rankings (that of `scores`, and each whole refit's) that have the
    text in their list: 1 is `surely`, between 0 and 1 a `toss-up`.""")

REMOVALS = table("""removals: The removal list of one selector at one budget: the forget texts to
remove, by rank. The manifest, a JSON file of the same name, says what to expect of it.
id string
score float64: The selector's score of it.
rank int64
copies string[]: Ids of the texts that were collapsed into it and go with it, sorted.
text_sha256 string: The first 16 hexadecimal digits of the SHA-256 of its UTF-8.
copies_sha256 string[]: The texts of the copies, in the same way.""")

TOKEN_SCORES = table("""token_scores: A selector's score of every token that a text of the inference
section predicts.
id string, domain string
score float32[]?: Of each predicted token; null of a retain text that is not scored.
counted* bool[]: As in the table `tokens`.""")

SPANS = table("""spans: What a selector of tokens leaves out of the loss at one budget, a row per
span: a trainer gives these tokens the label -100.
id string
start int32: First token of the span, counted from 0 in the text's tokens as the token cache has
    them.
stop int32: The token after its last.""")
