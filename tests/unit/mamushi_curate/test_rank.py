"""`mamushi rank` in one process: what it makes, makes again and leaves to Snakemake."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from mamushi.cli import main
from mamushi.io.files import sha256
from tests.support.lab import write_lab
from tests.support.workflow import ROOT, environment, warmed

WORDS = ["rank", "comments.csv", "--text", "body", "--id", "id", "--forget", "source == 'theirs'"]
GONE = ("results/ranked.json", "results/index.html", "results/digests/")
"""Which hold dates."""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A folder with ``comments.csv``, to which the process has gone."""
    write_lab(tmp_path)
    return tmp_path


def made(folder: Path) -> dict[str, float]:
    """Return the dates of the tables, lists and pages in a folder."""
    files = [path for path in (folder / "results").rglob("*") if path.is_file()]
    names = {str(path.relative_to(folder)): path for path in files if path.suffix != ".log"}
    return {name: path.stat().st_mtime for name, path in names.items() if not name.startswith(GONE)}


def test_what_was_ranked_is_made_once_and_taken_by_snakemake(
    lab: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in warmed(PYTHONPATH=str(ROOT / "workflow")).items():
        monkeypatch.setenv(name, value)
    assert main(WORDS) == 0
    first = made(lab)
    assert main(["rank"]) == 0 and made(lab) == first
    config = yaml.safe_load(Path("mine.yaml").read_text("utf-8"))
    assert main(["run", "removals", "--dry-run"]) == 0
    assert "Job stats" not in "".join(capfd.readouterr())
    # With another configuration it runs again, by Snakemake too.
    config["grid"]["budgets"] = [0.2, 0.4]
    config["evidence"]["refits"]["halves"] = 4
    Path("mine.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert main(["run", "removals", "--cores", "1"]) == 0
    second = made(lab)
    stale = {name for name, date in first.items() if second[name] != date}
    cell = "results/runs/comments/words/seed0"
    assert {f"{cell}/stability/stack.parquet", f"{cell}/refits/stack.parquet"} <= stale
    assert not {f"{cell}/scores/stack.parquet", f"{cell}/removals/stack/beta0.20.parquet"} & stale
    # And what Snakemake made is not made again here.
    assert main(["rank"]) == 0
    third = made(lab)
    assert {name for name, date in second.items() if third[name] != date} <= {
        *(f"{cell}/{name}" for name in ("ranking.html", "frontier.parquet")),
    }


@pytest.mark.slow
def test_a_rank_killed_at_random_moments_ends_in_the_same_bytes(lab: Path) -> None:
    assert main(WORDS) == 0
    names = [name for name in made(lab) if not name.endswith((".pdf", ".png", ".json"))]
    wanted = {name: sha256(lab / name) for name in names}
    draw = random.Random(0)
    command = [sys.executable, "-m", "mamushi", *WORDS, "--force"]
    env = environment(PYTHONPATH=str(ROOT / "workflow"))
    for turn in range(4):
        folder = lab / f"killed{turn}"
        folder.mkdir()
        (folder / "comments.csv").symlink_to(lab / "comments.csv")
        with subprocess.Popen(command, cwd=folder, env=env) as process:
            time.sleep(draw.uniform(0.5, 6))
            process.kill()
        os.chdir(folder)
        assert main(command[3:]) == 0
        assert {name: sha256(folder / name) for name in wanted} == wanted
