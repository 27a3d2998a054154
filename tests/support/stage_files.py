"""What the stages that train read: a base model with its card, examples, and their tokens."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedModel

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import write_json
from mamushi.io.tables import read_table, write_table
from mamushi.lm import loading, parameters, storage, tiny
from mamushi.lm.tokens import write_tokens
from mamushi.registry import plugin
from mamushi.running.stage import stages
from mamushi.selection.removals import text_digests
from tests.support.models import SIZES, TRAINING, training_of
from tests.support.score_files import unknown_texts
from tests.support.unlearning import LOOP

FILES = {
    "examples": "examples.parquet",
    "tokens": "tokens.parquet",
    "model-card": "card.json",
    "trained": "start.safetensors",
}
EXECUTION = {"micro_batch_size": 8, "batch_tokens": 64, "checkpoint_seconds": 0.0}
FORGET, RETAIN = 9, 12
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "the", "dog", "run", "far"]


def examples() -> dict[str, Any]:
    """Texts of both sections and domains, of two to nine words, the domains mixed."""
    rng = np.random.default_rng(0)
    rows = [
        (f"{section[0]}{domain[0]}{number}", domain, section)
        for section, counts in (("inference", (FORGET, RETAIN)), ("evaluation", (4, 4)))
        for domain, count in zip(("forget", "retain"), counts, strict=True)
        for number in range(count)
    ]
    rng.shuffle(rows)
    ids, domains, sections = zip(*rows, strict=True)
    texts = [" ".join(rng.choice(WORDS, rng.integers(2, 10))) for _ in rows]
    return {
        "id": list(ids),
        "text": texts,
        "domain": list(domains),
        "section": list(sections),
        "log_density_ratio": pa.nulls(len(rows), pa.float64()),
        "group": pa.nulls(len(rows), pa.string()),
    }


def write_base(root: Path, model: PreTrainedModel | None = None) -> None:
    """A base model, or this one, with its card, examples and tokens."""
    built, tokenizer = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], 0)
    (model or built).save_pretrained(root / "base")
    tokenizer.save_pretrained(root / "base")
    card = loading.inspect("mine", str(root / "base"), revision=None, contaminated=False)
    write_json(root / "card.json", card)
    write_table(root / "examples.parquet", schemas.EXAMPLES, examples())
    tokenize(root)


def tokenize(root: Path) -> None:
    """Write the tokens of the examples."""
    write_tokens(
        root / "tokens.parquet",
        read_table(root / "examples.parquet", schemas.EXAMPLES),
        loading.open_tokenizer(root / "card.json"),
        max_length=16,
        vocabulary_size=SIZES["vocabulary_size"],
        provenance={},
    )


def write_start(root: Path) -> None:
    """The same, and tensors of a start model."""
    write_base(root)
    other, _ = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], 1)
    parameters.freeze(other, training_of({}))
    storage.save_trained(root / "start.safetensors", other, {})


def command(stage: str, settings: Mapping[str, Any], **files: Any) -> list[str]:
    """The command of a stage. A file of None is named without a value, as by a rule without it."""
    line = [stage, f"--settings={json.dumps(settings)}"]
    if stages()[stage].is_on_gpu:
        line.append(f"--execution={json.dumps(EXECUTION)}")
    for name, value in files.items():
        values = value if isinstance(value, list) else [] if value is None else [value]
        line += [f"--{name.replace('_', '-')}", *map(str, values)]
    return line


def opened(card: Path, *stored: Path) -> PreTrainedModel:
    """The model of a card with these trained tensors in it."""
    model = loading.open_model(card)
    for path in stored:
        storage.overlay(path, model)
    return model


def texts_of(root: Path) -> dict[str, Path]:
    """The files of ``write_base`` that every stage reads which opens a model with texts."""
    return {
        "examples": root / "examples.parquet",
        "tokens": root / "tokens.parquet",
        "model_card": root / "card.json",
    }


def trained_files(out: Path) -> dict[str, Path]:
    """Where the stages ``finetune`` and ``unlearn`` write in the folder ``out``."""
    names = {"tensors": "trained.safetensors", "log_table": "log.parquet", "card": "card.json"}
    return {option: out / name for option, name in names.items()}


def finetuning(**changes: Any) -> dict[str, Any]:
    """Settings of the stage ``finetune`` for a retrained model, with ``changes``."""
    return {
        **{"dataset": "d", "model": "m", "seed": 0, "role": "retrained", "section": "inference"},
        **{"domains": ["forget", "retain"], "training": TRAINING},
        **changes,
    }


def unlearning(kind: str = "neggrad_plus", **changes: Any) -> dict[str, Any]:
    """Settings of the stage ``unlearn``, with ``changes``; it does not stop early."""
    settings = plugin("unlearner", kind).defaults | {"learning_rate": 1e-3}
    if "stop_forget_loss" in settings:
        settings["stop_forget_loss"] = None
    return {
        **{"dataset": "d", "model": "m", "seed": 0, "unlearner": f"my_{kind}", "kind": kind},
        **{"settings": settings, "training": LOOP, "trained_blocks": 2, "max_length": 12},
        **{"precision": "fp32", "inputs": {}},
        "evaluation": {"max_length": 16},
        **changes,
    }


def unlearn_words(made: Path, out: Path, settings: dict[str, Any], **options: Any) -> list[str]:
    """The command of the stage ``unlearn``, from what ``write_start`` has made; its outputs are in
    ``out``."""
    files = {**texts_of(made), "trained": made / "start.safetensors", **trained_files(out)}
    return command("unlearn", settings, **{**files, **options})


def measure(made: Path, out: Path, settings: Any = None, **tensors: Path) -> list[float]:
    """The perplexities of a model that the stage ``evaluate`` writes into ``out``: ``settings`` say
    how it is opened, and ``tensors`` are its ``trained`` and ``unlearned`` ones."""
    how = {"precision": "fp32", **(settings or {}), "evaluation": {"max_length": 16}}
    written = {"out": out / "perplexity.parquet", "nll": out / "nll.parquet"}
    assert main(command("evaluate", how, **texts_of(made), **tensors, **written)) == 0
    table = read_table(written["out"], schemas.PERPLEXITY)
    perplexities: list[float] = table["perplexity"].to_pylist()
    return perplexities


def measuring(out: Path) -> dict[str, Any]:
    """Options with which the job of a training measures its model as ``measure`` does."""
    how = {"precision": "fp32", "evaluation": {"max_length": 16}}
    files = {name: out / f"own-{name}.parquet" for name in ("perplexity", "nll")}
    return {"evaluation": json.dumps(how), **files}


def listed(path: Path, root: Path, ids: Sequence[str]) -> Path:
    """A removal list of these texts of ``write_base``, as a selector's: by score."""
    columns = {
        "id": pa.array(ids, pa.string()),
        "rank": pa.array(range(1, len(ids) + 1), pa.int64()),
        "score": pa.array([-float(rank) for rank in range(len(ids))], pa.float64()),
        **unknown_texts(len(ids)),
        "text_sha256": pa.array(text_digests(root / "examples.parquet", ids), pa.string()),
    }
    write_table(path, schemas.REMOVALS, columns)
    return path
