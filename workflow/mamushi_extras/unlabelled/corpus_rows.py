"""The rows of a corpus that nobody labelled, of its files or of what other jobs read of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mamushi.data.loaders.table import read_raw
from mamushi.io import tabular
from mamushi_extras.shards.handed_on import read_parts
from mamushi_extras.unlabelled import like
from mamushi_extras.unlabelled.screening import (
    CorpusShard,
    find_cut,
    fit_to_sample,
    join_passed,
    passing_count,
)


def read_corpus_rows(settings: Mapping[str, Any]) -> like.CorpusRows:
    """Read a corpus, or what a screen lets through of it, with what lies beside it: in this
    process, unless other jobs have screened its files and left ``parts``. Raises ``UserError`` as
    ``CorpusShard.sample``, ``fit_to_sample`` and ``join_passed``."""
    if not settings["forget"].get("screen"):
        return like.with_examples(read_raw(settings), settings)
    if settings.get("parts"):
        return join_passed(*read_parts(settings["parts"]), settings)
    shard = CorpusShard(tabular.find(settings["path"]), settings)
    sample = shard.sample()
    screen = fit_to_sample(sample, settings)
    blocks = [*shard.score(screen)]
    cut = find_cut(lambda: blocks, passing_count(settings, sample.rows))
    passing = np.concatenate([cut.passing(block) for block in blocks])
    return join_passed([shard.take(passing)], sample, screen, cut, settings)
