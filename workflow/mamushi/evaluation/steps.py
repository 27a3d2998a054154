"""How much of SAD is the number of steps: gold against a gold standard trained as long as beta 0.

The gold standard sees fewer texts than beta 0 in as many epochs, and so takes fewer steps. Where
models are trained for few steps, these move perplexity as well as the texts do, and SAD measures
both. Two models that saw the same texts in fewer and in matched steps tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.artifacts import paths, schemas
from mamushi.configuration.grid import STEPPED, cells
from mamushi.evaluation.curves import read_perplexity
from mamushi.evaluation.sad import sad


def steps_table(grid: Mapping[str, Any], root: str | Path = "results") -> pa.Table:
    """The table ``steps`` of a grid: a row per dataset, model and seed, in units of perplexity.

    Raises ``UserError`` that names the first missing or damaged file.
    """
    rows = []
    for run in cells(grid):
        gold, matched, beta0 = (
            read_perplexity(paths.under(root, paths.PERPLEXITY, **run, arm=endpoint))
            for endpoint in STEPPED
        )
        ends = (gold.ppl_forget, gold.ppl_retain)
        whole = float(sad(beta0.ppl_forget, beta0.ppl_retain, *ends))
        alone = float(sad(matched.ppl_forget, matched.ppl_retain, *ends))
        rows.append(
            {
                **run,
                "gold_ppl_forget": gold.ppl_forget,
                "gold_ppl_retain": gold.ppl_retain,
                "matched_ppl_forget": matched.ppl_forget,
                "matched_ppl_retain": matched.ppl_retain,
                "sad": whole,
                "steps_sad": alone,
                "steps_share": alone / whole if whole else None,
                "matched_sad": float(
                    sad(
                        beta0.ppl_forget,
                        beta0.ppl_retain,
                        matched.ppl_forget,
                        matched.ppl_retain,
                    )
                ),
            }
        )
    return pa.Table.from_pylist(rows, schema=schemas.STEPS.schema)
