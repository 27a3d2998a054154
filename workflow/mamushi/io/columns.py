"""Declaration of a table by a text: ``name: what it holds``, and lines with its columns.

Such a line begins with name and type, and indented lines go on with the meaning. ``string?`` may be
null, ``string[]`` is a list, ``vector`` a float16 vector of the model's width, and ``label_*``
stands for further columns of this beginning. Columns whose meaning is in ``SHARED`` share a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

VECTOR = "vector"
COLUMN = re.compile(
    r"(\w*\*|\w+) ((?:string|bool|int16|int32|int64|float32|float64|vector)(?:\[\])?)(\??)"
)


def _lines(text: str) -> list[str]:
    return text.strip().replace("\n    ", " ").split("\n")


_SHARED = """
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
sad: |ppl_forget − gold_ppl_forget| + |ppl_retain − gold_ppl_retain|, in perplexity.
p_holm: Corrected by Holm for all comparisons of the dataset and model.
comparisons: How many these are.
tokens: Predicted tokens of the text.
nll: Sum of their negative log-likelihoods in nats.
auc: Share of pairs of a forget and a retain text in which the forget text scores higher, ties
    counting half; 0.5 is chance.
fold_offset: Largest difference between the levels of two folds, in the unit of the score.
ties: Forget texts less their distinct scores; ties go by id.
auc_fold_mean: Mean of the AUCs within the folds.
auc_fold_min: Smallest AUC of a fold.
auc_fold_max: Largest AUC of a fold.
why: What is missing, and why; null where nothing is.
low: Lower end of its 95% interval.
high: Upper end of that interval.
mean: Its mean over seeds.
se: Its standard error.
sd: Its standard deviation.
gold: Where the share stands: `overshoots` where all of its interval is above 1, for a model that
    knows less than gold is told from gold as well; `short of gold` where all is below, else `not
    told from gold`. Null without an interval.
random: The same less that of `random`, paired by seed and text.
withheld: Why there is no interval.
retain: The same of the retain domain.
"""
SHARED = dict(line.split(": ", 1) for line in _lines(_SHARED))
"""Meaning of a column, or of all columns whose name ends so behind an underscore."""


class Column(NamedTuple):
    """A column as it is declared."""

    name: str
    type: str
    nullable: bool
    meaning: str

    def field(self, width: int) -> pa.Field:
        """Return it with its type; as a vector, of ``width`` numbers."""
        import pyarrow as pa

        if self.type == VECTOR:
            kind = pa.list_(pa.field("item", pa.float16(), nullable=False), width)
        else:
            item = pa.type_for_alias(self.type.removesuffix("[]"))
            kind = pa.list_(item) if self.type.endswith("[]") else item
        return pa.field(self.name, kind, nullable=self.nullable)


@dataclass(frozen=True)
class Table:
    """A table with its columns, which may be null only where declared so. Names of further columns
    that it may have begin with ``further``."""

    name: str
    description: str
    columns: tuple[Column, ...]
    further: str | None

    @cached_property
    def has_vectors(self) -> bool:
        """Tell whether it holds vectors, which are large and hardly compress."""
        return any(column.type == VECTOR for column in self.columns)

    @cached_property
    def schema(self) -> pa.Schema:
        """Return all columns, with vectors of one number."""
        return self.like(())

    def like(self, stored: Iterable[pa.Field]) -> pa.Schema:
        """Return all columns, with vectors of the width that they have in ``stored``."""
        import pyarrow as pa

        widths = {field.name: getattr(field.type, "list_size", 1) for field in stored}
        return pa.schema([column.field(widths.get(column.name, 1)) for column in self.columns])


def table(text: str) -> Table:
    """Return the table that a text declares. Raises ``KeyError`` for a column without a meaning."""
    about, columns = "", []
    for line in _lines(text):
        first = COLUMN.match(line)
        if first is None:
            about += f"{line} "
        elif line[first.end() :].startswith(": "):
            columns.append(_column(first, line[first.end() + 2 :]))
        else:
            columns += map(_column, COLUMN.finditer(line))
    name, _, description = about.strip().partition(": ")
    fixed = tuple(column for column in columns if not column.name.endswith("*"))
    further = next((column.name[:-1] for column in columns if column.name.endswith("*")), None)
    return Table(name, description, fixed, further)


def _column(declared: re.Match[str], meaning: str = "") -> Column:
    name, kind, null = declared.groups()
    meaning = meaning or SHARED.get(name) or SHARED[name.rpartition("_")[2]]
    return Column(name, kind, bool(null), meaning)
