"""The report's captions as Snakemake renders them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import yaml
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined

from mamushi.config.complete import complete
from mamushi.io.rst import list_table

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "workflow" / "report"
KEPT = TemporaryDirectory()
FOLDER = Path(KEPT.name)
"""A model's folder, by the one file that is looked for."""
(FOLDER / "config.json").touch()


def completed() -> dict[str, Any]:
    """The paper's configuration with a tiny model, and one that is already contaminated."""
    given = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    given["models"]["tiny_one"] = {"family": "llama", "pretraining": {"datasets": ["jigsaw"]}}
    given["models"]["own_"] = {"source": str(FOLDER), "contaminated": True}
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
PAGE = list_table("Alpha: f***", ["Selector"], [["Mamushi"]])
INCLUDES = {"sad.rst", "study.rst"}
"""Captions that include what the stage ``tables`` says of differences."""


TARGETS = (
    *("sad.png", "perplexity.png", "sad_summary.csv", "advice.csv", "frontier.png"),
    *("half_gap.csv", "half_gap.png"),
)


def rendered(name: str) -> str:
    """HTML of a caption in a report on ``TARGETS``; warnings of docutils are errors here."""
    with TemporaryDirectory() as tables:
        (Path(tables) / "sad_differences.rst").write_text(VERDICT, encoding="utf-8")
        for page in ("synergy", "generations", "qualitative_ranking"):
            (Path(tables) / f"{page}.rst").write_text(PAGE, encoding="utf-8")
        return _html(name, f"{tables}/sad.parquet")


def _html(name: str, sad: str) -> str:
    env = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    links = "".join(f"\n.. _{t}: #{t}" for t in [*TARGETS, "Workflow", "Statistics"])
    text = env.from_string((REPORT / name).read_text(encoding="utf-8") + "\n" + links).render(
        snakemake=SimpleNamespace(
            config=CONFIG,
            input=[sad],
            output=[sad],
            wildcards=SimpleNamespace(
                study="reverse", dataset="jigsaw", model="gemma-2-2b", seed=0
            ),
        ),
        files=[SimpleNamespace(target=target, path=f"results/{target}") for target in TARGETS],
        categories={},
    )
    strict = {"halt_level": 2, "report_level": 2, "raw_enabled": True}
    return str(publish_parts(text, writer="html", settings_overrides=strict)["html_body"])
