"""A corpus of many files, screened by jobs on several nodes."""

from collections import Counter
from pathlib import Path

from mamushi.io import paths
from tests.support import cluster
from tests.support.corpora import screened_corpus
from tests.support.workflow import run

TABLES = [pattern.format(dataset="corpus") for pattern in (paths.EXAMPLES, paths.DUPLICATES)]


def test_jobs_on_several_nodes_let_the_same_texts_through(folder: Path) -> None:
    """As one process on this machine."""
    config, alone = screened_corpus(folder / "corpus"), folder / "alone"
    run(*TABLES, directory=alone, config=config)
    cluster.run(*TABLES, directory=folder, config={**config, "execution": {"shards": 3}})
    jobs = cluster.settled(folder)
    assert {job.state for job in jobs} == {"COMPLETED"}
    by_rule = Counter(job.rule for job in jobs)
    assert {by_rule[f"screen_{name}"] for name in ("texts", "scores", "pass")} == {3}
    for table in TABLES:
        assert (folder / table).read_bytes() == (alone / table).read_bytes(), table
