"""What jobs ask for, by size, texts and attempt."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi_cluster.resources import JobResources
from tests.support.workflow import ROOT

TINY, GEMMA = "tiny_one", "gemma-2-2b"


def wildcards(model: str = GEMMA, **more: str) -> Any:
    return SimpleNamespace(dataset="jigsaw", model=model, selector="mamushi", **more)


@pytest.fixture(scope="module")
def resources() -> JobResources:
    paper = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    paper["models"][TINY] = {"family": "llama", "pretraining": {"datasets": ["jigsaw"]}}
    return JobResources(complete(paper))


@pytest.mark.parametrize("name", ["model_memory", "retrain"])
def test_all_grows_with_the_attempt_and_the_model(resources: JobResources, name: str) -> None:
    asked = resources.minutes("retrain") if name == "retrain" else getattr(resources, name)
    assert asked(wildcards(), 3) == 3 * asked(wildcards(), 1)
    # Whose training has a processor.
    assert name == "retrain" or asked(wildcards(TINY), 1) < asked(wildcards(), 1)


def test_a_tiny_model_has_one_thread_and_others_several(resources: JobResources) -> None:
    threads = resources.cores(8)
    assert (threads(wildcards(TINY)), threads(wildcards())) == (1, 8)


def test_texts_count_once_they_are_counted(
    resources: JobResources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    card = tmp_path / paths.DATA_CARD.format(dataset="jigsaw")
    card.parent.mkdir(parents=True)
    assert 16_000 < resources.rank_memory(wildcards(), 1) < 16_100
    sizes = {"inference": {"forget": 3_000_000, "retain": 4_000_000}}
    write_json(card, {"counts": {"sections": sizes}})
    assert resources.rank_memory(wildcards(), 1) == 23_000
