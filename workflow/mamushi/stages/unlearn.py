"""Unlearning: from a trained model and a removal list to one that is measured."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config import arms
from mamushi.config.sections import HeldOut, UnlearnTraining
from mamushi.config.sources import contents
from mamushi.registry import plugin
from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _asking, _models
from mamushi.stages._settings import (
    Cell,
    Config,
    Opened,
    Questions,
    Trains,
    asking,
    code_with,
    fill,
    setting,
)

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.trunk import Trunk

GPU = True


class Started(Trains):
    """The model that unlearning starts from, and what of it is trained then."""

    start: Opened = setting(
        lambda config, model: fill(Opened, config, model=model, arm=arms.start(config, model))
    )
    max_length: int = setting("unlearning.max_length")
    evaluation: HeldOut = setting("evaluation")


def unlearner_settings(config: Config, unlearner: str) -> dict[str, Any]:
    """Return the settings of an unlearner's kind."""
    definition = config["unlearners"][unlearner]
    return {key: definition[key] for key in plugin("unlearner", definition["kind"]).settings}


def list_contents(config: Config, list: str | None = None) -> dict[str, str]:
    """Return the digest of the removal list of one's own that is called so."""
    path = list and config["unlearning"]["lists"][list]
    return contents([path] if path else [])


class Unlearn(Started, Cell):
    """The same for every selector and budget."""

    unlearner: str
    kind: str = setting("unlearners.{unlearner}.kind")
    settings: dict[str, Any] = setting(unlearner_settings)
    training: UnlearnTraining = setting("unlearners.{unlearner}.training")
    questions: Questions | None = setting(asking, default=None)
    inputs: dict[str, str] = setting(list_contents, default_factory=dict)
    code: str = setting(code_with("unlearner"), default="")


class UnlearnFiles(_asking.AnswerFiles, _models.TrainingFiles, _models.ModelFiles):
    removal: Path | None = reads(
        "what to unlearn: a removals table, or a table or text file of ids; default: all",
        default=None,
    )
    perplexity: Path = writes("perplexity table to write")
    tensors: Path | None = writes("unlearned tensors to write", default=None)


def unlearn(files: UnlearnFiles, settings: Unlearn, job: Job) -> None:
    """Unlearn the texts of a removal list from a trained model, measure and ask it."""
    from mamushi.io import schemas
    from mamushi.io.provenance import fingerprint
    from mamushi.io.tables import EVALUATION, FORGET, INFERENCE, RETAIN, write_table
    from mamushi.lm.loading import open_tokenizer
    from mamushi.lm.parameters import count
    from mamushi.lm.perplexity import perplexity_table, require_domains, text_nll
    from mamushi.lm.storage import save_trained
    from mamushi.lm.tokens import read_tokens
    from mamushi.unlearning.loop import Outcome, steps_of, unlearn
    from mamushi.unlearning.trunk import starting_from

    held_out = read_tokens(files.tokens, files.examples, EVALUATION, settings.evaluation.max_length)
    require_domains(held_out)
    ranked = (files.tokens, files.examples, INFERENCE, settings.max_length)
    forget, retain = (read_tokens(*ranked, domains=[each]) for each in (FORGET, RETAIN))
    selected = _selected(forget, files.removal, files.examples)
    tokenizer = open_tokenizer(files.model_card)
    model, accelerator = _models.opened(files, settings.start, settings, settings.seed)
    trunk = _trunk(files, settings, job, model, accelerator, [forget, retain, held_out])
    outcome = Outcome({name: [] for name in schemas.UNLEARN_LOG.schema.names}, None, None)
    if len(selected):
        outcome = unlearn(
            *(model, selected, retain, asdict(settings), asdict(job.execution)),
            total=steps_of(len(selected), len(forget), asdict(settings.training)),
            seed=settings.seed,
            accelerator=accelerator,
            special=frozenset(tokenizer.all_special_ids),
            vocabulary=tokenizer.get_vocab().values(),
            trunk=trunk,
            state=files.state,
            fingerprint=fingerprint(job.origin),
        )
    with starting_from(trunk, model):
        nll = text_nll(model, held_out, job.execution.batch_tokens, accelerator)
    lower = f"lower unlearners.{settings.unlearner}.learning_rate"
    table = perplexity_table(nll, held_out.domains, lower)
    if files.tensors:
        save_trained(files.tensors, model, job.origin)
    trained = count(model).trained
    subject = _asking.subject(files, model, accelerator, job, trunk)
    _asking.write(files, _asking.answers(subject, settings.questions), accelerator, job)
    if not accelerator.is_main_process:
        return
    write_table(files.perplexity, schemas.PERPLEXITY, table, metadata=job.origin)
    counts = {
        "texts": len(forget),
        "removed": len(selected),
        "steps": outcome.steps,
        "stopped_at": outcome.stopped_at,
        "masked": outcome.masked,
        "trained_parameters": trained,
    }
    files.record(schemas.UNLEARN_LOG, outcome.log, counts, job)
    files.state.unlink(missing_ok=True)


def _selected(forget: TokenSet, removal: Path | None, examples: Path) -> TokenSet:
    """Return the forget texts of the removal list in the order of the table, or all of them.

    So a list of all is the same whoever sorted it, and equal to no list. A budget that is less than
    one text has an empty list, with which the model stays as it is; an empty list of one's own is a
    mistake.
    """
    import numpy as np

    from mamushi.errors import UserError
    from mamushi.io import schemas
    from mamushi.io.tables import read_groups, read_table
    from mamushi.lm.tokens import subset
    from mamushi.selection.removals import text_digests
    from mamushi.unlearning.removal import chosen_rows, read_ids, texts_of

    if removal is None:
        return forget
    with contextlib.suppress(UserError):
        if not len(read_table(removal, schemas.REMOVALS, ["id"])):
            return subset(forget, np.array([], dtype=np.int64))
    ids = read_ids(removal)
    rows = chosen_rows(forget.ids, ids, removal)
    if known := texts_of(removal):
        parts = read_groups(examples, schemas.EXAMPLES, ["id", "text"])
        for name, text in zip(ids, text_digests(parts, ids), strict=True):
            if known[name] != text:
                what = f"its text {name!r} is another one than in {examples}"
                raise UserError(what, where=removal, do="give a list of this dataset")
    return subset(forget, rows)


def _trunk(
    files: UnlearnFiles,
    settings: Unlearn,
    job: Job,
    model: PreTrainedModel,
    accelerator: Accelerator,
    texts: Sequence[TokenSet],
) -> Trunk | None:
    """Return the start model's trunk, which all jobs share that start there."""
    if settings.method != "partial":
        return None
    keys = ("start", "trained_blocks", "max_length", "evaluation")
    about = {
        **job.origin,
        "settings": {key: job.origin["settings"][key] for key in keys},
        "inputs": {k: v for k, v in job.origin["inputs"].items() if k != "removal"},
    }
    given = (model, settings.trained_blocks, texts, accelerator, job)
    return _models.cached_trunk(files.trunk, about, *given)
