"""Models that are trained, and the perplexity of those that are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mamushi.config.models import Training
from mamushi.config.sections import HeldOut
from mamushi.errors import UserError
from mamushi.io.domains import CONTAMINATION, FORGET, INFERENCE, RETAIN
from mamushi.running import launch
from mamushi.running.stage import Files, Job, reads, writes
from mamushi.stages import _asking, _models
from mamushi.stages._settings import (
    Cell,
    Config,
    Opened,
    Questions,
    Settings,
    Trains,
    asking,
    setting,
)

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi.lm.training import TrainLog
    from mamushi.unlearning.trunk import Trunk

FindTrunk = Callable[["PreTrainedModel", "Accelerator"], "Trunk | None"]

GPU = True
ENTERS = ("trained_blocks", "max_length", "precision")
"""What of a training decides what enters its blocks."""


def sizes_of(config: Config, model: str) -> dict[str, Any]:
    """Return what a tiny model is built of."""
    others = ("training", "contaminated", "base", "pretraining")
    return {k: v for k, v in config["models"][model].items() if k not in others}


class BaseModel(Settings):
    """The tiny model's definition."""

    name: str = setting(lambda model: model)
    sizes: dict[str, Any] = setting(sizes_of)
    pretraining: dict[str, Any] = setting("models.{model}.pretraining")


class BaseModelFiles(Files):
    examples: list[Path] = reads("examples of the datasets that it is pretrained on")
    out: Path = writes("the model's folder")


def base_model(files: BaseModelFiles, settings: BaseModel, job: Job) -> None:
    """Build a tiny model with a real architecture, give it a tokenizer and pretrain it.

    Writes the model's files, its ``train_log.parquet`` and, when all are there, its card.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.io import schemas
    from mamushi.io.files import write_json
    from mamushi.io.tables import read_table, write_table
    from mamushi.lm import device, loading, tiny

    training = settings.pretraining
    where = f"models.{settings.name}.max_positions"
    loading.check_length(training["max_length"], settings.sizes["max_positions"], where)
    texts: list[str] = []
    for path in files.examples:
        table = read_table(path, schemas.EXAMPLES, ["text", "domain", "section"])
        kept = pc.and_(
            pc.equal(table["section"], training["section"]),
            pc.is_in(table["domain"], value_set=pa.array(training["domains"], pa.string())),
        )
        texts.extend(table["text"].filter(kept).to_pylist())
    if not texts:
        raise UserError(
            f"no texts of {' or '.join(training['domains'])} in the {training['section']} section",
            where=", ".join(map(str, files.examples)),
            do="name other datasets in pretraining.datasets",
        )
    model, tokenizer = tiny.build(settings.sizes, texts, training["seed"])
    device.reproducible(training["seed"])
    model.to(device.accelerator("fp32").device)
    log = tiny.pretrain(model, tokenizer, texts, training, training["seed"])
    model.to("cpu")

    card = loading.save_base(files.out, settings.name, model, tokenizer, contaminated=False)
    write_table(files.out / "train_log.parquet", schemas.TRAIN_LOG, log)
    write_json(files.out / "card.json", {**card, "provenance": job.origin})


def trained_as(config: Config, model: str, role: str) -> Any:
    """Return how an endpoint, or a retrained model, is trained. Matched to the steps of beta 0 or
    not is the same for contaminated and beta 0."""
    training = msgspec.convert(config["models"][model]["training"], Training)
    return training if role in ("gold", "retrained") else replace(training, steps="by_data")


class FineTune(Cell):
    """What an endpoint is trained on: contaminated, gold or beta 0."""

    role: str
    section: str = setting(lambda role: CONTAMINATION if role == "contaminated" else INFERENCE)
    domains: list[str] = setting(lambda role: [RETAIN] if role == "gold" else [FORGET, RETAIN])
    training: Training = setting(trained_as)


def trained_on(
    texts: TokenSet,
    model_card: Path,
    training: Training,
    job: Job,
    *,
    seed: int,
    trunk: FindTrunk = lambda model, accelerator: None,
    **how: Any,
) -> tuple[PreTrainedModel, Accelerator, TrainLog]:
    """Return a fresh base model, fine-tuned on the texts; ``how`` is ``finetune``'s."""
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.training import finetune
    from mamushi.unlearning.trunk import starting_from

    device.reproducible(seed)
    accelerator = device.accelerator(training.precision)
    model = open_placed(model_card, None, asdict(training), training.precision, accelerator)
    given = asdict(training) | asdict(job.execution)
    with starting_from(trunk(model, accelerator), model):
        log = finetune(model, texts, given, seed=seed, accelerator=accelerator, **how)
    return model, accelerator, log


def trunk_of(files: _models.TrainingFiles, settings: FineTune, job: Job) -> FindTrunk:
    """Return how the base model's trunk is found, which all seeds and lists share: it is there
    where neither its blocks nor what enters them is trained, for the texts of the inference
    section and the held-out ones."""

    def find(model: PreTrainedModel, accelerator: Accelerator) -> Trunk | None:
        from mamushi.io.tables import EVALUATION
        from mamushi.lm.tokens import read_tokens

        training = settings.training
        # A tied head is the embedding under another name.
        moves = model.get_input_embeddings().weight.requires_grad
        if settings.section != INFERENCE or training.method != "partial" or moves:
            return None
        # Cut as the training cuts them; longer held-out texts are read from the start.
        texts = [
            read_tokens(files.tokens, files.examples, section, training.max_length)
            for section in (INFERENCE, EVALUATION)
        ]
        inputs = ("examples", "tokens", "model_card")
        about = {
            "training": {key: asdict(training)[key] for key in ENTERS},
            "inputs": {key: job.origin["inputs"].get(key) for key in inputs},
        }
        given = (model, training.trained_blocks, texts, accelerator, job)
        return _models.cached_trunk(files.trunk, about, *given)

    return find


def fine_tuned(
    files: _models.TrainingFiles,
    settings: FineTune,
    job: Job,
    removed: Sequence[str] = (),
    edit: Callable[[TokenSet], TokenSet] | None = None,
) -> tuple[PreTrainedModel, Accelerator]:
    """Return a fresh base model, fine-tuned on the section's texts but for ``removed``, or after
    ``edit``.

    Writes the step log and the card; a killed run of the same origin goes on from its state.
    """
    import numpy as np

    from mamushi.io import schemas
    from mamushi.io.provenance import fingerprint
    from mamushi.lm.batches import steps
    from mamushi.lm.tokens import mass, read_tokens, subset

    training = settings.training
    wanted = (files.tokens, files.examples, settings.section, training.max_length)
    texts = read_tokens(*wanted, domains=settings.domains, without=removed)
    section = read_tokens(*wanted)
    kept = np.fromiter(map(set(texts.ids).__contains__, section.ids), bool, len(section))
    weight: float | None = None
    if edit is not None:
        edited = edit(section)
        kept = mass(edited) > 0
        texts = subset(edited, np.flatnonzero(kept))
        # Weights are fp32: what should be a whole number must not lose a step by its last digit.
        weight = round(float(mass(texts).sum()), 3)
    # Matched or aligned, every budget, gold at 1 too, gets the updates that beta 0 gets.
    counted = (weight or len(texts)) if training.steps == "by_data" else len(section)
    total = steps(counted, training.batch_size, training.epochs)

    model, accelerator, log = trained_on(
        texts,
        files.model_card,
        training,
        job,
        total=total,
        seed=settings.seed,
        trunk=trunk_of(files, settings, job),
        what=settings.role,
        state=files.state,
        fingerprint=fingerprint(job.origin),
        kept=kept,
    )
    if accelerator.is_main_process:
        changed = [p for p in model.parameters() if p.requires_grad]
        counts = {
            "texts": len(texts),
            "removed": len(removed),
            "steps": total,
            "trained_parameters": sum(p.numel() for p in changed),
            "trained_tensors": len(changed),
            **({} if weight is None else {"mass": weight}),
        }
        files.record(schemas.TRAIN_LOG, log.columns, counts, job)
    return model, accelerator


class FineTuneFiles(_models.TrainingFiles):
    tensors: Path = writes("trained tensors to write")


def finetune(files: FineTuneFiles, settings: FineTune, job: Job) -> None:
    """Fine-tune a base model on a section's texts and keep it: contaminated, gold and beta 0."""
    from mamushi.lm.storage import save_trained

    model, accelerator = fine_tuned(files, settings, job)
    save_trained(files.tensors, model, job.origin)
    if accelerator.is_main_process:
        # Last, so that a kill before this line still finds the state to go on from.
        files.state.unlink(missing_ok=True)


class Retrain(FineTune):
    """As beta 0 but for the removal list, and measured."""

    evaluation: HeldOut = setting("evaluation")
    questions: Questions | None = setting(asking, default=None)


class RetrainFiles(_asking.AnswerFiles, _models.TrainingFiles):
    removal: Path | None = reads("removals table", default=None)
    spans: Path | None = reads("spans to leave out of the loss, in its place", default=None)
    perplexity: Path = writes("perplexity table to write")
    nll: Path = writes("table of every text's NLL to write")
    tensors: Path | None = writes("trained tensors to write", default=None)


def retrain(files: RetrainFiles, settings: Retrain, job: Job) -> None:
    """Fine-tune a base model without the examples of a removal list, and measure it.

    Both in one process: loading the base model once more and passing billions of trained weights
    through a file would cost more than the measurement. The weights are kept only when asked for.
    In the place of a list there can be spans to leave out of the loss.
    """
    from mamushi.io import schemas
    from mamushi.io.tables import EVALUATION, write_table
    from mamushi.lm.perplexity import nll_table, perplexity_table, require_domains, text_nll
    from mamushi.lm.sharding import active
    from mamushi.lm.storage import save_trained
    from mamushi.lm.tokens import read_tokens
    from mamushi.unlearning.trunk import starting_from

    length = settings.evaluation.max_length
    held_out = read_tokens(files.tokens, files.examples, EVALUATION, length)
    require_domains(held_out)
    if (files.removal is None) == (files.spans is None):
        raise UserError("gives both a list and spans, or neither", where="--spans", do="give one")
    model, accelerator = fine_tuned(files, settings, job, _removed(files), _edit(files))
    short = settings.evaluation.max_length <= settings.training.max_length
    trunk = trunk_of(files, settings, job)(model, accelerator) if short else None
    with starting_from(trunk, model):
        nll = text_nll(model, held_out, job.execution.batch_tokens, accelerator)
    table = perplexity_table(nll, held_out.domains)
    # What is asked by training further opens the model with other gradients.
    reopened = settings.questions is not None and settings.questions.relearn is not None
    beside = files.card.with_name(f"{files.card.name}.trained")
    tensors = files.tensors or (beside if reopened else None)
    if tensors:
        save_trained(tensors, model, job.origin)

    def open_to_train(trains: Trains, seed: int) -> PreTrainedModel:
        if active(accelerator):
            accelerator.wait_for_everyone()
        kept = _models.ModelFiles(model_card=files.model_card, trained=tensors)
        how = Opened(training=settings.training, precision=settings.training.precision)
        return _models.opened(kept, how, trains, seed)[0]

    subject = _asking.subject(files, model, accelerator, job)
    subject.open_to_train = open_to_train
    del model
    _asking.write(files, _asking.answers(subject, settings.questions), accelerator, job)
    if accelerator.is_main_process:
        write_table(files.nll, schemas.NLL, nll_table(nll, held_out.ids), metadata=job.origin)
        write_table(files.perplexity, schemas.PERPLEXITY, table, metadata=job.origin)
        beside.unlink(missing_ok=True)
        files.state.unlink(missing_ok=True)


def _removed(files: RetrainFiles) -> list[str]:
    from mamushi.io import schemas
    from mamushi.io.tables import read_table

    if files.removal is None:
        return []
    ids: list[str] = read_table(files.removal, schemas.REMOVALS, ["id"])["id"].to_pylist()
    return ids


def _edit(files: RetrainFiles) -> Callable[[TokenSet], TokenSet] | None:
    """Return what is done to the texts where they are not removed."""
    from mamushi.io import schemas
    from mamushi.io.tables import read_table
    from mamushi.lm import tokens

    if not files.spans:
        return None
    spans: dict[str, list[tuple[int, int]]] = {}
    for row in read_table(files.spans, schemas.SPANS).to_pylist():
        spans.setdefault(row["id"], []).append((row["start"], row["stop"]))
    return lambda texts: tokens.masked(texts, spans)


class Evaluate(Opened, Settings):
    """How the model is opened and measured."""

    evaluation: HeldOut = setting("evaluation")


class EvaluateFiles(_models.TextFiles, _models.ModelFiles):
    out: Path = writes("perplexity table to write")
    nll: Path = writes("table of every text's NLL to write")


def evaluate(files: EvaluateFiles, settings: Evaluate, job: Job) -> None:
    """Measure a kept model (base, contaminated, gold, beta 0) on the held-out sets."""
    from mamushi.io import schemas
    from mamushi.io.tables import EVALUATION, write_table
    from mamushi.lm.perplexity import nll_table, perplexity_table, require_domains, text_nll
    from mamushi.lm.tokens import read_tokens

    texts = read_tokens(files.tokens, files.examples, EVALUATION, settings.evaluation.max_length)
    require_domains(texts)
    model, accelerator = _models.opened(files, settings)
    nll = text_nll(model, texts, job.execution.batch_tokens, accelerator)
    table = perplexity_table(nll, texts.domains)
    if not launch.is_secondary():
        write_table(files.out, schemas.PERPLEXITY, table, metadata=job.origin)
        write_table(files.nll, schemas.NLL, nll_table(nll, texts.ids), metadata=job.origin)
