"""Both real loaders in the workflow, where the files are there."""

import json
from pathlib import Path

import pytest
import yaml

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import read_table
from tests.support.workflow import ROOT, run


@pytest.mark.real_data
def test_the_small_runs_data(shared: Path, tmp_path: Path) -> None:
    science = yaml.safe_load((ROOT / "profiles/small/science.yaml").read_text(encoding="utf-8"))
    files = {
        "MAMUSHI_NEWSGROUPS": str(shared / "data/20ng/20news-bydate.tar.gz"),
        "MAMUSHI_JIGSAW": str(shared / "data/jigsaw"),
    }
    run("data", directory=tmp_path, config=science, env=files)
    for dataset, read in (("newsgroups", 18846), ("jigsaw", 20000)):
        card = json.loads((tmp_path / paths.DATA_CARD.format(dataset=dataset)).read_text())
        assert card["counts"]["read"] + sum(card["counts"]["left_out"].values()) >= read
        examples = read_table(tmp_path / paths.EXAMPLES.format(dataset=dataset), schemas.EXAMPLES)
        found = examples.select(["id", "domain", "section"]).to_pandas()
        assert found["id"].is_unique
        assert set(found["domain"]) == {"forget", "retain"}
        assert set(found["section"]) == {"contamination", "inference", "evaluation"}
