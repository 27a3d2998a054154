"""Declaration of a table by a text: ``name: what it holds``, and lines with its columns.

Such a line begins with name and type, and indented lines go on with the meaning. ``string?`` may be
null, ``string[]`` is a list, ``vector`` a float16 vector of the model's width, and ``label_*``
stands for further columns of this beginning. Columns whose meaning is in ``SHARED`` share a line.
pyarrow is not needed to read this: the digest of the code does, to leave the meanings out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

VECTOR = "vector"
COLUMN = re.compile(
    r"(\w*\*|\w+) ((?:string|bool|int16|int32|int64|float32|float64|vector)(?:\[\])?)(\??)"
)

SHARED = """
dataset: Name of the dataset in the configuration.
model: Name of the model in the configuration.
seed: Seed of training, folds and random selection.
selector: Name of the selector in the configuration.
unlearner: Name of the unlearner in the configuration, or `retraining`.
beta: Deletion budget β: share of the forget set, from 0 to 1.
removed: Forget texts removed: floor(β × forget texts of the inference section).
id: Id of the text.
domain: `forget` or `retain`, the domain of the texts.
text: Its beginning, with white space folded and profanity masked.
n_forget: Forget texts.
n_retain: Retain texts.
rank: Place in the ranking, from 1, which goes first.
fold: The fold in which the text was held out; null without cross-fitting.
seeds: Seeds that the row is a mean over.
subgroup: `all`, `words` (length, in thirds of both domains together), or a column `label_*`.
prompt: The prompt as configured.
step: Optimizer step, from 1.
tokens_per_second: Those tokens over the seconds since the step before.
learning_rate: Learning rate of the step.
gradient_norm: L2 norm of the gradient before clipping; where fine-tuning clips nothing, of the
    first step, of each 50th after it and of the last.
seconds: Seconds of training since the first step; a resumed training counts on.
ppl_forget: Held-out perplexity of the forget domain.
gold_ppl_forget: The same of the gold standard, which saw no forget text: forget domain.
auc_fold_mean: Mean of the AUCs within the folds.
auc_fold_min: Smallest AUC of a fold.
auc_fold_max: Largest AUC of a fold.
why: What is missing, and why; null where nothing is.
low: Lower end of its 95% interval.
high: Upper end of that interval.
se: Its standard error.
retain: The same of the retain domain.
"""
"""Meaning of a column, or of all columns whose name ends so behind an underscore."""


class Column(NamedTuple):
    """A column as it is declared; ``meaning`` is empty where it is one of ``SHARED``."""

    name: str
    type: str
    nullable: bool
    meaning: str


@dataclass(frozen=True)
class Table:
    """A table with its columns, which may be null only where declared so."""

    name: str
    description: str
    columns: tuple[Column, ...]
    further: str | None
    """How the names of further columns begin that it may have; None where it has none."""
    plain: bool
    """Whether it holds vectors, which compression saves 8% of, and which it costs seconds."""

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns whose type does not depend on a model."""
        return self.of_width(None)

    def like(self, stored: pa.Schema) -> pa.Schema:
        """Return all columns, with vectors of the width that they have in ``stored``."""
        vectors = [column.name for column in self.columns if column.type == VECTOR]
        widths = (getattr(f.type, "list_size", 1) for f in stored if f.name in vectors)
        return self.of_width(next(widths, 1)) if vectors else self.schema

    def of_width(self, width: int | None) -> pa.Schema:
        """Return all columns, with vectors of ``width`` numbers; without vectors for None."""
        import pyarrow as pa

        fields = []
        for name, kind, nullable, _ in self.columns:
            if kind != VECTOR:
                item = pa.type_for_alias(kind.removesuffix("[]"))
                kind_of_item = pa.list_(item) if kind.endswith("[]") else item
                fields.append(pa.field(name, kind_of_item, nullable=nullable))
            elif width is not None:
                item = pa.field("item", pa.float16(), nullable=False)
                fields.append(pa.field(name, pa.list_(item, width), nullable=nullable))
        return pa.schema(fields)


def table(text: str) -> Table:
    """Return the table that a text declares."""
    head, columns = _parse(text)
    name, _, description = head.partition(": ")
    fixed = tuple(column for column in columns if not column.name.endswith("*"))
    further = next((column.name[:-1] for column in columns if column.name.endswith("*")), None)
    plain = any(column.type == VECTOR for column in columns)
    return Table(name, description, fixed, further, plain)


def group(text: str) -> str:
    """Return the text of columns that several tables have, to be put into theirs."""
    return text


def signature(text: str) -> str:
    """Return names and types of the columns that a text declares, without any meaning."""
    return ", ".join(f"{c.name} {c.type}{'?' * c.nullable}" for c in _parse(text)[1])


def meaning(column: Column) -> str:
    """Return what a column means. Raises ``KeyError`` for one without a meaning."""
    shared = dict(line.split(": ", 1) for line in SHARED.replace("\n    ", " ").split("\n") if line)
    name = column.name
    return column.meaning or shared[name if name in shared else name.rpartition("_")[2]]


def _parse(text: str) -> tuple[str, list[Column]]:
    """Return what stands before the first column, and the columns."""
    lines_above, columns = [], []
    for line in text.strip().replace("\n    ", " ").split("\n"):
        first = COLUMN.match(line)
        if first is None:
            lines_above.append(line)
            continue
        has_meaning = line[first.end() :].startswith(": ")
        meaning = line[first.end() + 2 :] if has_meaning else ""
        for match in [first] if has_meaning else COLUMN.finditer(line):
            columns.append(Column(match[1], match[2], bool(match[3]), meaning))
    return " ".join(lines_above), columns
