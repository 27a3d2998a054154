"""What the stages that ask a model about single texts have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.configuration.settings import Asked
from mamushi.running.stage import reads
from mamushi.stages import _models

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.lm.tokens import TokenSet


@dataclass(frozen=True, kw_only=True)
class AskedFiles(_models.TextFiles, _models.ModelFiles):
    """A model, the texts, and where it was unlearned the tensors over those of its start."""

    unlearned: Path | None = reads("tensors that unlearning trained", default=None)


def opened(files: AskedFiles, chosen: Asked) -> tuple[PreTrainedModel, Accelerator]:
    """The model as it was when its perplexity was measured, and its accelerator."""
    from mamushi.lm.storage import load_trained

    if chosen.unlearned is None:
        return _models.opened(files, chosen)
    model, accelerator = _models.opened_to_train(files, chosen.unlearned, 0)
    assert files.unlearned is not None
    load_trained(files.unlearned, model)
    return model, accelerator


def texts_of(
    files: AskedFiles, chosen: Asked, sections: tuple[str, ...]
) -> tuple[TokenSet, list[str], list[int | None]]:
    """Forget texts of these sections, at most so many of each and all that are planted or held out
    for those; with the section of each, and how often it is planted (0: held out).

    The same for every model of a dataset; fewer are a part of more.
    """
    import numpy as np

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import FORGET, read_table
    from mamushi.data.planted import LABEL
    from mamushi.lm.tokens import joined, read_tokens, subset

    table = read_table(files.examples, schemas.EXAMPLES)
    often: dict[str, Any] = {}
    if LABEL in table.column_names:
        often = dict(zip(table["id"].to_pylist(), table[LABEL].to_pylist(), strict=True))
    parts, of_section = [], []
    for section in sections:
        texts = read_tokens(
            files.tokens, files.examples, section, chosen.max_length, domains=[FORGET]
        )
        predicted = np.flatnonzero(texts.lengths > 1)
        order = np.random.default_rng(0).permutation(predicted)
        marked = [row for row in predicted if often.get(texts.ids[row]) is not None]
        rows = np.array(sorted({*order[: chosen.texts].tolist(), *marked}), dtype=np.int64)
        parts.append(subset(texts, rows))
        of_section += [section] * len(rows)
    found = joined(parts)
    return found, of_section, [often.get(name) for name in found.ids]
