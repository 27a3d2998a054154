"""What models are asked by the probe, on a tiny model: generate, relearn, and judge."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from mamushi.cli import main
from mamushi.config import arms
from mamushi.evaluation.probes import repetition
from mamushi.io import paths, schemas
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.lm import loading
from tests.support.stage_files import command, opened, texts_of, write_start

RELEARNING = {"examples": 4, "steps": [1, 3], "batch_size": 2, "learning_rate": 1e-2}
PROMPTS = ["the cat", "paper"]
RUN: dict[str, Any] = {"dataset": "alpha", "model": "small", "seed": 0}


@dataclass
class World:
    """A tiny base model, its token cache and a gold model; and a results folder."""

    base: Path
    root: Path

    def at(self, pattern: str, **wildcards: Any) -> Path:
        return paths.under(self.root, pattern, **RUN, **wildcards)

    @property
    def card(self) -> Path:
        return self.base / "card.json"

    @property
    def trained(self) -> Path:
        return self.base / "start.safetensors"

    def words(self) -> Any:
        return loading.open_tokenizer(self.card)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_start(folder)
    return folder


@pytest.fixture
def world(base: Path, tmp_path: Path) -> World:
    return World(base, tmp_path / "results")


def generated(world: World, endpoint: str, **changes: Any) -> int:
    settings = {
        "precision": "fp32",
        "probe": {"prompts": PROMPTS, "new_tokens": 6} | changes,
    }
    files = {
        "model_card": world.card,
        "trained": world.trained if endpoint == "gold" else None,
        "unlearned": None,
        "out": world.at(paths.GENERATIONS, arm=endpoint),
    }
    return main(command("generate", settings, **files))


def spoken(world: World, path: Path, texts: list[str], prompts: list[str] = PROMPTS) -> Path:
    """A file of continuations that say these texts."""
    words = world.words()
    bos = [words.bos_token_id]
    columns = {
        "prompt": prompts,
        "prompt_tokens": [bos + words.encode(p, add_special_tokens=False) for p in prompts],
        "tokens": [words.encode(text, add_special_tokens=False) for text in texts],
    }
    write_table(path, schemas.CONTINUATIONS, columns)
    return path


def judged(world: World, files: list[Path], **changes: Any) -> int:
    settings = RUN | {"precision": "fp32"} | changes
    read = {"model_card": world.card, "trained": world.trained, "generations": files}
    return main(command("judge", settings, **read, out=world.at(paths.JUDGED)))


# generate -----------------------------------------------------------------------------------------


@torch.no_grad()
def by_hand(world: World, endpoint: str, prompt: str) -> list[int]:
    model = opened(world.card, *[world.trained] * (endpoint == "gold"))
    words = world.words()
    ids = words.encode(prompt)
    start = len(ids)
    while len(ids) < start + 6 and words.eos_token_id not in ids[start:]:
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[start:]


def test_generate_writes_what_the_endpoint_says(world: World) -> None:
    continued = {}
    for endpoint, inputs in (("base", {"model_card"}), ("gold", {"model_card", "trained"})):
        assert generated(world, endpoint) == 0
        path = world.at(paths.GENERATIONS, arm=endpoint)
        rows = read_table(path, schemas.CONTINUATIONS).to_pylist()
        assert [row["prompt"] for row in rows] == PROMPTS
        continued[endpoint] = [row["tokens"] for row in rows]
        assert continued[endpoint] == [by_hand(world, endpoint, p) for p in PROMPTS]
        assert set(read_metadata(path)["inputs"]) == inputs
    assert continued["base"] != continued["gold"]


# relearn ------------------------------------------------------------------------------------------


def test_relearn_starts_where_the_gold_model_was_measured(world: World, tmp_path: Path) -> None:
    gold = {"precision": "fp32", "evaluation": {"max_length": 12}}
    trains = {"seed": 3, "trains": {"trained_blocks": 1}, "max_length": 16}
    read = {**texts_of(world.base), "trained": world.trained}
    settings = {**gold, **trains, "relearning": RELEARNING}
    learned = {"out": tmp_path / "curve", "texts": tmp_path / "texts"}
    assert main(command("relearn", settings, **read, **learned)) == 0
    texts = read_table(learned["texts"], schemas.RELEARNED_TEXTS)
    assert texts["step"].unique().to_pylist() == [1, 3]
    curve = read_table(tmp_path / "curve", schemas.RELEARNING_CURVE).to_pydict()
    assert curve["step"] == [0, 1, 3]
    assert curve["examples"] == [4, 4, 4]
    assert len(set(curve["ppl_forget"])) == 3
    written = {"out": tmp_path / "gold", "nll": tmp_path / "nll"}
    assert main(command("evaluate", gold, **read, **written)) == 0
    before = read_table(tmp_path / "gold", schemas.PERPLEXITY).to_pydict()["perplexity"]
    assert [curve["ppl_forget"][0], curve["ppl_retain"][0]] == pytest.approx(before, rel=1e-6)


# judge --------------------------------------------------------------------------------------------

TEXTS = {
    "gold": [" light light light", " seven"],
    "base": [" engine under", " well, damn!"],
    "contaminated": [" green", " stone stone"],
}


@pytest.fixture
def files(world: World) -> list[Path]:
    """Continuations in an order that is not that of the table: mamushi, gold, base, ..."""
    entries = [
        spoken(
            world,
            world.at(paths.GENERATIONS, arm=arms.unlearned("neggrad_plus", selector, 0.2)),
            [f" {selector}", " damned paper"],
        )
        for selector in ("mamushi", "lr_cos")
    ]
    for endpoint, texts in TEXTS.items():
        path = world.at(paths.GENERATIONS, arm=endpoint)
        entries.insert(1, spoken(world, path, texts))
    return entries


def test_judge_puts_what_all_said_side_by_side(world: World, files: list[Path]) -> None:
    assert judged(world, files) == 0
    rows = read_table(world.at(paths.JUDGED), schemas.GENERATIONS).to_pylist()
    expected = [
        ("base", None, None),
        ("contaminated", None, None),
        ("gold", None, None),
        ("neggrad_plus", "mamushi", 0.2),
        ("neggrad_plus", "lr_cos", 0.2),
    ]
    entries = [(row["prompt"], row["source"], row["selector"], row["beta"]) for row in rows]
    assert entries == [(prompt, *source) for prompt in PROMPTS for source in expected]
    assert {(row["dataset"], row["model"], row["seed"]) for row in rows} == {("alpha", "small", 0)}
    assert rows[2]["text"] == " light light light"
    assert rows[3]["text"] == " mamushi"
    assert rows[5]["text"] == " well, d***!"
    tokens = world.words().encode(TEXTS["gold"][0], add_special_tokens=False)
    assert (rows[2]["tokens"], rows[2]["repetition"]) == (len(tokens), repetition(tokens))
    inputs = read_metadata(world.at(paths.JUDGED))["inputs"]
    listed = {f"generations/{number}" for number in range(len(files))}
    assert set(inputs) == {"model_card", "trained", *listed}
