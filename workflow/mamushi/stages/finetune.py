"""Fine-tune a base model on a section's texts, less those of a removal list.

Serves contaminated, gold and beta 0, which keep their trained tensors (``--tensors``), and the
retraining at a budget, which is measured in the same process (``--perplexity``) and as a rule keeps
nothing but the measurement.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from mamushi.cli import execution, settings


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", required=True, type=Path, help="examples table")
    parser.add_argument("--tokens", required=True, type=Path, help="token cache of the model")
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--removal", nargs="?", type=Path, help="removals table: ids to leave out")
    parser.add_argument("--log-table", required=True, type=Path, help="step log to write")
    parser.add_argument("--card", required=True, type=Path, help="card to write")
    parser.add_argument("--tensors", nargs="?", type=Path, help="trained tensors to write")
    parser.add_argument("--perplexity", nargs="?", type=Path, help="perplexity table to write")
    parser.add_argument("--state", required=True, type=Path, help="checkpoint to resume from")
    execution(parser)
    parser.add_argument(
        "--settings",
        required=True,
        type=settings,
        help="JSON: dataset, model, seed, role, section, domains, training, evaluation",
    )


def run(args: argparse.Namespace) -> None:
    from mamushi.artifacts import EVALUATION, read_table, write_table
    from mamushi.files import write_json
    from mamushi.lm import device
    from mamushi.lm.batches import steps
    from mamushi.lm.finetune import finetune
    from mamushi.lm.loading import open_model, save_trained
    from mamushi.lm.parameters import freeze
    from mamushi.lm.perplexity import perplexity_table, text_nll
    from mamushi.lm.tokens import read_tokens
    from mamushi.provenance import provenance

    chosen, training = args.settings, args.settings["training"]
    removed = read_table(args.removal, "removals")["id"].to_pylist() if args.removal else []
    source = (args.tokens, args.examples)
    wanted = (*source, chosen["section"], training["max_length"])
    texts = read_tokens(*wanted, domains=chosen["domains"], without=removed)
    # The step-matched arm gives every budget the updates that the whole section would get.
    counted = len(texts) + (len(removed) if training["steps"] == "matched" else 0)
    total = steps(counted, training["batch_size"], training["epochs"])

    inputs: dict[str, Path] = {
        "examples": args.examples,
        "tokens": args.tokens,
        "model_card": args.model_card,
    }
    if args.removal:
        inputs["removal"] = args.removal
    origin = provenance(chosen, **inputs)

    device.reproducible(chosen["seed"])
    accelerator = device.accelerator(training["precision"])
    model = open_model(args.model_card)
    freeze(model, training)
    device.place(model, training["precision"], accelerator.device)
    log = finetune(
        model,
        texts,
        training | args.execution,
        total=total,
        seed=chosen["seed"],
        accelerator=accelerator,
        what=chosen["role"],
        state=args.state,
        fingerprint=_fingerprint(origin),
    )
    if not accelerator.is_main_process:
        return
    if args.perplexity:
        held_out = read_tokens(*source, EVALUATION, chosen["evaluation"]["max_length"])
        nll = text_nll(model, held_out, args.execution["batch_tokens"], accelerator)
        table = perplexity_table(nll, held_out.domains)
        write_table(args.perplexity, "perplexity", table, metadata=origin)
    if args.tensors:
        save_trained(args.tensors, model, origin)
    write_table(args.log_table, "train_log", log.columns, metadata=origin)
    trained = [p for p in model.parameters() if p.requires_grad]
    write_json(
        args.card,
        origin
        | {
            "texts": len(texts),
            "removed": len(removed),
            "steps": total,
            "trained_parameters": sum(p.numel() for p in trained),
            "trained_tensors": len(trained),
        },
    )
    # Last, so that a kill before this line still finds the finished state to go on from.
    args.state.unlink(missing_ok=True)


def _fingerprint(origin: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
