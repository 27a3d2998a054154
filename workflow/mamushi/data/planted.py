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
import pyarrow.compute as pc

from mamushi.artifacts.domains import CONTAMINATION, EVALUATION, FORGET, INFERENCE
from mamushi.errors import UserError

LABEL = "label_planted"
"""Column of the examples: how often a planted text is in the contamination section, 0 for one that
is held out in its place; null for all other texts."""


def plant(table: pa.Table, planted: Mapping[str, Any], seed: int) -> pa.Table:
    """The examples with copies of planted texts in the contamination section, after all others.

    ``planted`` has ``texts``, how many are planted with each number of ``repeats``. A planted text
    stays in the inference section; as many texts as are planted in all leave it for the evaluation
    section. Raises ``UserError`` for too few forget texts, and without the sections.
    """
    if LABEL in table.column_names:
        raise UserError(
            "the rows have a label 'planted' already", where="planted", do="rename that label"
        )
    sections = set(table["section"].unique().to_pylist())
    if missing := {CONTAMINATION, INFERENCE, EVALUATION} - sections:
        raise UserError(
            f"there is no {min(missing)} section to plant in or to hold out",
            where="planted",
            do="give the section a share, or plant nothing",
        )
    repeats, each = list(planted["repeats"]), int(planted["texts"])
    forget = pc.and_(
        pc.equal(table["domain"], FORGET), pc.equal(table["section"], INFERENCE)
    ).to_numpy()
    there, needed = np.flatnonzero(forget), 2 * each * len(repeats)
    if needed >= len(there):
        raise UserError(
            f"takes {needed} of the {len(there)} forget texts of the inference section",
            where="planted",
            do="lower planted.texts or give the dataset more texts",
        )
    chosen = np.random.default_rng([seed, len(repeats), each]).permutation(there)[:needed]
    often = np.full(len(table), -1, dtype=np.int64)
    often[chosen] = np.repeat([*repeats, 0], [each] * len(repeats) + [needed // 2])
    sections_now = np.array(table["section"].to_pylist(), dtype=object)
    sections_now[often == 0] = EVALUATION
    table = _with(table, "section", pa.array(sections_now, pa.string()))
    table = table.append_column(LABEL, pa.array(often, pa.int64(), mask=often < 0))
    rows = np.repeat(np.arange(len(table)), np.maximum(often, 0))
    copies = table.take(rows)
    number = np.arange(len(rows)) - np.searchsorted(rows, rows)
    pairs = zip(copies["id"].to_pylist(), number.tolist(), strict=True)
    names = [f"{name}#planted{n + 1}" for name, n in pairs]
    copies = _with(copies, "id", pa.array(names, pa.string()))
    copies = _with(copies, "section", pa.array([CONTAMINATION] * len(rows), pa.string()))
    return pa.concat_tables([table, copies])


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), values)
