"""What the result tables of the core are made of: see ``stages.publish``."""

from typing import Any

from mamushi.config import arms, grid
from mamushi.config import selectors as of_selectors
from mamushi.config.kinds import Config, refuse
from mamushi.io import paths
from mamushi.running.stage import stages
from mamushi.stages.publish import Needs, Published


def grid_needs(config: Config, study: str | None = None) -> Needs:
    """Return the perplexities and rankings of the grid, or of a ``study``, and the settings of the
    tables made of them: the grid, and which of its selectors rank texts."""
    axes = config["studies"][study] if study else config["grid"]
    refuse(grid.hindrances(config, axes))
    files = grid.expand(axes, paths.PERPLEXITY, grid.MEASURED)
    for selector in axes["selectors"]:
        files += grid.expand(axes, grid.ranking_pattern(config, selector))
    return files, {"grid": axes, "ranked": of_selectors.text_axes(config, axes)["selectors"]}


def half_gap(config: Config) -> Needs:
    """Return the curves of unlearning, at the finer budgets as well that an earlier run chose, and
    of retraining, of which budgets recover half of the gap."""
    unlearning, curves = config["unlearning"], list[str]()
    refuse(grid.hindrances(config, unlearning))
    starts, sweeps = grid.starting_endpoints(config, "unlearning"), grid.sweeps(config)
    for sweep in sweeps:
        names = {f"{name}s": [sweep[name]] for name in grid.OF_SWEEP}
        swept = {**unlearning, **names, "budgets": sweep["budgets"]}
        ends = (starts[sweep["model"]], "gold", arms.UNLEARNED_WHOLE)
        curves += grid.expand(swept, paths.PERPLEXITY, [*ends, arms.UNLEARNED])
    curves += grid.expand(unlearning, paths.PERPLEXITY, grid.MEASURED)
    settings = {name: unlearning[name] for name in ("target", "retain_cap", "fine")}
    axes = grid.axes(config, "unlearning")
    return [*dict.fromkeys(curves)], {"grid": axes, "starts": starts, "sweeps": sweeps, **settings}


def probes(config: Config) -> Needs:
    """Return what the models of the probed cells said, and these cells."""
    refuse(grid.hindrances(config, config["probe"]))
    axes = grid.axes(config, "probe")
    return grid.expand(axes, paths.JUDGED), {"grid": axes}


def predicted_cells(config: Config) -> list[dict[str, Any]]:
    """Return the cells of the grid whose retraining a room predicts: those with a tokenizer."""
    cells = grid.cells(config["grid"]) if "predict" in stages() else []
    return [cell for cell in cells if not grid.no_language_model(config, cell["model"])]


def evidence(config: Config) -> Needs:
    """Return the files that the tables of evidence rest on, and settings: their cells, those with a
    predicted effect, the selector of the ratio, and for each selector those it is derived from."""
    refuse(grid.unlabelled_datasets(config, config["grid"]))
    predicted, files = predicted_cells(config), list[str]()
    for pattern in (paths.FRONTIER, paths.CALIBRATION, paths.DIAGNOSTICS, paths.GEOMETRY):
        files += grid.expand(config["grid"], pattern)
    settings = {
        "cells": grid.cells(config["grid"]),
        "predicted": predicted,
        "selector": config["removal"]["ratio"],
        "targets": config["evidence"]["targets"],
        "chains": {
            name: of_selectors.derivation_chain(config, name)
            for name in of_selectors.grid_selectors(config)
        },
    }
    return [*files, *(paths.PREDICTED.format(**cell) for cell in predicted)], settings


# Written by `publish` of publish.py. Those of `effects/stages.py` take the places of the first two.
TABLES = {
    "tables": Published(
        "Tables",
        ("sad", "sad_summary", "selection"),
        "mamushi.evaluation.sad_tables",
        grid_needs,
    ),
    "half_gap": Published(
        "Unlearning",
        ("unlearning", "half_gap", "savings"),
        "mamushi.evaluation.half_gap",
        half_gap,
    ),
    "probes": Published("Unlearning", ("generations",), "mamushi.evaluation.probes", probes),
    "evidence_tables": Published(
        "Evidence",
        (
            *("frontier", "calibration", "advice", "diagnostics", "geometry"),
            *("runtime", "runtime_summary", "paper", "qualitative_ranking"),
        ),
        "mamushi.evidence.tables",
        evidence,
    ),
}
