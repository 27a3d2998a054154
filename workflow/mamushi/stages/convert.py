"""Make a model's folder of a GGUF file: its weights as plain numbers, its tokenizer, its card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.sources import contents
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, Settings


class Convert(Settings):
    """Settings of the stage ``convert``: the model of a GGUF file."""

    name: str
    contaminated: bool
    inputs: dict[str, str]


def settings(config: Config, model: str) -> Convert:
    definition = config["models"][model]
    return Convert(
        name=model,
        contaminated=definition["contaminated"],
        inputs=contents([definition["source"]]),
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    gguf: Path = reads("the GGUF file")
    out: Path = writes("the model's folder")


def run(files: Files, settings: Convert, job: Job) -> None:
    """Write the model's files and, when all are there, its card, which says under ``gguf`` what it
    was made from."""
    from mamushi.artifacts.files import write_json
    from mamushi.lm import dequantize, loading

    model, tokenizer, about = dequantize.open_gguf(files.gguf)
    card = loading.save_base(
        files.out, settings.name, model, tokenizer, contaminated=settings.contaminated
    )
    write_json(files.out / "card.json", {**card, "gguf": about, "provenance": job.origin})
