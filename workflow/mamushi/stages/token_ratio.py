"""The log ratio of every token that the forget texts predict, from two language models.

log p(token | what is before it) under a model tuned on the contamination section's forget texts,
minus the same under one tuned on its retain texts. Neither has seen what they read: it is of the
inference section. Both are trained and read here, and kept by no one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mamushi.configuration.models import Training
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _models
from mamushi.stages._settings import Cell, Config, of_training

GPU = True


class TokenRatio(Cell):
    """Settings of the stage ``token_ratio``: how both models are trained."""

    training: Training


def settings(config: Config, dataset: str, model: str, seed: int) -> TokenRatio:
    training = replace(of_training(Training, config, model), steps="by_data")
    return TokenRatio(
        dataset=dataset, model=model, seed=seed, training=training, code=digest(__name__)
    )


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles):
    model_card: Path = reads("card of the base model")
    out: Path = writes("the token ratios to write")


def run(files: Files, settings: TokenRatio, job: Job) -> None:
    """Raises ``UserError`` where the contamination section lacks a domain."""
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.provenance import fingerprint
    from mamushi.artifacts.tables import CONTAMINATION, FORGET, INFERENCE, RETAIN, write_table
    from mamushi.lm.perplexity import token_nll
    from mamushi.lm.tokens import read_tokens

    length = settings.training.max_length
    ranked = read_tokens(files.tokens, files.examples, INFERENCE, length, domains=[FORGET])
    nll, states = {}, []
    for domain in (FORGET, RETAIN):
        texts = read_tokens(files.tokens, files.examples, CONTAMINATION, length, domains=[domain])
        states.append(files.out.with_name(f"{files.out.name}.{domain}.state"))
        model, accelerator, _ = _models.trained_on(
            texts,
            files.model_card,
            settings.training,
            job,
            seed=settings.seed,
            what=f"{domain} model",
            state=states[-1],
            fingerprint=fingerprint({**job.origin, "domain": domain}),
        )
        nll[domain] = token_nll(model, ranked, job.execution.batch_tokens, accelerator)
        del model
    if accelerator.is_main_process:
        ratio = [two - one for one, two in zip(nll[FORGET], nll[RETAIN], strict=True)]
        lists = pa.array(ratio, pa.list_(pa.float32()))
        columns = {"id": ranked.ids, "ratio": lists}
        write_table(files.out, schemas.TOKEN_RATIO, columns, metadata=job.origin)
        for state in states:
            state.unlink(missing_ok=True)
