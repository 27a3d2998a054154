"""Build a tiny model with a real architecture, give it a tokenizer and pretrain it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, Settings

GPU = True


class BaseModel(Settings):
    """Settings of the stage ``base_model``: the tiny model's definition."""

    name: str
    sizes: dict[str, Any]
    pretraining: dict[str, Any]


def settings(config: Config, model: str) -> BaseModel:
    definition = dict(config["models"][model])
    pretraining = definition.pop("pretraining")
    sizes = {k: v for k, v in definition.items() if k not in ("training", "contaminated", "base")}
    return BaseModel(name=model, sizes=sizes, pretraining=pretraining, code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: list[Path] = reads("examples of the datasets that it is pretrained on")
    out: Path = writes("the model's folder")


def run(files: Files, settings: BaseModel, job: Job) -> None:
    """Write the model's files, its ``train_log.parquet`` and, when all are there, its card."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.artifacts import schemas
    from mamushi.artifacts.files import write_json
    from mamushi.artifacts.tables import read_table, write_table
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
