"""What the paper proves, beside what was measured where the truth is known."""

from mamushi.config.grid import cells
from mamushi.config.kinds import Config
from mamushi.io import paths
from mamushi.registry import plugin
from mamushi.stages.publish import Needs, Published


def theory(config: Config) -> Needs:
    """Return the exact log-density ratio and its estimate of all cells of the grid that have one,
    these cells, the budgets, and the selector whose scores estimate the ratio."""
    kinds = {name: dataset["kind"] for name, dataset in config["datasets"].items()}
    known = {name for name, kind in kinds.items() if plugin("dataset", kind).knows_truth}
    true = [cell for cell in cells(config["grid"]) if cell["dataset"] in known]
    settings = {"cells": true, "budgets": config["grid"]["budgets"]}
    settings["selector"] = config["removal"]["ratio"]
    files = [path.format(**cell) for path in (paths.EXAMPLES, paths.CALIBRATED) for cell in true]
    return files, settings


TABLES = {"theory": Published("Theory", ("theory",), "mamushi_extras.theory.statements", theory)}
