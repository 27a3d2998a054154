"""The report's captions render as Snakemake renders them, and name the settings in use."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined

from mamushi.configuration.complete import complete
from mamushi.configuration.settings import EVIDENCE_TABLES, PROBE_TABLES, TABLES, UNLEARNING_TABLES
from mamushi.registry import plugins

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "workflow" / "report"
FOLDER = Path(__file__).parent
CAPTIONS = sorted(path.name for path in REPORT.glob("*.rst"))


def completed() -> dict[str, Any]:
    """The paper's configuration with a tiny model, and one that is already contaminated."""
    given = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    given["models"]["tiny_one"] = {"family": "llama", "pretraining": {"datasets": ["jigsaw"]}}
    given["models"]["own_"] = {"source": None, "contaminated": True}
    given["models"]["gemma-2-2b"]["training"] = {"epochs": 3.5, "steps": "matched"}
    given["grid"] |= {
        "models": ["gemma-2-2b", "tiny_one", "own_"],
        "seeds": [0, 1, 2],
        "budgets": [0.5, 0.1],
        "selectors": ["random", "l2_norm", "mamushi"],
    }
    return complete(given)


CONFIG = completed()


VERDICT = "* ``alpha``, ``own_``: none of these curves can be told from that of ``random``.\n"
INCLUDES = {"sad.rst", "study.rst"}
"""Captions that include what the stage ``tables`` says of differences."""


def rendered(name: str, config: dict[str, Any]) -> str:
    """HTML of a caption; warnings of docutils are errors here."""
    with TemporaryDirectory() as tables:
        (Path(tables) / "sad_differences.rst").write_text(VERDICT, encoding="utf-8")
        return _rendered(name, config, f"{tables}/sad.parquet")


def _rendered(name: str, config: dict[str, Any], sad: str) -> str:
    env = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    targets = ["sad.png", "perplexity.png", "sad_summary.csv", "advice.csv", "frontier.png"]
    targets += ["half_gap.csv", "half_gap.png"]
    links = "".join(f"\n.. _{t}: #{t}" for t in [*targets, "Workflow", "Statistics"])
    text = env.from_string((REPORT / name).read_text(encoding="utf-8") + "\n" + links).render(
        snakemake=SimpleNamespace(
            config=config,
            input=[sad],
            wildcards=SimpleNamespace(
                study="reverse", dataset="jigsaw", model="gemma-2-2b", seed=0
            ),
        ),
        files=[SimpleNamespace(target=target) for target in targets],
        categories={},
    )
    strict = {"halt_level": 2, "report_level": 2, "raw_enabled": False}
    return str(publish_parts(text, writer="html", settings_overrides=strict)["html_body"])


@pytest.mark.parametrize("name", CAPTIONS)
def test_captions_render_without_a_warning(name: str) -> None:
    html = rendered(name, CONFIG)
    assert "{{" not in html
    assert "{%" not in html
    assert str(FOLDER) not in html
    assert ("can be told from" in html) == (name in INCLUDES)


CHANGES: dict[str, dict[str, Any]] = {
    "one seed": {"grid": CONFIG["grid"] | {"seeds": [4], "selectors": ["mamushi"]}},
    "logarithmic": {"figures": CONFIG["figures"] | {"log_scale": True}},
    "no studies": {"studies": {}},
}


@pytest.mark.parametrize(
    ("name", "change"),
    # The caption of a study needs the study.
    [(n, c) for n in CAPTIONS for c in CHANGES if (n, c) != ("study.rst", "no studies")],
)
def test_captions_render_with_other_settings(name: str, change: str) -> None:
    assert rendered(name, CONFIG | CHANGES[change])


@pytest.mark.parametrize(
    "name", ["workflow.rst", "sad.rst", "study.rst", "sad_table.rst", "sad_summary.rst"]
)
def test_captions_state_the_budgets(name: str) -> None:
    assert "0.1, 0.5" in rendered(name, CONFIG)


@pytest.mark.parametrize("name", ["frontier.rst", "frontier_table.rst", "advice.rst"])
def test_captions_state_the_budgets_of_the_frontier(name: str) -> None:
    assert CONFIG["grid"]["budgets"] == [0.5, 0.1]
    changed = {**CONFIG, "evidence": {**CONFIG["evidence"], "budgets": [0.33, 0.1]}}
    assert "udgets 0.1, 0.33, 0.5" in " ".join(rendered(name, changed).split())


def test_every_figure_and_table_has_a_caption() -> None:
    # A figure and a table of the same name need captions of their own.
    tables = {*TABLES, *UNLEARNING_TABLES, *PROBE_TABLES, *EVIDENCE_TABLES, "qualitative_ranking"}
    figures = {*plugins("figure")}
    apart = {f"{name}_table" if name in figures else name for name in tables}
    # Named like a section of the configuration, or like several figures together.
    apart = apart - {"unlearning"} | {"unlearning_table"}
    apart = apart - {"geometry"} | {"geometry_table"}
    assert {f"{name}.rst" for name in figures | apart} <= set(CAPTIONS)


def test_the_front_page_counts_the_retrainings_and_lists_the_models() -> None:
    html = rendered("workflow.rst", CONFIG)
    # 3 selectors, 2 budgets, 2 datasets, 3 models, 3 seeds
    assert "108 retrained models" in html
    assert "llama architecture" in html
    assert CONFIG["models"]["gemma-2-2b"]["revision"][:8] in html
    assert "already contaminated" in html
    assert "3.5" in html


def test_captions_follow_the_settings() -> None:
    assert "one standard error" in rendered("sad.rst", CONFIG)
    assert "no error to show" in rendered("sad.rst", CONFIG | CHANGES["one seed"])
    assert "logarithmic" in rendered("sad.rst", CONFIG | CHANGES["logarithmic"])
    assert "logarithmic" not in rendered("sad.rst", CONFIG)
    assert "turned round" in rendered("study.rst", CONFIG)
