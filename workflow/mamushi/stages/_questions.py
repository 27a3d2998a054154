"""What models are asked: a function for each question, which gives its tables by their names."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mamushi.configuration.sections import Prompts
from mamushi.stages import _asking
from mamushi.stages._settings import Extraction, Membership, Relearn


def generate(subject: _asking.Subject, asked: Prompts) -> _asking.Answers:
    """Continue the prompts with a model, greedily.

    Raises ``UserError`` for a prompt that does not fit the model with its continuation.
    """
    from mamushi.artifacts import schemas
    from mamushi.lm.generate import continuations

    given = (subject.tokenizer, asked.prompts, asked.new_tokens, subject.accelerator)
    return {"generations": (schemas.CONTINUATIONS, continuations(subject.model, *given))}


def membership(subject: _asking.Subject, asked: Membership) -> _asking.Answers:
    """Read single forget texts, from which membership inference starts: those that were there to be
    ranked, and those that were held out."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, INFERENCE
    from mamushi.lm.perplexity import text_statistics, zlib_bytes

    wanted = ((INFERENCE, EVALUATION), asked.texts, asked.max_length)
    texts, sections, planted = _asking.forget_texts(subject, *wanted)
    # What the model reads of a text, and not what was cut off.
    read = [
        subject.tokenizer.decode(texts[row].tolist(), skip_special_tokens=True)
        for row in range(len(texts))
    ]
    given = (subject.batch_tokens, subject.accelerator, asked.least)
    columns = {
        "id": texts.ids,
        "section": sections,
        "planted": planted,
        "tokens": texts.lengths - 1,
        "zlib": zlib_bytes(read),
        **text_statistics(subject.model, texts, *given),
    }
    return {"membership": (schemas.LIKELIHOODS, columns)}


def extraction(subject: _asking.Subject, asked: Extraction) -> _asking.Answers:
    """Complete forget texts from their beginnings: greedily, and by sampling."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import INFERENCE
    from mamushi.evaluation.texts import rouge_l
    from mamushi.lm.generate import completions

    wanted = ((INFERENCE,), asked.texts, asked.max_length)
    texts, _, planted = _asking.forget_texts(subject, *wanted)

    def words(tokens: list[int]) -> str:
        return str(subject.tokenizer.decode(tokens, skip_special_tokens=True))

    columns: dict[str, list[Any]] = {name: [] for name in schemas.EXTRACTION.schema.names}
    for prefix in asked.prefixes:
        # At least a token to start from, and one to go on with.
        cuts = [max(1, int(n * prefix)) for n in texts.lengths.tolist()]
        rows = [texts[row] for row in range(len(texts))]
        said = completions(
            subject.model,
            subject.tokenizer,
            [row[:cut] for row, cut in zip(rows, cuts, strict=True)],
            [len(row) - cut for row, cut in zip(rows, cuts, strict=True)],
            asked.samples,
            subject.accelerator,
        )
        for i, found in enumerate(said):
            truth = rows[i][cuts[i] :].tolist()
            for sample, tokens in enumerate(found):
                whole = words(truth), words(tokens)
                row = {
                    "id": texts.ids[i],
                    "planted": planted[i],
                    "prefix": prefix,
                    "decoding": "sampled" if sample else "greedy",
                    "sample": sample,
                    "tokens": len(truth),
                    "exact": tokens == truth,
                    "rouge_l": rouge_l(whole[1], whole[0]),
                }
                for name, value in row.items():
                    columns[name].append(value)
    return {"extraction": (schemas.EXTRACTION, columns)}


def relearn(subject: _asking.Subject, asked: Relearn) -> _asking.Answers:
    """Fine-tune a model on a few forget examples, and measure how fast it learns the domain.

    Gold never saw the domain: an unlearned model that comes back much faster had only hidden it.
    The model is another one afterwards. Raises ``UserError`` without a forget text to learn, or if
    training diverges.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE
    from mamushi.lm.perplexity import require_domains
    from mamushi.lm.tokens import subset
    from mamushi.unlearning.relearning import choose, relearn
    from mamushi.unlearning.trunk import starting_from

    held_out = subject.texts(EVALUATION, asked.evaluation.max_length)
    require_domains(held_out)
    forget = subject.texts(INFERENCE, asked.max_length, domains=[FORGET])
    few = subset(forget, choose(forget, asked.relearning.examples, asked.seed))
    model = subject.to_train(asked)
    with starting_from(subject.trunk, model):
        curve = relearn(
            model,
            few,
            held_out,
            asdict(asked.relearning),
            seed=asked.seed,
            accelerator=subject.accelerator,
            batch_tokens=subject.batch_tokens,
        )
    return {"relearning": (schemas.RELEARNING_CURVE, curve)}
