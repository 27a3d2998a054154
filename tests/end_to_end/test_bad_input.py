"""What a user sees when something is wrong with the input: one clear line, before any training, and
nothing half-written. Every test runs the workflow itself. Bad datasets share one run, and bad
models another: ``--keep-going`` shows that each is told on its own.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mamushi.io import paths
from tests.support.disk import fill, small_disk
from tests.support.workflow import command, run, warmed

MAX_CHARACTERS = 1000
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath")

Done = subprocess.CompletedProcess


# What runs, and what may be seen of it ------------------------------------------------------------


def configuration(
    datasets: Mapping[str, Any], models: Mapping[str, Any], **changes: Any
) -> dict[str, Any]:
    """A grid of these with everything as small as it goes."""
    return {
        "grid": {
            "datasets": list(datasets),
            "models": list(models),
            "seeds": [0],
            "budgets": [0.5],
            "selectors": ["l2_norm"],
        },
        "studies": None,
        "data": {"max_characters": MAX_CHARACTERS},
        "datasets": dict(datasets),
        "models": dict(models),
        "tokens": {"max_length": 16},
        "training": {"epochs": 1, "max_length": 16, "precision": "fp32"},
        "embedding": {"max_length": 16, "precision": "fp32"},
        "evaluation": {"max_length": 16},
        "removal": {"ratio": "l2_norm"},
        **changes,
    }


def table(path: Path, **changes: Any) -> dict[str, Any]:
    """A dataset that is a file with the columns id, text and domain."""
    return {
        "kind": "table",
        "path": str(path),
        "id": "id",
        "forget": {"column": "domain", "values": ["bad"]},
        "sections": {"contamination": 0.4, "inference": 0.4, "evaluation": 0.2},
        **changes,
    }


def rows(count: int = 60) -> list[tuple[str, str, str]]:
    """Different texts, every third of the forget domain."""
    return [
        (f"r{i}", f"{WORDS[i % 8]} {WORDS[i // 8 % 8]} number {i}", "good" if i % 3 else "bad")
        for i in range(count)
    ]


def csv_of(lines: list[tuple[str, str, str]], header: str = "id,text,domain") -> bytes:
    return "\n".join([header, *map(",".join, lines), ""]).encode()


def model_in(folder: Path) -> dict[str, Any]:
    """A model in a folder that is no model at a second glance."""
    write(folder / "config.json", b"{}")
    return {"source": str(folder)}


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def errors(done: Done[str], log: str) -> list[str]:
    """The errors in a job's log as Snakemake shows it after the job's failure."""
    shown = re.findall(rf"Logfile results/logs/{log}:\n=+\n(.*?)\n=+\n", done.stdout, re.DOTALL)
    assert len(shown) == 1, done.stdout
    return [line for line in shown[0].splitlines() if "error" in line.lower()]


BESIDE = ("logs", "claims", "digests")


def artifacts(directory: Path) -> list[str]:
    """What lies in the results folder, hidden files too, besides what ``BESIDE`` names."""
    results = directory / "results"
    files = (path.relative_to(results) for path in results.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if path.parts[0] not in BESIDE)


def stopped(done: Done[str]) -> str:
    """What a run that failed as it should has said."""
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


# Found by reading the configuration ---------------------------------------------------------------


def test_missing_file_and_unknown_selector_before_any_job(tmp_path: Path) -> None:
    """All mistakes at once, one line each, and not even the folder of results is there."""
    config = configuration({"own": table(tmp_path / "gone.csv")}, {"m": model_in(tmp_path)})
    missing = stopped(run("removals", directory=tmp_path, config=config, check=False))
    line = f"datasets.own.path: '{tmp_path}/gone.csv' is not allowed; no such file"
    assert missing.splitlines().count(line) == 1

    config["grid"]["selectors"] = ["mamushy"]
    unknown = stopped(run("removals", directory=tmp_path, config=config, check=False))
    (line,) = (line for line in unknown.splitlines() if "mamushy" in line)
    assert line.startswith("grid.selectors[0]: unknown selector 'mamushy'; did you mean 'mamushi'?")
    for selector in ("random", "l2_norm", "vmf", "kcenter", "anti_mamushi"):
        assert selector in line.partition("known are:")[2]
    assert not (tmp_path / "results").exists()


def test_path_that_is_not_set_stops_a_real_run_and_no_dry_run(tmp_path: Path) -> None:
    models = {"m": {"source": "${MAMUSHI_TEST_MODEL}"}}
    datasets = {"jigsaw": {"kind": "jigsaw", "path": "${MAMUSHI_JIGSAW}"}}
    config = configuration(datasets, models)
    env = {"MAMUSHI_TEST_MODEL": None}
    run("all", "--dry-run", "--quiet", directory=tmp_path, config=config, env=env)
    text = stopped(run("all", directory=tmp_path, config=config, env=env, check=False))
    lines = [line for line in text.splitlines() if "no path is given" in line]
    assert [line.partition(":")[0] for line in lines] == ["datasets.jigsaw.path", "models.m.source"]
    assert "train.csv, test.csv, test_labels.csv" in lines[0]
    assert not (tmp_path / "results").exists()
    # What does not need them goes on: here, a dataset and nothing else.
    config["datasets"]["own"] = table(write(tmp_path / "own.csv", csv_of(rows())))
    config["grid"]["datasets"].append("own")
    run(paths.DATA_CARD.format(dataset="own"), directory=tmp_path, config=config, env=env)


# Bad data -----------------------------------------------------------------------------------------


TINY = {
    "family": "llama",
    "hidden_size": 16,
    "layers": 3,
    "heads": 2,
    "key_value_heads": 1,
    "intermediate_size": 32,
    "vocabulary_size": 280,
    "max_positions": 32,
}


# Bad models ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model, as a lab would keep its own."""
    from mamushi.lm import tiny

    folder = tmp_path_factory.mktemp("model")
    built, tokenizer = tiny.build(TINY, [text for _, text, _ in rows()], seed=0)
    built.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


# Two runs at once, and damage in between ----------------------------------------------------------

CELL = {"dataset": "own", "model": "lab", "seed": 0}
EMBEDDINGS = paths.EMBEDDINGS.format(**CELL)
TRAINED = paths.TRAINED.format(**CELL, arm="contaminated")
SCORES = paths.SCORES.format(**CELL, selector="l2_norm")


@dataclass(frozen=True)
class Pair:
    """Two runs in one folder: the second started while the first was at work."""

    folder: Path
    config: dict[str, Any]
    first: Done[str]
    second: Done[str]
    between: bool
    """Whether the first was still at work when the second had ended."""


@pytest.fixture(scope="module")
def pair(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("pair")
    dataset = table(write(folder / "own.csv", csv_of(rows())))
    config = configuration({"own": dataset}, {"lab": {"source": str(model)}})
    first = subprocess.Popen(
        command(EMBEDDINGS, directory=folder, config=config),
        env=warmed(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    locks = folder / ".snakemake/locks"
    while first.poll() is None and not (locks.is_dir() and any(locks.iterdir())):
        time.sleep(0.05)
    second = run(EMBEDDINGS, directory=folder, config=config, check=False)
    between = first.poll() is None
    output, _ = first.communicate()
    return Pair(folder, config, Done(first.args, first.returncode, output), second, between)


@pytest.fixture
def halfway(pair: Pair, tmp_path: Path) -> Path:
    """A folder of the test's own with all that comes before the scores."""
    return Path(shutil.copytree(pair.folder, tmp_path / "halfway"))


def test_second_run_in_a_folder_stops_and_the_first_is_undisturbed(pair: Pair) -> None:
    text = stopped(pair.second)
    assert pair.between
    assert text.count("Directory cannot be locked. Please make sure that no other Snakemake") == 1
    assert f"following directory:\n{pair.folder}\n" in text
    assert "It can be removed with the --unlock argument." in text
    assert "rule" not in text.partition("cannot be locked")[2]
    assert pair.first.returncode == 0, pair.first.stdout
    assert {EMBEDDINGS, TRAINED} <= {f"results/{path}" for path in artifacts(pair.folder)}
    assert not any(path.endswith(".part") for path in artifacts(pair.folder))


@pytest.mark.parametrize(
    ("damaged", "target", "log", "words"),
    [
        (EMBEDDINGS, SCORES, "score/own/lab/seed0/l2_norm.log", "damaged, or written by an"),
        (TRAINED, EMBEDDINGS, "embed/own/lab/seed0.log", "damaged, or written by an"),
    ],
)
def test_damaged_artifact_is_named(
    pair: Pair, halfway: Path, damaged: str, target: str, log: str, words: str
) -> None:
    """Such as a disk leaves behind. It is not overwritten, and what to do is said."""
    (halfway / target).unlink(missing_ok=True)
    before = artifacts(halfway)
    (halfway / damaged).write_bytes((halfway / damaged).read_bytes()[:-100])
    done = run(target, directory=halfway, config=pair.config, check=False)
    stopped(done)
    (line,) = errors(done, log)
    assert f"error: {damaged}: {words}" in line
    assert re.search("; (delete it and run again|make it again)$", line)
    assert artifacts(halfway) == before


def test_full_disk_leaves_no_part_of_a_checkpoint(pair: Pair, tmp_path: Path) -> None:
    with small_disk(tmp_path / "results"):
        shutil.copytree(pair.folder, tmp_path, dirs_exist_ok=True)
        shutil.rmtree((tmp_path / TRAINED).parent)
        fill(tmp_path / "results", leave=2**14)
        before = artifacts(tmp_path)
        config = {**pair.config, "execution": {"checkpoint_seconds": 0}}
        done = run(TRAINED, directory=tmp_path, config=config, check=False)
        stopped(done)
        # The only step is the last one, whose state nobody needs: what does not fit is the result.
        # In the log of the job, and at the end of the run.
        (line,) = {*re.findall("^mamushi .*: error: .*$", done.stdout, re.MULTILINE)}
        assert f"error: {TRAINED}: no space left while writing it" in line
        assert line.endswith("; free some space and run the same command again")
        assert artifacts(tmp_path) == before
