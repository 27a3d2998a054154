"""Fine-tune a base model without the examples of a removal list, and measure it.

Both in one process: loading the base model once more and passing billions of trained weights
through a file would cost more than the measurement. The weights are kept only when asked for.

In the place of a list there can be weights of the texts, or spans of them to leave out of the loss.

Who chose the list makes no difference: where selectors, or budgets that round to one number of
texts, remove the same texts, one fine-tune is made and the others copy what it measured. There is
no index of them that could be out of date: the cards are it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.configuration.settings import Retrain
from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _models

if TYPE_CHECKING:
    from mamushi.lm.tokens import TokenSet

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TrainingFiles):
    removal: Path = reads("removals table")
    weights: Path | None = reads("weights of the texts, in its place", default=None)
    spans: Path | None = reads("spans to leave out of the loss, in its place", default=None)
    perplexity: Path = writes("perplexity table to write")
    nll: Path = writes("table of every text's NLL to write")
    tensors: Path | None = writes("trained tensors to write", default=None)


def run(files: Files, chosen: Retrain, job: Job) -> None:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, write_table
    from mamushi.lm.perplexity import nll_table, perplexity_table, require_domains, text_nll
    from mamushi.lm.sharding import takes_part
    from mamushi.lm.storage import save_trained
    from mamushi.lm.tokens import read_tokens

    length = chosen.evaluation.max_length
    held_out = read_tokens(files.tokens, files.examples, EVALUATION, length)
    require_domains(held_out)
    removed = _removed(files)
    same = _same(job.origin, removed)
    edit = _edit(files)
    model, accelerator = _models.fine_tuned(files, chosen, job, removed, edit, same=same)
    if not takes_part(accelerator):
        return
    nll = text_nll(model, held_out, job.execution.batch_tokens, accelerator)
    table = perplexity_table(nll, held_out.domains)
    if files.tensors:
        save_trained(files.tensors, model, job.origin)
    if accelerator.is_main_process:
        write_table(files.nll, schemas.NLL, nll_table(nll, held_out.ids), metadata=job.origin)
        write_table(files.perplexity, schemas.PERPLEXITY, table, metadata=job.origin)
        files.state.unlink(missing_ok=True)


def _removed(files: Files) -> list[str]:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table

    if files.weights or files.spans:
        return []
    ids: list[str] = read_table(files.removal, schemas.REMOVALS, ["id"])["id"].to_pylist()
    return ids


def _edit(files: Files) -> Callable[[TokenSet], TokenSet] | None:
    """What is done to the texts where they are not removed."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table
    from mamushi.lm import edits

    if files.weights:
        table = read_table(files.weights, schemas.WEIGHTS)
        kept = dict(zip(table["id"].to_pylist(), table["weight"].to_pylist(), strict=True))
        return lambda texts: edits.weighed(texts, kept)
    if files.spans:
        spans: dict[str, list[tuple[int, int]]] = {}
        for row in read_table(files.spans, schemas.SPANS).to_pylist():
            spans.setdefault(row["id"], []).append((row["start"], row["stop"]))
        return lambda texts: edits.masked(texts, spans)
    return None


def _same(origin: Mapping[str, Any], removed: list[str]) -> str:
    """The identity of a fine-tune: the set of removed texts in place of the file that lists it."""
    from mamushi.artifacts.provenance import fingerprint

    inputs = {name: value for name, value in origin["inputs"].items() if name != "removal"}
    return fingerprint({**origin, "inputs": inputs, "removed": sorted(set(removed))})


@contextmanager
def shared(files: Files, chosen: Retrain, job: Job) -> Iterator[Path | None]:
    """Within the block, no other retraining of this cell on the same texts runs.

    Gives the card of one that is finished, whose results have been written as this one's, under its
    own origin; None if there is none. Always None for outputs that lie elsewhere than in results,
    and under `accelerate launch` with several processes, which would have to agree.
    """
    from mamushi.artifacts import paths
    from mamushi.running.claims import exclusive

    where = paths.wildcards(paths.RETRAINED_CARD, files.card)
    if where is None or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        yield None
        return
    same = _same(job.origin, _removed(files))
    root = where["root"]
    everywhere = {**where, "selector": "*", "beta": "*"}
    cards = paths.under(pattern=paths.RETRAINED_CARD, **everywhere).relative_to(root)
    locks = paths.under(root, paths.CLAIMS)
    with exclusive(same, job.stage, "which retrains on the same texts", locks):
        for card in sorted(Path(root).glob(str(cards))):
            if card != files.card and _copied(files, job, card, same):
                print(f"trained on the same texts: took over {card.parent}", file=sys.stderr)
                yield card
                return
        yield None


def _copied(files: Files, job: Job, card: Path, same: str) -> bool:
    """Write the results of this card's fine-tune as those of ``files``, if they are the same."""
    from mamushi.artifacts import paths, schemas
    from mamushi.artifacts.files import read_json, write_json
    from mamushi.artifacts.provenance import recorded
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.artifacts.tensors import drop_others
    from mamushi.errors import UserError
    from mamushi.lm.storage import copy_trained

    try:
        card_there, theirs = read_json(card), recorded(card)
        where = paths.wildcards(paths.RETRAINED_CARD, card) or {}
        log = paths.under(pattern=paths.RETRAINED_LOG, **where)
        perplexity = paths.under(pattern=paths.PERPLEXITY, **where)
        nll = paths.under(pattern=paths.NLL, **where)
        tensors = paths.under(pattern=paths.RETRAINED_TENSORS, **where)
        made = [log, perplexity, nll, *([tensors] if files.tensors else [])]
        if card_there.get("same") != same or any(recorded(path) != theirs for path in made):
            return False
        steps = read_table(log, schemas.TRAIN_LOG)
        measured = read_table(perplexity, schemas.PERPLEXITY)
        each = read_table(nll, schemas.NLL)
        if files.tensors:
            copy_trained(tensors, files.tensors, job.origin)
    except (UserError, FileNotFoundError):
        # It is being made, or made again.
        return False
    write_table(files.log_table, schemas.TRAIN_LOG, steps, metadata=job.origin)
    drop_others(files.card, job.origin)
    write_json(files.card, {**card_there, **job.origin})
    write_table(files.nll, schemas.NLL, each, metadata=job.origin)
    write_table(files.perplexity, schemas.PERPLEXITY, measured, metadata=job.origin)
    files.state.unlink(missing_ok=True)
    return True
