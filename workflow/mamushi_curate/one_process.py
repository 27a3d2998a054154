"""Whether what is asked for needs no Snakemake, and how its stages are run without it."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mamushi.config.grid import cells
from mamushi.config.sources import fetched_urls
from mamushi.io import paths
from mamushi.running import locks, machine
from mamushi_curate.pipeline import Pipeline
from mamushi_runs import hooks
from mamushi_runs.commands import _run
from mamushi_runs.record import Record


def suits(args: argparse.Namespace, config: Mapping[str, Any]) -> bool:
    """Tell whether the grid of a configuration is one cell, whose model is not to be trained or
    divided, and nothing is asked of Snakemake."""
    if args.snakemake_args or args.profile != _run.PROFILE or args.dry_run:
        return False
    models = [config["models"][name] for name in config["grid"]["models"]]
    trains = any(
        "embeddings" not in model and not (model["contaminated"] and model["base"] is None)
        for model in models
    )
    is_divided = config["execution"]["gpus_per_job"] > 1
    return len([*cells(config["grid"])]) == 1 and not trains and not is_divided


@contextlib.contextmanager
def held(
    args: argparse.Namespace, configfile: Path, config: Mapping[str, Any]
) -> Iterator[Callable[[Mapping[str, Any]], Pipeline]]:
    """Hold this folder, and a GPU where the model can use one. Give what makes the pipeline of the
    grid's one cell, of this configuration or of another one for the same. Raises ``UserError``
    where a run works in this folder."""
    from mamushi.data import remote

    for url in fetched_urls(_run.read(configfile)).values():
        remote.fetch_copy(url)
    (cell,) = cells(config["grid"])
    if args.cores:
        os.environ[machine.WORKERS] = str(args.cores)
    is_on_gpu = "source" in config["models"][cell["model"]]
    is_on_gpu = is_on_gpu and config["execution"]["device"] == "auto"
    with hooks.only_run(), locks.leased(is_on_gpu) as lease:
        gpus = (lease or machine.scheduled()) if is_on_gpu else None
        yield partial(Pipeline, cell=cell, record=Record([configfile]), gpus=gpus)
    shutil.rmtree(paths.CLAIMS, ignore_errors=True)
