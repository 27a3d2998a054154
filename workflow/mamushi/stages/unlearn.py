"""Unlearning: from a trained model and a removal list to the tensors of one that is mended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import setting
from mamushi.config.sections import Shortened, UnlearnTraining
from mamushi.io.digests import content_digests
from mamushi.io.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.registry import plugin, plugin_settings
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages._models import (
    Cell,
    Trains,
    checkpoint_of,
    finish_training,
    join_passes,
    open_arm,
)

if TYPE_CHECKING:
    from mamushi.lm.tokens import TokenSet

GPU = ("unlearn",)


class Unlearn(Trains, Cell):
    """The model that unlearning starts from, what of it is trained, and the unlearner."""

    PLUGIN = ("unlearner", "kind")
    precision: str = setting("models.{model}.training.precision")
    evaluation: Shortened = setting("evaluation")
    unlearner: str
    kind: str = setting("unlearners.{unlearner}.kind")
    settings: dict[str, Any] = setting(
        lambda config, unlearner: plugin_settings("unlearner", config["unlearners"][unlearner])
    )
    training: UnlearnTraining = setting("unlearners.{unlearner}.training")
    inputs: dict[str, str] = setting(
        # Of a removal list of the user's, by its name there.
        lambda config, list=None: content_digests(
            [config["unlearning"]["lists"][list]] if list else []
        )
    )


def unlearn(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    removal: Input | None = None,
    spans: Input | None = None,
    tensors: Output,
    log_table: Output,
    card: Output,
    perplexity: Output | None = None,
    nll: Output | None = None,
    evaluation: str | None = None,
    settings: Unlearn,
    job: Job,
) -> None:
    """Unlearn the texts of a removal list, or the tokens of spans, from a trained model; without
    either all texts. An unlearner that trains nothing leaves an edit of its logits. The model is
    measured where ``evaluation`` are settings for that."""
    from mamushi.lm.tokens import keep_spans, read_tokens
    from mamushi.unlearning.removal import listed_texts

    forget, retain = (
        read_tokens(tokens, examples, INFERENCE, settings.max_length, domains=[domain])
        for domain in (FORGET, RETAIN)
    )
    selected, listed = forget, dict[str, int]()
    if removal is not None:
        selected = listed_texts(forget, removal, examples)
    if spans is not None:
        selected = keep_spans(forget, parquet.read_table(spans, schemas.SPANS).to_pylist())
        listed["tokens"] = int(selected.counted.sum())
    log, counts = _store_unlearned(job, selected, forget, retain)
    counts = {"texts": len(forget), "removed": len(selected), **listed, **counts}
    finish_training(job, schemas.UNLEARN_LOG, log, counts, trained=trained, unlearned=tensors)


def _store_unlearned(
    job: Job, selected: TokenSet, forget: TokenSet, retain: TokenSet
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Unlearn selected texts from the start of a job's arm, and store what comes of that; return
    the step log, and what the card says."""
    from mamushi.lm import storage
    from mamushi.lm.loading import open_placed, open_tokenizer
    from mamushi.lm.tokens import read_tokens
    from mamushi.unlearning import loop

    files, settings, seed = job.files, job.settings, job.settings.seed
    opened = files["model_card"], files["trained"], None, settings.precision, settings, seed
    model, accelerator = open_arm(*opened)
    join_passes(model, accelerator, settings, settings.evaluation.max_length, job)
    outcome = loop.Outcome({name: [] for name in schemas.UNLEARN_LOG.schema.names}, None, None)
    read, execution = (model, selected, retain, settings.model_dump()), job.execution.model_dump()
    if not (unlearner := plugin("unlearner", settings.kind)).trains:
        how = {"seed": seed, "accelerator": accelerator, "batch_tokens": execution["batch_tokens"]}
        base = partial(open_placed, files["model_card"], [], accelerator)
        how["base"] = base if files["trained"] else None
        section = files["tokens"], files["examples"], CONTAMINATION, settings.max_length
        how |= {"forget": forget, "unseen": read_tokens(*section, domains=[FORGET])}
        edited = unlearner.code.edit(*read[:3], settings.settings, **how)
        storage.write(files["tensors"], edited.tensors, job.origin)
        counts: dict[str, Any] = {"trained_parameters": 0, **edited.card_entries}
    else:
        if len(selected):
            tokenizer = open_tokenizer(files["model_card"])
            total = loop.steps_of(len(selected), len(forget), settings.training.model_dump())
            labels = frozenset(tokenizer.all_special_ids), tokenizer.get_vocab().values()
            run = loop.Unlearning(*read, execution, seed, accelerator, *labels, all_forget=forget)
            outcome = run.run(total, checkpoint_of(files["card"], job))
        storage.save_trained(files["tensors"], model, job.origin)
        counts = {"trained_parameters": model.num_parameters(only_trainable=True)}
    end = {"stopped_at": outcome.stopped_at, "masked": outcome.masked}
    return outcome.log, {"steps": outcome.steps, **end, **counts}
