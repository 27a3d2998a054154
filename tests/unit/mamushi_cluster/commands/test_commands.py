"""The commands that start the workflow: what they hand to Snakemake, and where it is found."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.cli import main
from mamushi.io.files import write_json
from mamushi_cluster.commands import _run
from mamushi_curate.commands import init, rank, show
from tests.support.workflow import ROOT

GRID: dict[str, Any] = {
    **{"datasets": ["newsgroups"], "models": ["gemma-2-2b"], "seeds": [0, 1]},
    **{"budgets": [0.1], "selectors": ["mamushi"]},
}
MINE = yaml.safe_dump({"extends": "paper", "grid": GRID})
"""A configuration in which there is no mistake."""
RANK = ["rank", "data.csv", "--text", "body", "--forget", "bad", "--model", "folder"]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Snakemake's command lines, after the workflow's name; it makes nothing."""
    found: list[list[str]] = []

    def wait(line: list[str]) -> int:
        assert line[0] == "--snakefile"
        found.append(line[2:])
        return 0

    monkeypatch.setattr(_run, "_run_snakemake", wait)
    return found


def test_run_and_report_take_the_configuration_that_is_there(
    tmp_path: Path, lines: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    profile = ["--profile", str(ROOT / "profiles" / "gpu")]
    assert main(["run", "removals"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"mamushi run: error: {tmp_path}: no configuration mine.yaml")
    assert "mamushi init" in said and said.count("\n") == 1 and lines == []
    configured()
    (tmp_path / "other.yaml").write_text(MINE, encoding="utf-8")
    assert main(["run", "removals"]) == 0
    assert main(["run", "evidence", "left", "--dry-run", "--configfile", "other.yaml"]) == 0
    assert main(["report", "evidence", "--out", "there.html"]) == 0
    assert lines == [
        [*profile, *_run.RUNNING, "--configfile", "mine.yaml", "--", "removals"],
        [
            *(*profile, "--dry-run", "--quiet", "rules"),
            *("--configfile", "other.yaml", "--", "evidence", "left"),
        ],
        [
            *(*profile, *_run.RUNNING, "--configfile", "mine.yaml"),
            *("--report", "there.html", "--", "evidence"),
        ],
    ]
    # A profile with a configuration of its own needs no other.
    (tmp_path / "mine.yaml").unlink()
    assert main(["run", "--profile", "demo"]) == 0
    assert "--configfile" not in lines[-1]
    assert main(["run", "--configfile", "otehr.yaml"]) == 2
    assert "otehr.yaml: no such file" in capsys.readouterr().err


def test_a_list_at_a_budget_of_one_s_own(
    lines: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    configured()
    card = Path("results/data/newsgroups/card.json")
    card.parent.mkdir(parents=True)
    write_json(card, {"counts": {"sections": {"inference": {"forget": 1700}}}})
    lists = "results/runs/newsgroups/gemma-2-2b/seed{}/removals/{}/beta{}.parquet"
    for words, selector, beta in (
        (["--budget", ".16"], "lr_cos", "0.16"),
        (["--budget", "0.1250"], "lr_cos", "0.125"),
        # 7 of 1,700 are 0.41%, and 0.4% are 6.
        (["--texts", "7", "--selector", "random"], "random", "0.0042"),
    ):
        assert main(["list", *words]) == 0
        wanted = [lists.format(seed, selector, beta) for seed in (0, 1)]
        assert lines[-1][-3:] == ["--", *wanted]
        assert capsys.readouterr().out.splitlines() == wanted
    assert len(lines) == 3


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[str]]]:
    """Targets and configurations that the workflow was started with; it makes nothing."""
    found: list[tuple[list[str], list[str]]] = []

    def run(wanted: list[str], configfiles: list[Path], args: Any) -> int:
        found.append((wanted, [str(path) for path in configfiles]))
        return 0 if "--fail" not in args.snakemake_args else 1

    monkeypatch.setattr(_run, "run", run)
    return found


def configured(*_: object) -> None:
    quick = {"extends": "paper", "grid": {**GRID, "selectors": ["lr_cos"]}}
    Path("mine.yaml").write_text(yaml.safe_dump(quick), encoding="utf-8")


def test_rank_leaves_a_grid_to_the_workflow(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[bool] = []
    monkeypatch.setattr(init, "write_configuration", configured)
    monkeypatch.setattr(show, "show", lambda root, texts: shown.append(texts) or [])
    assert main(RANK) == 0
    ((wanted, files),) = started
    assert files == ["mine.yaml"] and shown == [True]
    assert wanted[0] == "removals" and len(wanted) == 1 + 3 * 2
    assert "results/runs/newsgroups/gemma-2-2b/seed1/ranking.html" in wanted
    # Without the table: with what is there.
    monkeypatch.setattr(init, "write_configuration", lambda *_: pytest.fail("asked again"))
    assert main(["rank", "--quick"]) == 0 and len(shown) == 2
    assert started[-1] == ([wanted[0], *wanted[1:3]], ["mine.yaml", str(rank.QUICK)])
    # Nothing is shown of a run that failed, or of a dry one.
    assert main(["rank", "--snakemake-args=--fail"]) == 1
    assert main(["rank", "--dry-run"]) == 0
    assert len(shown) == 2


def test_unlearn_adds_the_list_to_the_configuration(
    lines: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text(MINE, encoding="utf-8")
    Path("agreed on.txt").write_text("a\nb\n", encoding="utf-8")
    assert main(["unlearn", "agreed on.txt"]) == 0
    *_, configfile, option, added, _, target = lines[0]
    assert (configfile, option, target) == ("mine.yaml", "--config", "unlearned")
    assert yaml.safe_load(added.removeprefix("unlearning=")) == {
        **{key: GRID[key] for key in ("datasets", "models", "seeds")},
        "unlearners": ["neggrad_plus"],
        "lists": {"agreed-on": "agreed on.txt"},
    }
    arm = "seed0/arms/neggrad_plus/lists/agreed-on/trained.safetensors"
    made = f"results/runs/newsgroups/gemma-2-2b/{arm}"
    said = capsys.readouterr().out
    assert f"unlearned: {made}" in said and f"--trained {made} --out FOLDER" in said
    # An edit of the logits is no model's weights, and goes around its head.
    assert main(["unlearn", "agreed on.txt", "--unlearner", "logit_bias"]) == 0
    said = capsys.readouterr().out
    assert "/logit_bias/lists/agreed-on/" in said and "--to edit --out FOLDER" in said
