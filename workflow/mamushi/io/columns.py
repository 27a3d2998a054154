"""Declaration of a table by a text: ``name: what it holds``, and lines with its columns.

Such a line begins with name and type, and indented lines go on with the meaning. ``string?`` may be
null, ``string[]`` is a list, ``vector`` a float16 vector of the model's width, and ``label_*``
stands for further columns of this beginning. Behind a column with ``±`` are the ends of its
interval, ``_low`` and ``_high``. Columns whose meaning is in ``SHARED`` share a line.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

COLUMN = re.compile(r"(\w*\*|\w+) ((?:string|bool|int|float|vector)\d*(?:\[\])?)(\??)(±?)")


VECTOR = pa.list_(pa.field("item", pa.float16(), nullable=False), 1)


def _lines(text: str) -> list[str]:
    """Return the lines of a declaration, each joined with the indented ones that go on with it."""
    return text.strip().replace("\n    ", " ").split("\n")


_SHARED = """
dataset, model, selector: Its name in the configuration.
seed: Seed of training, folds and random selection.
unlearner: Its name in the configuration, or `retraining`.
beta: Deletion budget β: share of the forget set, from 0 to 1.
removed: Forget texts removed: floor(β × forget texts of the inference section).
id: Id of the text.
domain: `forget` or `retain`, the domain of the texts.
text: Its beginning, with white space folded and profanity masked.
n_forget, n_retain: Texts of the domain.
rank: Place in the ranking, from 1, which goes first.
fold: The fold in which the text was held out; null without cross-fitting.
seeds: Seeds that the row is a mean over.
prompt: The prompt as configured.
step: Optimizer steps so far.
tokens_per_second: Those tokens over the seconds since the step before.
learning_rate: Learning rate of the step.
gradient_norm: L2 norm of the gradient before clipping; without clipping of every 50th step.
seconds: Seconds since the first step, of a resumed training of all its runs; or of the selection.
ppl_forget: Held-out perplexity of the forget domain.
gold_ppl_forget: The same of the gold standard, which saw no forget text: forget domain.
sad: |ppl_forget − gold_ppl_forget| + |ppl_retain − gold_ppl_retain|, in perplexity.
p_holm: Corrected by Holm for all comparisons of the dataset and model.
comparisons: How many these are.
tokens: Predicted tokens of the text.
nll: Sum of their negative log-likelihoods in nats.
auc: Share of pairs of a forget and a retain text in which the forget text scores higher.
fold_offset: Largest difference between the levels of two folds, in the unit of the score.
ties: Forget texts less their distinct scores; ties go by id.
auc_fold_mean, auc_fold_min, auc_fold_max: Of the AUCs within the folds.
why: What is missing, and why; null where nothing is.
low, high: End of its 95% interval.
mean, se, sd: Its mean (of a table over seeds), standard error and deviation.
min, q25, median, q75, max: Its quantiles.
gold: Where its interval is beside 1: `overshoots`, `short of gold` or `not told from gold`.
random: The same less that of `random`, paired by seed and text.
withheld: Why there is no interval.
retain: The same of the retain domain.
"""
_MEANINGS = (line.split(": ", 1) for line in _lines(_SHARED))
SHARED = {name: meaning for names, meaning in _MEANINGS for name in names.split(", ")}
"""Meaning of a column, or of all columns whose name ends so behind an underscore."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table, its columns, where vectors are of one number, their meanings, and how the names of
    ``further`` columns begin."""

    name: str
    description: str
    schema: pa.Schema
    meanings: Mapping[str, str]
    further: str | None

    def like(self, stored: Iterable[pa.Field]) -> pa.Schema:
        """Return all columns, with vectors of the width that they have in ``stored``."""
        widths = {field.name: getattr(field.type, "list_size", 1) for field in stored}
        return pa.schema(
            field.with_type(pa.list_(field.type.value_field, widths.get(field.name, 1)))
            if pa.types.is_fixed_size_list(field.type)
            else field
            for field in self.schema
        )


def table(text: str) -> Table:
    """Return the table that a text declares. Raises ``KeyError`` for a column without a meaning."""
    about, fields, meanings, further = [], list[pa.Field](), dict[str, str](), None
    for line in _lines(text):
        if not (first := COLUMN.match(line)):
            about.append(line)
            continue
        meaning = line[first.end() :].partition(": ")[2]
        for name, kind, null, ends in [first.groups()] if meaning else COLUMN.findall(line):
            meanings[name] = meaning or SHARED.get(name) or SHARED[name.rpartition("_")[2]]
            if name.endswith("*"):
                further = name[:-1]
                continue
            type_ = VECTOR if kind == "vector" else pa.type_for_alias(kind.removesuffix("[]"))
            type_ = pa.list_(type_) if kind.endswith("[]") else type_
            for end in ("", "_low", "_high") if ends else ("",):
                meanings.setdefault(name + end, SHARED.get(end[1:], ""))
                fields.append(pa.field(name + end, type_, bool(null)))
    name, _, description = " ".join(about).partition(": ")
    return Table(name, description, pa.schema(fields), meanings, further)
