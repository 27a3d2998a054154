"""What the gold model makes of what models said, on a tiny model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.config import arms
from mamushi.evaluation.probes import repetition
from mamushi.io import paths, schemas
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.lm import loading
from tests.support.stage_files import command, write_start

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
