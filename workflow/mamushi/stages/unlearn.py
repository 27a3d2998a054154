"""Unlearn the texts of a removal list from a trained model, and measure it.

Both in one process, as for retraining; and so are the probes, what the model says and how fast it
relearns, because the weights are kept only when asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.cli import execution, settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.trunk import Trunk

    Feed = Callable[[NDArray[np.int64]], None]

WRITES = ("perplexity", "log_table", "card", "tensors", "continuations", "relearning")
READS = ("examples", "tokens", "model_card", "trained", "removal")
GPU = True

CHOSEN = (
    "dataset, model, seed, unlearner, kind, settings, training, start, trained_blocks, max_length, "
    "evaluation, probe"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", required=True, type=Path, help="examples table")
    parser.add_argument("--tokens", required=True, type=Path, help="token cache of the model")
    parser.add_argument("--model-card", required=True, type=Path, help="card of the base model")
    parser.add_argument("--trained", nargs="?", type=Path, help="tensors of the start model")
    parser.add_argument("--trunk", nargs="?", type=Path, help="file that keeps its hidden states")
    parser.add_argument(
        "--removal",
        nargs="?",
        type=Path,
        help="what to unlearn: a removals table, or a table or text file of ids; default: all",
    )
    parser.add_argument("--perplexity", required=True, type=Path, help="perplexity table to write")
    parser.add_argument("--tensors", nargs="?", type=Path, help="unlearned tensors to write")
    parser.add_argument("--log-table", required=True, type=Path, help="step log to write")
    parser.add_argument("--card", required=True, type=Path, help="card to write")
    parser.add_argument("--state", required=True, type=Path, help="checkpoint to resume from")
    parser.add_argument("--continuations", nargs="?", type=Path, help="continuations to write")
    parser.add_argument("--relearning", nargs="?", type=Path, help="relearning curve to write")
    execution(parser)
    parser.add_argument("--settings", required=True, type=settings, help=f"JSON: {CHOSEN}")


def run(args: argparse.Namespace) -> None:
    import hashlib
    import importlib
    import json

    from mamushi.artifacts.files import write_json
    from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE, RETAIN, SCHEMAS, write_table
    from mamushi.artifacts.tensors import drop_others
    from mamushi.errors import UserError
    from mamushi.lm.loading import open_tokenizer, save_trained
    from mamushi.lm.parameters import count
    from mamushi.lm.perplexity import perplexity_table, require_domains, text_nll
    from mamushi.lm.tokens import read_tokens
    from mamushi.stages._unlearning import cached_trunk, opened
    from mamushi.unlearning.loop import Outcome, steps_of, unlearn

    chosen, length = args.settings, args.settings["max_length"]
    held_out = read_tokens(
        args.tokens, args.examples, EVALUATION, chosen["evaluation"]["max_length"]
    )
    require_domains(held_out)
    forget, retain = (
        read_tokens(args.tokens, args.examples, INFERENCE, length, domains=[domain])
        for domain in (FORGET, RETAIN)
    )
    selected = _selected(forget, args.removal)
    tokenizer = open_tokenizer(args.model_card)
    origin = _origin(args)
    model, accelerator = opened(args)
    trunk = cached_trunk(args, model, accelerator, [forget, retain, held_out])
    outcome = Outcome({name: [] for name in SCHEMAS["unlearn_log"].names}, None, None)
    if len(selected):
        outcome = unlearn(
            model,
            selected,
            retain,
            chosen,
            args.execution,
            total=steps_of(len(selected), len(forget), chosen["training"]),
            seed=chosen["seed"],
            accelerator=accelerator,
            special=frozenset(tokenizer.all_special_ids),
            trunk=trunk,
            state=args.state,
            fingerprint=hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest(),
        )
    if not accelerator.is_main_process:
        return
    with _feed(model, chosen["trained_blocks"], trunk) as feed_of:
        batch = args.execution["batch_tokens"]
        nll = text_nll(model, held_out, batch, accelerator, feed=feed_of(held_out))
    try:
        table = perplexity_table(nll, held_out.domains)
    except UserError as error:
        remedy = f"lower unlearners.{chosen['unlearner']}.learning_rate"
        raise UserError(error.what, do=remedy) from error
    write_table(args.perplexity, "perplexity", table, metadata=origin)
    if args.tensors:
        save_trained(args.tensors, model, origin)
    trained = count(model).trained
    if chosen.get("probe"):
        # By name, so that a change of the probes' code runs again just what is probed.
        probing = importlib.import_module("mamushi.stages._probing")
        if args.continuations:
            probing.speak(args, model, tokenizer, accelerator, origin)
        if args.relearning:
            with _feed(model, chosen["trained_blocks"], trunk) as feed_of:
                probing.learn_again(args, model, forget, held_out, accelerator, feed_of, origin)
    write_table(args.log_table, "unlearn_log", outcome.log, metadata=origin)
    counts = {
        "texts": len(forget),
        "removed": len(selected),
        "steps": outcome.steps,
        "stopped_at": outcome.stopped_at,
        "masked": outcome.masked,
        "trained_parameters": trained,
    }
    drop_others(args.card, origin)
    write_json(args.card, origin | counts)
    args.state.unlink(missing_ok=True)


def _selected(forget: TokenSet, removal: Path | None) -> TokenSet:
    """The forget texts of the removal list in the order of the table, or all of them.

    So a list of all is the same whoever sorted it, and equal to no list. A budget that is less than
    one text has an empty list, with which the model stays as it is; an empty list of one's own is a
    mistake.
    """
    import contextlib

    import numpy as np

    from mamushi.artifacts.tables import read_table
    from mamushi.errors import UserError
    from mamushi.lm.tokens import subset
    from mamushi.unlearning.removal import chosen_rows, read_ids

    if removal is None:
        return forget
    with contextlib.suppress(UserError):
        if not len(read_table(removal, "removals", ["id"])):
            return subset(forget, np.array([], dtype=np.int64))
    return subset(forget, chosen_rows(forget.ids, read_ids(removal), removal))


def _origin(args: argparse.Namespace) -> dict[str, Any]:
    """The provenance of what is written. The trunk is none of it: the cache changes nothing."""
    from mamushi.artifacts.provenance import provenance

    inputs = {"examples": args.examples, "tokens": args.tokens, "model_card": args.model_card}
    optional = {"trained": args.trained, "removal": args.removal}
    return provenance(args.settings, **inputs, **{k: v for k, v in optional.items() if v})


@contextmanager
def _feed(
    model: PreTrainedModel, trained_blocks: int, trunk: Trunk | None
) -> Iterator[Callable[[TokenSet], Feed | None]]:
    """Within the block, the model starts from the trunk's states, if there are any, and the
    function gives the feed of a token set."""
    from mamushi.unlearning.trunk import Tail

    if trunk is None:
        yield lambda texts: None
        return
    with Tail(model, trained_blocks, trunk) as tail:
        yield lambda texts: lambda rows: tail.put(texts.ids[rows].tolist(), texts.lengths[rows])
