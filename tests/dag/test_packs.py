"""Packs of short jobs, as a dry run with the SLURM profile shows them; it needs no SLURM."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.demo import whole
from tests.support.workflow import ROOT, run

PROFILE = ROOT / "profiles" / "slurm"


def science(**grid: object) -> dict[str, Any]:
    demo = whole()
    demo["grid"] |= grid
    return demo


def packs(said: str) -> dict[str, list[tuple[str, str]]]:
    """Rule and wildcards of every member, by the pack's name."""
    groups = re.findall(r"Group job (\S+) \(jobs in lexicogr\. order\):\n((?:\n| {4}.*\n)*)", said)
    member = re.compile(r"^ {4}rule (\w+):$.*?^ {8}wildcards: (.*?)$", re.MULTILINE | re.DOTALL)
    return {name: member.findall(text) for name, text in groups}


def dry(
    folder: Path, config: dict[str, Any], *args: str | Path
) -> dict[str, list[tuple[str, str]]]:
    done = run("all", "unlearning", "--dry-run", *args, directory=folder, config=config)
    return packs(done.stdout)


def test_jobs_that_differ_in_one_thing_share_a_pack_of_four_at_most(tmp_path: Path) -> None:
    budgets = [round(0.1 * number, 1) for number in range(1, 10)]
    config = science(budgets=budgets, selectors=["random", "mamushi"], seeds=[0, 1])
    found = dry(tmp_path, config, "--profile", PROFILE)
    counted = Counter(rule for members in found.values() for rule, _ in members)
    assert counted["retrain"] + counted["retrain_and_probe"] == 9 * 2 * 2
    assert counted["unlearn"] + counted["unlearn_and_probe"] == 3 * 2 * 2 * 2
    assert counted["unlearn_whole"] == counted["evaluate"] == 4
    assert {len(members) for members in found.values()} <= {1, 2, 3, 4}
    varies = {"retrain": "beta", "unlearn": "beta", "evaluate": "arm"}
    for pack, members in found.items():
        rule = pack.split("+")[0]
        assert {name for name, _ in members} <= {rule, f"{rule}_and_probe"}
        # The same values of all wildcards but one.
        axis = rf"\b{varies.get(rule, 'unlearner')}=[^,]+"
        assert len({re.sub(axis, "", wildcards) for _, wildcards in members}) == 1
    # Nothing else: what others wait for starts as soon as it can.
    assert {pack.split("+")[0] for pack in found} == {
        *("retrain", "unlearn", "unlearn_whole", "evaluate")
    }


def test_a_pack_does_not_depend_on_what_else_is_left_to_do(tmp_path: Path) -> None:
    """Snakemake deals jobs out anew after every checkpoint, while packs are running."""
    config = science(budgets=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], selectors=["random"], seeds=[0])
    whole = dry(tmp_path, config, "--profile", PROFILE)
    fewer = run(
        *("--dry-run", "--profile", PROFILE),
        *(
            f"results/runs/synthetic/tiny-llama/seed0/arms/retrained/random/beta0.{n}0/perplexity.parquet"
            for n in (2, 6)
        ),
        directory=tmp_path,
        config=config,
    ).stdout
    part = packs(fewer)
    assert sum(map(len, part.values())) == 2
    for name, members in part.items():
        assert set(members) <= set(whole[name])
