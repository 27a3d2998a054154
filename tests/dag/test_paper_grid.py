"""The paper's grid in a dry run: on a machine without data, weights or a GPU, and in the time that
Snakemake itself takes for a grid of this size.

CPU time is compared with that of a bare Snakefile in the same minute: the same jobs, files and
logs, without settings, resources or anything else that Mamushi adds.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.support.demo import whole
from tests.support.workflow import ROOT, run

BARE = """
import json
found = json.loads(open("files.json").read())
reads = {
    name: {json.dumps(sorted(wildcards.items())): files for wildcards, files in rule["jobs"]}
    for name, rule in found["rules"].items()
}
def reading(name):
    return lambda wildcards: reads[name][json.dumps(sorted(wildcards.items()))]
wildcard_constraints:
    seed=r"\\d+",
    beta=r"0\\.\\d\\d",
    arm=r"base|contaminated|gold|beta0|retrained/[^/]+/beta0\\.\\d\\d",
    dataset=r"[^/]+",
    model=r"[^/]+",
    selector=r"[^/]+",
    unlearner=r"[^/]+",
rule all:
    input: found["targets"]
"""


def jobs(output: str) -> dict[str, int]:
    """Jobs by rule, out of what a dry run with ``--quiet rules`` prints."""
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def bare(graph: dict[str, Any], folder: Path) -> None:
    """Write a Snakefile with the same jobs."""
    targets = graph.pop("targets")
    (folder / "files.json").write_text(json.dumps({"rules": graph, "targets": targets}))
    text = [BARE]
    for name, rule in graph.items():
        inputs = f"reading({name!r})" if rule["input"] is None else repr(rule["input"])
        text.append(f"rule {name}:\n    input: {inputs}\n    output: {rule['output']}\n")
        text += [f"    log: {rule['log']!r}\n"] if rule["log"] else []
        text.append("    shell: 'true'\n")
    (folder / "Snakefile").write_text("".join(text))


def test_studies_are_targets_of_their_own(tmp_path: Path) -> None:
    # The demo's model, so that the test is about the targets and takes two seconds.
    science = whole()
    science["grid"]["selectors"] = ["random"]
    science["studies"] = {
        "reverse": {
            "datasets": ["synthetic"],
            "models": ["tiny-llama"],
            "selectors": ["random", "mamushi", "anti_mamushi"],
        },
        "estimator": None,
    }
    grid = jobs(run("--dry-run", "-q", "rules", directory=tmp_path, config=science).stdout)
    assert grid["retrain"] == 2 * 1 * 3
    assert "figure_study" not in grid
    studies = jobs(run("studies", "-n", "-q", "rules", directory=tmp_path, config=science).stdout)
    assert studies["retrain"] == 2 * 3 * 3
    assert studies["figure_study"] == studies["study_tables"] == 1


def test_the_real_run_is_of_one_model_in_aligned_steps(tmp_path: Path) -> None:
    science = yaml.safe_load((ROOT / "studies/real/config.yaml").read_text(encoding="utf-8"))
    folder = tmp_path / science["models"]["smollm2"]["source"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    output = run("all", "studies", "-n", "-q", "rules", directory=tmp_path, config=science).stdout
    counted = jobs(output)
    assert (counted["examples"], counted["model_card"]) == (1, 1)
    assert (counted["retrain"], counted["gold"], counted["beta0"]) == (7 * 3, 1, 1)
