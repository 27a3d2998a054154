"""What the stages that ask a model have in common: the model, and where its answers go.

A question is a function in ``_questions`` of the model and what is asked, which gives tables by the
names of the stages' outputs. ``ask`` opens a model that is kept; ``retrain`` and ``unlearn`` ask a
model before they let it go.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.running.stage import Files, Job, writes
from mamushi.stages._settings import Questions, Relearn, Trains

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

    from mamushi.io.schemas import Table
    from mamushi.lm.tokens import TokenSet
    from mamushi.unlearning.trunk import Trunk

Answers = Mapping[str, tuple["Table", Mapping[str, Any]]]
"""By the name of an output its schema and columns."""


class AnswerFiles(Files):
    """What a stage writes of what it asks."""

    generations: Path | None = writes("continuations to write", default=None)
    membership: Path | None = writes("texts' likelihoods to write", default=None)
    relearning: Path | None = writes("relearning curve to write", default=None)


@dataclass
class Subject:
    """A model that is asked, on its device as it was when its perplexity was measured."""

    model: PreTrainedModel
    accelerator: Accelerator
    model_card: Path
    examples: Path | None
    tokens: Path | None
    batch_tokens: int
    open_to_train: Callable[[Trains, int], PreTrainedModel] | None = None
    """Opens it once more, with gradients for what is trained now; without it they are there."""
    trunk: Trunk | None = None
    """What its frozen blocks gave for all texts, where that is kept."""

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        from mamushi.lm.loading import open_tokenizer

        return open_tokenizer(self.model_card)

    def texts(self, section: str, max_length: int, **which: Any) -> TokenSet:
        """Read the tokens of a section's texts."""
        from mamushi.lm.tokens import read_tokens

        assert self.tokens is not None and self.examples is not None
        return read_tokens(self.tokens, self.examples, section, max_length, **which)

    def to_train(self, asked: Relearn) -> PreTrainedModel:
        """Return the model with gradients for what unlearning trains."""
        if self.open_to_train:
            # Two of them might be more than a GPU holds.
            del self.model
            self.model = self.open_to_train(asked, asked.seed)
            self.open_to_train = None
        return self.model


def subject(
    files: Any,
    model: PreTrainedModel,
    accelerator: Accelerator,
    job: Job,
    trunk: Trunk | None = None,
) -> Subject:
    """Return an open model with the files of the stage that opened or made it."""
    batch = job.execution.batch_tokens
    given = (files.model_card, files.examples, files.tokens, batch)
    return Subject(model, accelerator, *given, trunk=trunk)


def answers(one: Subject, questions: Questions | None) -> Answers:
    """Ask a model all questions, one after the other; it may be another one afterwards."""
    one.model.eval()
    found: dict[str, Any] = {}
    for each in fields(questions) if questions else ():
        if (asked := getattr(questions, each.name)) is None:
            continue
        # By name, so that a change of its code runs again just what is asked.
        module = importlib.import_module("mamushi.stages._questions")
        found |= getattr(module, each.name)(one, asked)
    return found


def write(files: Any, found: Answers, accelerator: Accelerator, job: Job) -> None:
    """Write tables, by the names of the outputs; of several processes the first one does."""
    from mamushi.io.tables import write_table

    if accelerator.is_main_process:
        for name, (kind, columns) in found.items():
            write_table(getattr(files, name), kind, columns, metadata=job.origin)


def forget_texts(
    subject: Subject, sections: Sequence[str], most: int, max_length: int
) -> tuple[TokenSet, list[str], list[int | None]]:
    """Return forget texts of these sections, at most so many of each and all that are planted or
    held out for those; with the section of each, and how often it is planted (0: held out).

    The same for every model of a dataset; fewer are a part of more.
    """
    import numpy as np

    from mamushi.data.sections import LABEL
    from mamushi.io import schemas
    from mamushi.io.tables import FORGET, read_table
    from mamushi.lm.tokens import joined, subset

    assert subject.examples is not None
    table = read_table(subject.examples, schemas.EXAMPLES)
    often: dict[str, Any] = {}
    if LABEL in table.column_names:
        often = dict(zip(table["id"].to_pylist(), table[LABEL].to_pylist(), strict=True))
    parts, of_section = [], []
    for section in sections:
        texts = subject.texts(section, max_length, domains=[FORGET])
        predicted = np.flatnonzero(texts.lengths > 1)
        order = np.random.default_rng(0).permutation(predicted)
        marked = [row for row in predicted if often.get(texts.ids[row]) is not None]
        rows = np.array(sorted({*order[:most].tolist(), *marked}), dtype=np.int64)
        parts.append(subset(texts, rows))
        of_section += [section] * len(rows)
    found = joined(parts)
    return found, of_section, [often.get(name) for name in found.ids]
