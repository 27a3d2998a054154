"""The doors of other engines: what they keep of documents, by the engines' own classes where these
can be installed here, else by what their source publishes of them."""

from __future__ import annotations

import importlib
import pickle
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi_extras.doors.keeping import ListKeeper, ScoreKeeper
from mamushi_extras.shards.handed_on import write_screen
from mamushi_extras.unlabelled.screen import fit_screen
from mamushi_extras.unlabelled.screening import ScreenSample
from tests.extras.doors.test_scorers import drawn
from tests.support.lab import write_lab
from tests.support.removal_files import removal_list
from tests.support.scored_cells import rank_cell
from tests.support.workflow import ROOT
from tests.unit.test_docs import blocks

IDS = [f"c{i}" for i in range(8)]
TEXTS = [f"text of {name}" for name in IDS]
GONE = {"c1", "c3", "c6"}
STAYS = [name for name in IDS if name not in GONE]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A list of two texts, one of which has a copy."""
    data = tmp_path / "data.csv"
    rows = [f"{name},{text}" for name, text in zip(IDS, TEXTS, strict=True)]
    data.write_text("\n".join(["id,text", *rows]) + "\n", encoding="utf-8")
    return removal_list(tmp_path / "results", {"c1": ["c6"], "c3": []}, data=data)


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("screen") / "screen.safetensors"
    texts, theirs = drawn(120, 3)
    like = [text for text, their in zip(texts, theirs, strict=True) if their]
    screen = fit_screen(like, [text for text in texts if text not in like])
    write_screen(path, screen, ScreenSample(np.empty(0, np.int64), [], 120), {})
    return path


def test_a_keeper_is_a_filter_of_datasets(listed: Path) -> None:
    split = Dataset.from_dict({"id": [*map(str, IDS)], "text": TEXTS, "more": [*range(8)]})
    keeper = ListKeeper(listed)
    kept = split.filter(keeper, batched=True, batch_size=3, input_columns=["id", "text"])
    assert kept["id"][:] == STAYS and kept["more"][:] == [0, 2, 4, 5, 7]
    assert keeper.unseen() == []
    part = split.select(range(4))
    keeper = ListKeeper(listed)
    assert len(part.filter(keeper, batched=True, input_columns=["id", "text"])) == 2
    assert keeper.unseen() == ["c6"]


def test_no_row_goes_for_its_id_alone(listed: Path) -> None:
    with pytest.raises(UserError, match="document 'c3': the text of 'c3' is not the one that was"):
        ListKeeper(listed)(IDS, [text.replace("c3", "c4") for text in TEXTS])
    # Null is an empty text, and the listed one was none.
    with pytest.raises(UserError, match="the text of 'c3'"):
        ListKeeper(listed)(["c3"], [None])


def test_a_score_decides_in_batches_of_any_size(screen: Path) -> None:
    texts, theirs = drawn(50, 9)
    keeper = ScoreKeeper(screen, 0.0)
    scores = keeper.scores(texts)
    split = Dataset.from_dict({"text": [*texts, "", None]})
    scored = split.map(
        lambda text: {"score": keeper.scores(text)},
        batched=True,
        batch_size=7,
        input_columns=["text"],
    )
    assert scored["score"][:50] == scores and np.isnan(scored["score"][50:]).all()
    stays = keeper([*texts, ""], [*texts, ""])
    assert stays == [score < 0.0 for score in scores] + [True]
    assert np.mean(np.array(stays[:50]) != theirs) > 0.9
    assert ScoreKeeper(screen, min(scores))(texts, texts) == [False] * 50


def test_a_keeper_travels_as_the_name_of_its_file(listed: Path, screen: Path) -> None:
    """And is refused where that is another file now, as one process may not decide by another list
    than the next."""
    for keeper, most in ((ListKeeper(listed), 2000), (ScoreKeeper(screen, 0.0), 2000)):
        before = pickle.dumps(keeper)
        keeper(IDS, TEXTS)
        assert pickle.dumps(keeper) == before and len(before) < most
    there = pickle.loads(pickle.dumps(ListKeeper(listed)))
    assert there(IDS, TEXTS) == [name not in GONE for name in IDS]
    again = pickle.loads(pickle.dumps(ListKeeper(listed)))
    listed.write_bytes(listed.read_bytes() + b"x")
    with pytest.raises(UserError, match="has changed since it was named"):
        again(IDS, TEXTS)


def test_a_list_that_cannot_tell_rows_apart_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("c1\n", encoding="utf-8")
    with pytest.raises(UserError, match="has no digests of its texts"):
        ListKeeper(plain)
    data = tmp_path / "data.csv"
    data.write_text("text\na\nb\nc\n", encoding="utf-8")
    numbers = removal_list(tmp_path / "results", {"1": []}, data=data, column=None)
    with pytest.raises(UserError, match="names numbers of rows"):
        ListKeeper(numbers)


def test_windows_that_are_cut_are_for_apply(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("id,text\nd,one two three\n", encoding="utf-8")
    windows = {"action": "cut", "labelled": True}
    cut = removal_list(tmp_path / "results", {"d#0-3": []}, data=data, windows=windows)
    with pytest.raises(UserError, match="cut them with mamushi apply"):
        ListKeeper(cut)


# datatrove ----------------------------------------------------------------------------------------


def test_datatrove_drops_the_listed_documents(listed: Path, tmp_path: Path) -> None:
    """In a pipeline that an executor of it runs in two tasks, whose statistics add up."""
    pytest.importorskip("datatrove")
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter

    from mamushi_extras.doors.datatrove import KeeperFilter

    for number in range(2):
        rows = zip(IDS[number::2], TEXTS[number::2], strict=True)
        table = pd.DataFrame(rows, columns=["id", "text"])
        table.to_parquet(tmp_path / f"in-{number}.parquet")
    executor = LocalPipelineExecutor(
        pipeline=[
            ParquetReader(str(tmp_path), glob_pattern="in-*.parquet"),
            KeeperFilter(ListKeeper(listed), ParquetWriter(str(tmp_path / "dropped")), 3),
            ParquetWriter(str(tmp_path / "out")),
        ],
        tasks=2,
        workers=1,
        logging_dir=str(tmp_path / "logs"),
    )
    stats = executor.run()
    assert ids_in(tmp_path / "out") == {*STAYS} and ids_in(tmp_path / "dropped") == GONE
    of_filter = stats.stats[1]
    assert of_filter["dropped_listed"].total == 3 and of_filter["forwarded"].total == 5


def ids_in(folder: Path) -> set[str]:
    return {name for file in folder.glob("*.parquet") for name in pd.read_parquet(file)["id"]}


def test_datatrove_is_told_which_listed_ids_no_document_had(
    listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("datatrove")
    from datatrove.data import Document

    from mamushi_extras.doors import datatrove

    said: list[str] = []
    monkeypatch.setattr(datatrove.logger, "warning", said.append)
    documents = [Document(text, name) for name, text in zip(IDS[:4], TEXTS[:4], strict=True)]
    door = datatrove.KeeperFilter(ListKeeper(listed))
    assert [doc.id for doc in door.run(iter(documents))] == ["c0", "c2"]
    assert said == [f"1 ids of {listed} are in no document, as 'c6'"]
    assert door.filter(documents[1]) == (False, "listed") and door.filter(documents[0]) is True
    with pytest.raises(UserError, match="the text of 'c1'"):
        door.filter_batch([Document("another", "c1")])


def test_datatrove_drops_what_scores_high(screen: Path) -> None:
    pytest.importorskip("datatrove")
    from datatrove.data import Document

    from mamushi_extras.doors.datatrove import KeeperFilter

    texts, _ = drawn(20, 11)
    keeper = ScoreKeeper(screen, 0.0)
    door = KeeperFilter(keeper, batch_size=6)
    kept = [doc.id for doc in door.run(Document(t, str(i)) for i, t in enumerate(texts))]
    assert kept == [str(i) for i, stays in enumerate(keeper(texts, texts)) if stays]
    assert 0 < len(kept) < 20


# NeMo Curator -------------------------------------------------------------------------------------

Kind = TypeVar("Kind")


@pytest.fixture
def curator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The door, by the engine's own classes if it is installed, which brings Ray along, else by
    what nemo_curator 1.4.0 has in stages/base.py and tasks/document.py."""
    if importlib.util.find_spec("nemo_curator") is None:

        class ProcessingStage(Generic[Kind]):
            name = "ProcessingStage"

            def __class_getitem__(cls, kinds: Any) -> Any:
                return cls

        @dataclass
        class DocumentBatch:
            dataset_name: str
            data: pd.DataFrame
            _stage_perf: list[Any] = field(default_factory=list)
            _metadata: dict[str, Any] = field(default_factory=dict)
            task_id: str = field(init=False, default="")

            def to_pandas(self) -> pd.DataFrame:
                return self.data

        published(monkeypatch, "nemo_curator.stages.base", ProcessingStage=ProcessingStage)
        published(monkeypatch, "nemo_curator.tasks", DocumentBatch=DocumentBatch)
    yield importlib.import_module("mamushi_extras.doors.curator")
    sys.modules.pop("mamushi_extras.doors.curator", None)


def published(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    """Put a module in the place of one that is not installed, with the packages above it."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        above = ".".join(parts[:end])
        if above not in sys.modules:
            monkeypatch.setitem(sys.modules, above, ModuleType(above))
    module = ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)


def test_curator_drops_the_listed_documents(curator: Any, listed: Path) -> None:
    frame = pd.DataFrame({"name": IDS, "body": TEXTS, "more": range(8)})
    batch = curator.DocumentBatch(dataset_name="d", data=frame, _metadata={"source_files": ["f"]})
    stage = curator.KeeperStage(ListKeeper(listed), "name", "body")
    assert stage.inputs() == stage.outputs() == (["data"], ["name", "body"])
    stage.setup()
    done = stage.process(batch)
    assert done.to_pandas()["name"].tolist() == STAYS and [*done.to_pandas()] == [*frame]
    assert (done.dataset_name, done._metadata) == ("d", {"source_files": ["f"]})
    gone = frame[frame["name"].isin(GONE)]
    assert len(stage.process(curator.DocumentBatch("d", gone)).to_pandas()) == 0
    with pytest.raises(UserError, match="the text of 'c1'"):
        stage.process(curator.DocumentBatch("d", frame.assign(body="another")))


# torchtitan ---------------------------------------------------------------------------------------


@pytest.fixture
def titan(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The door, by what torchtitan has in components/data at b5bcd76, where the real classes gave
    the same; its release 0.3.0 has not, and Grain would come along."""

    class SampleProcessor:
        @dataclass(kw_only=True, slots=True)
        class Config:
            pass

    @dataclass(frozen=True, kw_only=True, slots=True)
    class TextSequence:
        input_ids: np.ndarray
        labels: np.ndarray
        positions: np.ndarray | None = None

    @dataclass(frozen=True, kw_only=True, slots=True)
    class SingleDatasetConfig:
        source: Any
        pre_filters: tuple[Callable[[Any], bool], ...] = ()
        processor: Any = None
        post_filters: tuple[Callable[[Any], bool], ...] = ()

    class HuggingFaceRandomAccessSource:
        @dataclass(kw_only=True, slots=True)
        class Config:
            path: str
            split: str
            name: str | None = None
            load_dataset_kwargs: dict[str, Any] = field(default_factory=dict)

    kinds = (SampleProcessor, TextSequence, SingleDatasetConfig, HuggingFaceRandomAccessSource)
    data = {kind.__name__: kind for kind in kinds}
    published(monkeypatch, "torchtitan.components.data", **data)
    yield importlib.import_module("mamushi_extras.doors.torchtitan")
    sys.modules.pop("mamushi_extras.doors.torchtitan", None)


def test_torchtitan_predicts_all_tokens_but_the_masked_ones(titan: Any) -> None:
    """As the loss of a causal model in transformers, which shifts labels itself."""
    import torch
    from transformers.loss.loss_utils import ForCausalLMLoss

    row = {"input_ids": [9, 1, 2, 3], "attention_mask": [1] * 4, "labels": [9, -100, 2, 3]}
    door = titan.MaskedProcessor(titan.MaskedProcessor.Config(), context=Context(16))
    sequence = door(row, np.random.default_rng(0))
    assert sequence.input_ids.tolist() == [9, 1, 2] and sequence.labels.tolist() == [-100, 2, 3]
    logits = torch.randn(1, 4, 12, generator=torch.Generator().manual_seed(0))
    expected = ForCausalLMLoss(logits, torch.tensor([row["labels"]]), vocab_size=12)
    loss = torch.nn.functional.cross_entropy(logits[0, :3], torch.tensor(sequence.labels))
    assert torch.allclose(loss, expected)


def test_torchtitan_gets_no_row_without_a_token_to_predict(titan: Any) -> None:
    door = titan.MaskedProcessor(titan.MaskedProcessor.Config(), context=Context(2))
    rng = np.random.default_rng(0)
    assert door({"input_ids": [9, 1], "labels": [9, -100]}, rng) is None
    assert door({"input_ids": [9], "labels": [9]}, rng) is None
    assert door({"input_ids": [9, 1, 2, 3], "labels": [9, -100, -100, 3]}, rng) is None
    cut = door({"input_ids": [9, 1, 2, 3], "labels": [9, -100, 2, 3]}, rng)
    assert cut.input_ids.tolist() == [9, 1] and cut.labels.tolist() == [-100, 2]


# The page ----------------------------------------------------------------------------------------


def test_the_page_does_what_it_shows(
    curator: Any, titan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks, one after another, of a table that was ranked."""
    pytest.importorskip("datatrove")
    monkeypatch.chdir(tmp_path)
    rows = write_lab(tmp_path)
    rank_cell({"kind": "stack"})
    (tmp_path / "new").mkdir()
    frame = pd.read_csv("comments.csv")
    frame.to_json("new/part.jsonl", orient="records", lines=True)
    (tmp_path / "parquet").mkdir()
    frame.to_parquet("parquet/part.parquet")
    text = (ROOT / "docs/guide/doors.md").read_text(encoding="utf-8")
    for line in blocks(text, "sh")[0].splitlines():
        assert main(shlex.split(line)[1:]) == 0
    names: dict[str, Any] = {}
    for block in blocks(text, "python"):
        exec(compile(block, "doors.md", "exec"), names)
    keeper, likely = names["keeper"], names["likely"]
    gone = keeper.opened.ids
    stays = {name for name, *_ in rows} - gone
    assert {*names["clean"]["id"]} == stays and keeper.unseen() == []
    scores = dict(zip(frame["id"], pd.read_parquet("scores.parquet")["score"], strict=True))
    assert dict(zip(names["scored"]["id"], names["scored"]["score"], strict=True)) == {
        name: scores[name] for name in names["clean"]["id"]
    }
    reader, *filters = names["pipeline"]
    documents = reader.run()
    for door in filters:
        documents = door.run(documents)
    low = {name for name in stays if scores[name] < likely.least}
    assert {doc.id for doc in documents} == low and low < stays
    batch = curator.DocumentBatch("d", frame)
    assert {*names["stage"].process(batch).to_pandas()["id"]} == stays
    assert isinstance(names["masked"].processor, titan.MaskedProcessor.Config)


@dataclass
class Context:
    """Of what torchtitan tells a processor, what this one asks for."""

    max_context_length: int
