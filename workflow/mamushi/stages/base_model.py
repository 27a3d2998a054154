"""Build a tiny model with a real architecture, give it a tokenizer and pretrain it."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from mamushi.cli import settings

WRITES = ("out",)
READS = ("examples",)
GPU = True


def arguments(parser: argparse.ArgumentParser) -> None:
    """Paths, and the settings: ``name``, the sizes of ``tiny.build``, and ``pretraining`` (those of
    ``tiny.pretrain`` with ``section``, ``domains`` and ``seed``)."""
    parser.add_argument("--examples", type=Path, nargs="+", required=True, metavar="PARQUET")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--settings", type=settings, required=True, metavar="JSON")


def run(args: argparse.Namespace) -> None:
    """Write the model's files, its ``train_log.parquet`` and, when all are there, its card."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.artifacts.files import atomic, write_json
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.errors import UserError
    from mamushi.lm import device, loading, tiny

    given = args.settings
    training = given["pretraining"]
    where = f"models.{given['name']}.max_positions"
    loading.check_length(training["max_length"], given["max_positions"], where)
    texts: list[str] = []
    for path in args.examples:
        table = read_table(path, "examples", ["text", "domain", "section"])
        kept = pc.and_(
            pc.equal(table["section"], training["section"]),
            pc.is_in(table["domain"], value_set=pa.array(training["domains"], pa.string())),
        )
        texts.extend(table["text"].filter(kept).to_pylist())
    if not texts:
        raise UserError(
            f"no texts of {' or '.join(training['domains'])} in the {training['section']} section",
            where=", ".join(map(str, args.examples)),
            do="name other datasets in pretraining.datasets",
        )
    model, tokenizer = tiny.build(given, texts, training["seed"])
    device.reproducible(training["seed"])
    model.to(device.accelerator("fp32").device)
    log = tiny.pretrain(model, tokenizer, texts, training, training["seed"])
    model.to("cpu")

    card_path = args.out / "card.json"
    args.out.mkdir(parents=True, exist_ok=True)
    # A card is the word that the folder is complete: it goes first and comes last.
    card_path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as made:
        with loading.writing_safetensors():
            model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        card = loading.inspect(
            given["name"],
            made,
            revision=None,
            trust_remote_code=False,
            contaminated=False,
        )
        for path in sorted(Path(made).iterdir()):
            with atomic(args.out / path.name) as part:
                shutil.copyfile(path, part)
    write_table(args.out / "train_log.parquet", "train_log", log)
    inputs = {f"examples_{number}": path for number, path in enumerate(args.examples)}
    write_json(card_path, {**card, "source": ".", "provenance": provenance(given, **inputs)})
