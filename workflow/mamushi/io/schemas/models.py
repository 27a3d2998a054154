"""What is measured of one model."""

from mamushi.io.columns import table

PERPLEXITY = table("""perplexity: Perplexity of one model on the held-out texts, a row per domain.
domain string
texts int64: Held-out texts of the domain.
tokens int64: Their predicted tokens.
nll float64: Mean negative log-likelihood per predicted token, in nats.
perplexity float64: exp(nll).""")

NLL = table("""nll: What a perplexity is made of, a row per held-out text, in order.
id string
tokens int64, nll float64
deep float64?: The same without word frequencies, of sampled forget texts: among the tokens of
    those, once the model's mean prediction is that of words in other texts.""")

TRAIN_LOG = table("""train_log: One fine-tune (or pretraining of a tiny model), a row per optimizer
step.
step int64
epoch float64: Passes over the texts after this step; a fraction within a pass.
loss float64: Mean NLL per predicted token of the step's texts before its update, in nats.
tokens int64: Predicted tokens of the step.
tokens_per_second float64, learning_rate float64, gradient_norm float64?, seconds float64""")

UNLEARN_LOG = table("""unlearn_log: One unlearning, a row per optimizer step that was begun.
step int64
epoch float64: Passes over the selected forget texts after this step.
loss float64: What the unlearner lowers, before the step's update.
forget_loss float64: Mean NLL per predicted token of the step's forget texts before its update, in
    nats; where an unlearner trains on random labels, that of those labels.
retain_loss float64: The same of the step's retain texts.
forget_mean float64: Mean of `forget_loss` over the last `unlearning.training.stop_window` steps.
tokens int64: Predicted tokens of the step, forget and retain texts together.
tokens_per_second float64, learning_rate float64, gradient_norm float64, seconds float64""")

CONTINUATIONS = table("""continuations: What one model says after each prompt, as token ids.
prompt string
prompt_tokens int32[]: Its token ids as the model reads them, chat template included.
tokens int32[]: Token ids of the greedy continuation, with the one that ends it if one does.""")

RELEARNING_CURVE = table("""relearning_curve: One model while it is fine-tuned on a few forget
texts, a row per number of steps that is measured; 0 is the model before any.
step int64
examples int64: Forget texts that it is fine-tuned on.
ppl_forget float64, ppl_retain float64""")

RELEARNED_TEXTS = table("""relearned: What one model makes of each held-out forget text while it is
fine-tuned on a few others, a row per text and number of steps that is measured, but 0.
step int64, id string, tokens int64, nll float64""")
