"""From a table and a model's folder to a cleaned table with the console command alone, and what it
says: the transcript in docs/guide/command.md is what this test sees."""

import re
import shlex
import shutil
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.support.lab import write_lab
from tests.support.pages import commands
from tests.support.workflow import ROOT, SNAKEMAKE, mamushi, output_of, warmed

PAGE = ROOT / "docs/guide/command.md"
QUICK = "--cores 1"
"""Which the transcript leaves out: its times are not shown either."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``comments.csv``, the same as ``comments.parquet``, and the model ``ours``."""
    folder = tmp_path_factory.mktemp("lab")
    write_lab(folder)
    pq.write_table(pyarrow.csv.read_csv(folder / "comments.csv"), folder / "comments.parquet")
    return folder


def transcript() -> list[tuple[str, list[str]]]:
    """The commands of a page, and what it shows of each."""
    (block,) = re.findall(r"^```text\n(\$ .*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    parts = re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.M)[1:]
    return [(first, rest) for first, *rest in map(str.splitlines, parts)]


def plain(line: str) -> str:
    """A line without what differs from run to run and from machine to machine: numbers, the folder
    of the run, and which text is where."""
    line = re.sub(r"/\S*?/(?=comments\.|ours\b)", "", line)
    line = re.sub(r"(?<=list      )[\d,]+", "#", line)
    ranked = re.match(r" +[\d,]+ +-?\d+\.\d\d  (stays )?", line)
    if ranked:
        return f"# {ranked[1] or ''}text"
    return re.sub(r"\d[\d,.]*", "#", line).rstrip()


def pattern(shown: list[str]) -> str:
    """What a page shows of an output; in the place of a line ``...`` it leaves one or more out."""
    gap = "(?:.*\\n)+"
    lines = [gap if line.strip() == "..." else re.escape(f"{plain(line)}\n") for line in shown]
    return "".join(lines)


@pytest.mark.slow
def test_the_transcript_of_the_docs(lab: Path) -> None:
    """The next steps that it prints work."""
    for command, shown in transcript():
        program, *words = shlex.split(command)
        assert program == "mamushi"
        done = mamushi(lab, *words)
        lines = [f"{plain(line)}\n" for line in done.stdout.splitlines()]
        assert re.fullmatch(pattern(shown), "".join(lines)), done.stdout
        printed = re.findall(r"^  (?:how many|remove) +mamushi (\w+)(.*)", done.stdout, re.M)
        next_steps = dict(printed)
        assert {*next_steps} == ({"advise", "apply"} if words[0] == "rank" else set())
        for step, rest in next_steps.items():
            mamushi(lab, step, *shlex.split(rest))
    assert (lab / "comments.clean.csv").is_file()

    # The table is the one that was ranked, without the rows of the list.
    list_ = lab / "results/runs/comments/ours/seed0/removals/stack/beta0.20.parquet"
    gone = {
        name for row in pq.read_table(list_).to_pylist() for name in (row["id"], *row["copies"])
    }
    before = pq.read_table(lab / "comments.parquet").to_pylist()
    after = pq.read_table(lab / "clean.parquet").to_pylist()
    assert after == [row for row in before if row["id"] not in gone]
    assert 0 < len(gone) == len(before) - len(after)

    # An ordinary folder of the workflow.
    assert "Nothing to be done" in again(lab)


READS = {"advise", "apply", "list", "report"}
"""Commands that take what was ranked."""


@pytest.mark.slow
def test_what_the_pages_do_with_results_works_without_a_clone(lab: Path) -> None:
    """In the order of the pages, in the folder of the transcript."""
    (_, *words), *_ = [shlex.split(command) for command, _ in transcript()]
    mamushi(lab, *words)
    (lab / "second-request.txt").write_text("c1\n", encoding="utf-8")
    shutil.copytree(lab / "ours", lab / "models" / "retrained-2")
    asked = [words for words in commands() if words[0] in READS]
    assert {words[0] for words in asked} == READS
    for words in asked:
        # The pages have one table under several names.
        names = [re.sub(r"^/data/training\.|^training\.", "comments.", word) for word in words]
        names = [name.replace("/runs/training/", "/runs/comments/") for name in names]
        # Of the transcript, which nothing writes over.
        for made in lab.glob("*clean*") if words[0] == "apply" else ():
            made.unlink()
        quick = ["--snakemake-args", QUICK] if words[0] == "report" else []
        mamushi(lab, *names, *quick)
    assert (lab / "results" / "report.html").is_file()


def again(lab: Path) -> str:
    words = [SNAKEMAKE, "removals", "--snakefile", ROOT / "Snakefile", "--dry-run"]
    words += ["--configfile", "mine.yaml", *shlex.split(QUICK)]
    return output_of(*words, cwd=lab, env=warmed())
