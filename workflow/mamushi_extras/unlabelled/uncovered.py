"""Say what the examples may not cover: clusters of the corpus that score in between.

Examples of one kind of a domain rank its other kinds below their own and among what is only alike,
and nothing in the scores tells these apart. So texts below those that are more likely than not of
the domain are clustered by their vectors (k-means; Lloyd, 1982), and a person reads some of the
clusters that score highest. A yes is an example of the next ranking, a no is wanted. All this says
where to look. Nobody drew these texts at random, so it estimates nothing and has no intervals.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.io import digests, paths
from mamushi.io.domains import FORGET
from mamushi.io.tables import read_metadata, read_table
from mamushi_extras.unlabelled.schemas import UNCOVERED_CLUSTERS

BELOW, CLUSTERS, SHOWN, ASKED = 0.5, 20, 10, 3
"""The share of the texts below the likely ones that is clustered, into how many clusters, how many
of these a person sees, and texts to read of each: what found most in a study."""
MOST_CLUSTERED = 10_000
"""Texts that are clustered; of more, so many at random."""


def in_between(ranking: pa.Table, likely: int) -> pa.Table:
    """Return id and score of the texts of a table ``posterior`` that score in between: the first of
    those that are neither among the ``likely`` ones nor certain."""
    behind = pc.and_(pc.greater(ranking["rank"], likely), pc.not_equal(ranking["domain"], FORGET))
    below = ranking.filter(pc.fill_null(behind, fill_value=False)).sort_by("rank")
    half = below.select(["id", "score"]).slice(0, int(np.ceil(BELOW * len(below))))
    drawn = np.random.default_rng(0).permutation(len(half))[:MOST_CLUSTERED]
    return half.take(pa.array(np.sort(drawn)))


def uncovered_clusters(
    between: pa.Table, ids: NDArray[np.object_], embeddings: NDArray[np.float16]
) -> pa.Table:
    """Return the table ``uncovered`` of texts ``between``, by the ``embeddings`` (n, d) of all
    texts: the clusters that score highest, each with the texts nearest to its centre."""
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import StandardScaler

    names, score = between["id"].to_pylist(), between["score"].to_numpy()
    rows: list[dict[str, Any]] = []
    if count := min(CLUSTERS, len(names) // ASKED):
        places = pc.index_in(between["id"], value_set=pa.array(ids, pa.string())).to_numpy()
        x = StandardScaler().fit_transform(np.asarray(embeddings[places], dtype=np.float64))
        model = KMeans(count, n_init=1, random_state=0).fit(x)
        distance = model.transform(x)
        for cluster in range(count):
            members = np.flatnonzero(model.labels_ == cluster)
            nearest = members[np.argsort(distance[members, cluster], kind="stable")[:ASKED]]
            row = {"texts": len(members), "score": float(score[members].mean())}
            rows.append(row | {"ids": [names[place] for place in nearest]})
    highest = sorted(rows, key=lambda row: -row["score"])[:SHOWN]
    numbered = [{"cluster": place + 1} | row for place, row in enumerate(highest)]
    return pa.Table.from_pylist(numbered, schema=UNCOVERED_CLUSTERS.schema)


def read_uncovered(removal: Path) -> pa.Table | None:
    """Read the clusters of the ranking that a list was made from; None where there are none of it
    as it is now."""
    names = paths.wildcards(paths.REMOVAL, removal.absolute())
    if names is None:
        return None
    path, ranking = (
        paths.under(pattern=pattern, **names) for pattern in (paths.UNCOVERED, paths.POSTERIOR)
    )
    if not path.is_file() or not ranking.is_file():
        return None
    inputs = read_metadata(path)["inputs"]
    return (
        read_table(path, UNCOVERED_CLUSTERS) if inputs["posterior"] == digests.of(ranking) else None
    )
