"""What the stages that train read: a base model with its card, examples, and their tokens."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import write_json
from mamushi.io.tables import read_table, write_table
from mamushi.lm import loading, parameters, storage, tiny
from mamushi.lm.tokens import write_tokens
from mamushi.registry import plugin
from tests.support.models import PARTS, SIZES
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


def write_examples(path: Path, texts: Sequence[str], sections: Sequence[str]) -> None:
    """Write texts t0, t1, ... of both domains by turns as the table of a dataset's examples."""
    count = len(texts)
    columns = {
        "id": [f"t{i}" for i in range(count)],
        "text": texts,
        "domain": [("forget", "retain")[i % 2] for i in range(count)],
        "section": sections,
        "log_density_ratio": pa.nulls(count, pa.float64()),
        "group": pa.nulls(count, pa.string()),
    }
    write_table(path, schemas.EXAMPLES, columns)


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command ends that cannot do what it is asked."""
    capsys.readouterr()
    assert main(words) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("mamushi")]
    assert len(said) == 1
    return said[0]


def write_base(root: Path) -> None:
    """A base model with its card, examples and tokens."""
    built, tokenizer = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], 0)
    built.save_pretrained(root / "base")
    tokenizer.save_pretrained(root / "base")
    card = loading.inspect("mine", str(root / "base"), revision=None, contaminated=False)
    write_json(root / "card.json", card)
    write_table(root / "examples.parquet", schemas.EXAMPLES, examples())
    write_tokens(
        root / "tokens.parquet",
        read_table(root / "examples.parquet", schemas.EXAMPLES),
        tokenizer,
        max_length=16,
        vocabulary_size=SIZES["vocabulary_size"],
        provenance={},
    )


def write_start(root: Path) -> None:
    """The same, and tensors of a start model."""
    write_base(root)
    other, _ = tiny.build({"family": "llama", **SIZES}, [" ".join(WORDS)], 1)
    parameters.freeze(other, PARTS)
    storage.save_trained(root / "start.safetensors", other, {})


def unlearning(kind: str = "neggrad_plus", **changes: Any) -> dict[str, Any]:
    """Settings of the stage ``unlearn``, with ``changes``; it does not stop early."""
    settings = plugin("unlearner", kind).defaults | {"learning_rate": 1e-3}
    if "stop_forget_loss" in settings:
        settings["stop_forget_loss"] = None
    return {
        **{"dataset": "d", "model": "m", "seed": 0, "unlearner": f"my_{kind}", "kind": kind},
        **{"settings": settings, "training": LOOP, "trained_blocks": 2, "max_length": 12},
        **{"start": {"training": PARTS, "precision": "fp32"}, "evaluation": {"max_length": 16}},
        "code": "c",
        **changes,
    }


def unlearn_words(made: Path, out: Path, settings: dict[str, Any], **options: Any) -> list[str]:
    """The command of the stage ``unlearn``, from what ``write_start`` has made; its outputs are in
    ``out``, beside more of them in ``options``."""
    written = {"perplexity": "perplexity.parquet", "log-table": "log.parquet", "card": "card.json"}
    words = [f"--{key}={made / name}" for key, name in FILES.items()]
    words += [f"--{key}={out / name}" for key, name in written.items()]
    words += [f"--{key}={value}" for key, value in options.items()]
    words += [f"--execution={json.dumps(EXECUTION)}", f"--settings={json.dumps(settings)}"]
    return ["unlearn", *words]
