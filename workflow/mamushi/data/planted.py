"""Canaries: forget texts that are repeated in the contamination section, and as many held out.

Which texts are repeated and which are held out is drawn by one shuffle of the forget texts of the
inference section, so that nothing but training tells them apart: what an attack finds between them
in a model that was trained on neither is chance. The idea, with made-up texts: Carlini et al. 2019
(The Secret Sharer); here they are the dataset's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts.domains import CONTAMINATION, EVALUATION, FORGET, INFERENCE
from mamushi.errors import UserError

LABEL = "label_planted"
"""Column of the examples: how often a planted text is in the contamination section, 0 for one that
is held out in its place; null for all other texts."""


def plant(table: pa.Table, planted: Mapping[str, Any], seed: int) -> pa.Table:
    """Return the examples with copies of planted texts in the contamination section, at the end.

    ``planted`` has ``texts``, how many are planted with each number of ``repeats``. A planted text
    stays in the inference section; as many texts as are planted in all leave it for the evaluation
    section. Raises ``UserError`` for too few forget texts, and without the sections.
    """

    def mistake(what: str, do: str) -> UserError:
        return UserError(what, where="planted", do=do)

    if LABEL in table.column_names:
        raise mistake("the rows have a label 'planted' already", "rename that label")
    section, domain = (np.array(table[n].to_pylist(), dtype=object) for n in ("section", "domain"))
    if missing := {CONTAMINATION, INFERENCE, EVALUATION} - set(section):
        what = f"there is no {min(missing)} section to plant in or to hold out"
        raise mistake(what, "give the section a share, or plant nothing")
    repeats, each = list(planted["repeats"]), int(planted["texts"])
    there = np.flatnonzero((domain == FORGET) & (section == INFERENCE))
    needed = 2 * each * len(repeats)
    if needed >= len(there):
        what = f"takes {needed} of the {len(there)} forget texts of the inference section"
        raise mistake(what, "lower planted.texts or give the dataset more texts")
    drawn = np.random.default_rng([seed, len(repeats), each]).permutation(there)[:needed]
    often = np.full(len(table), -1, dtype=np.int64)
    often[drawn] = np.repeat([*repeats, 0], [each] * len(repeats) + [needed // 2])
    section[often == 0] = EVALUATION
    table = _with(table, "section", section)
    table = table.append_column(LABEL, pa.array(often, pa.int64(), mask=often < 0))
    rows = np.repeat(np.arange(len(table)), np.maximum(often, 0))
    copies = table.take(rows)
    number = np.arange(len(rows)) - np.searchsorted(rows, rows)
    pairs = zip(copies["id"].to_pylist(), number.tolist(), strict=True)
    copies = _with(copies, "id", [f"{name}#planted{n + 1}" for name, n in pairs])
    copies = _with(copies, "section", [CONTAMINATION] * len(rows))
    return pa.concat_tables([table, copies])


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values, pa.string()))
