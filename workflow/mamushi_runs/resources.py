"""What jobs ask for: memory, minutes, GPUs and threads, by configuration, wildcards and attempt.

All is said for a tiny model, which the workflow builds itself, and for others by their size. It
grows with the attempt, so that a job that ran out of something gets more of it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.sources import files
from mamushi.io import paths
from mamushi_runs import sizes
from mamushi_runs.sizes import TABLE

THREADS = 8
"""Of a job that ranks the texts of a model that is not tiny."""
STATE_BYTES = 12
"""Of a checkpoint per trained parameter: its value and two moments, in fp32."""
BYTES_OF_A_TEXT = 500
"""Of a table of texts that has not been read yet."""
UNKNOWN_TEXTS, UNKNOWN_FORGET = 10_000, 0.2
Resource = Callable[[Any, int], int]
"""Megabytes or minutes by wildcards and attempt."""


def counted(dataset: str, root: Path = Path()) -> dict[str, dict[str, int]] | None:
    """Return the texts of a dataset by section and domain; None until they are counted. Snakemake
    asks for a job's resources again when it starts, and then they are."""
    try:
        text = (root / paths.DATA_CARD.format(dataset=dataset)).read_text(encoding="utf-8")
        return dict(json.loads(text)["counts"]["sections"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def expected_texts(
    config: Mapping[str, Any], dataset: str, root: Path = Path()
) -> dict[str, dict[str, float]]:
    """Return the texts of a dataset by section and domain: as counted, else from its sizes, what is
    published of it, or how large its files are."""
    if (sections := counted(dataset, root)) is not None:
        return {name: dict(counts) for name, counts in sections.items()}
    definition = config["datasets"][dataset]
    if "sizes" in definition:
        return dict(definition["sizes"])
    published = TABLE["datasets"].get(definition["kind"], {})
    total = published.get("texts", 0)
    with contextlib.suppress(OSError):
        total = total or sum(os.stat(path).st_size for path in files(definition)) / BYTES_OF_A_TEXT
    total = total or UNKNOWN_TEXTS
    if definition["kind"] == "table" and (screen := definition["forget"].get("screen")):
        # What a screen leaves out is not embedded.
        total = min(total, screen if screen >= 1 else screen * total)
    forget, limit = published.get("forget", UNKNOWN_FORGET), definition["limit"]
    shares = {"forget": forget, "retain": 1 - forget}
    texts = {
        section: {domain: total * part * share for domain, share in shares.items()}
        for section, part in definition["sections"].items()
    } | ({"evaluation": published["evaluation"]} if "evaluation" in published else {})
    return {
        section: {domain: min(n, limit.get(domain) or n) for domain, n in counts.items()}
        for section, counts in texts.items()
    }


def _of_attempt(need: Callable[[Any], float]) -> Resource:
    return lambda wildcards, attempt: attempt * math.ceil(need(wildcards))


class JobResources:
    """The resources of the jobs of a configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.tiny = {name for name in config["models"] if grid.is_tiny(config, name)}
        self.sizes = {name: sizes.of(config, name) for name in config["models"]}
        self.several: Mapping[str, int] = sizes.several(config)
        """GPUs of a job by model, where it has several."""
        self.millions = {
            name: sum(sum(counts.values()) for counts in expected_texts(config, name).values())
            / 1e6
            for name in config["datasets"]
        }
        # A text is some sixty tokens of 4 bytes, twice while they are read, and an id.
        self.model_memory = _of_attempt(
            lambda job: self._model(job) + 1000 * self.millions[job.dataset]
        )
        self.embed_memory = _of_attempt(lambda job: self._model(job) + self._vectors(job))
        self.rank_memory = _of_attempt(lambda job: self._scaled(job, 4000, 16000) + self._rows(job))
        # At the paper's rate, on padded texts, 13 minutes for every billion: twice that.
        self.training_minutes = _of_attempt(lambda job: self._shared(job, 60, 30, 26))
        self.embed_minutes = _of_attempt(
            lambda job: max(self._shared(job, 30, 20, 5), self._reading(job, "inference"))
        )
        # The held-out texts are not those that are ranked.
        self.evaluate_minutes = _of_attempt(
            lambda job: max(self._shared(job, 30, 20, 5), self._reading(job, "evaluation"))
        )
        self.rank_minutes = _of_attempt(
            lambda job: max(self._scaled(job, 30, 240), self._ranking(job))
        )
        # A pair of halves is as much work as a whole.
        refits = sum(config["evidence"]["refits"].values())
        self.refit_minutes = _of_attempt(
            lambda job: max(self._scaled(job, 60, 480), refits * self._ranking(job))
        )

    @property
    def gpus(self) -> Any:
        """GPUs of a job with a language model."""
        return (lambda wildcards: self.several.get(wildcards.model, 1)) if self.several else 1

    def cores(self, large: int) -> Any:
        """Return threads: one for a tiny model, whose products are too small to share."""
        if not self.tiny:
            return large
        return lambda wildcards: 1 if wildcards.model in self.tiny else large

    def of_texts(self, start: float, slope: float) -> Resource:
        """Return megabytes or minutes: ``start``, and ``slope`` for every million texts of the
        dataset."""
        return _of_attempt(lambda job: start + slope * self.millions[job.dataset])

    def of_model(self, small: float, large: float, slope: float = 0, texts: float = 0) -> Resource:
        """Return megabytes or minutes: ``small`` for a tiny model, else ``large`` and ``slope`` for
        every billion parameters; and ``texts`` for every million texts."""
        return _of_attempt(
            lambda job: (
                self._scaled(job, small, large, slope)
                + (texts * self.millions[job.dataset] if texts else 0)
            )
        )

    def _scaled(self, job: Any, small: float, large: float, slope: float = 0) -> float:
        if job.model in self.tiny:
            return small
        return large + slope * self.sizes[job.model].billions

    def _texts(self, job: Any, section: str) -> int:
        return sum(((counted(job.dataset) or {}).get(section) or {}).values())

    def _model(self, job: Any) -> float:
        """Return the megabytes of a job with a model in the memory of its node: libraries and data
        (16 GB) and for every billion parameters 2 GB of bf16 weights, about 0.9 GB of fp32 tensors
        that are trained and, while a checkpoint is written, 2.6 GB of these with their moments:
        5.5, and a tenth to spare. Where all is trained, these are 4 and 12: 18, and a tenth.

        Where several GPUs share the model, no process opens all of it: each further one has 4 GB,
        and there is the state that is written."""
        training = self.config["models"][job.model]["training"]
        if (count := self.several.get(job.model, 1)) > 1:
            state = STATE_BYTES * self.sizes[job.model].trained(training)
            return 16000 + 4000 * (count - 1) + 1.1 * state / 1e6
        return self._scaled(job, 4000, 16000, 20000 if training["method"] == "full" else 6000)

    def _shared(self, job: Any, small: float, large: float, slope: float) -> float:
        """Return minutes as ``of_model``, of which the GPUs of a job share what grows with the
        model: half of their time is taken for waiting for each other's part of it."""
        count = self.several.get(job.model, 1)
        return self._scaled(job, small, large, slope if count == 1 else 2 * slope / count)

    def _vectors(self, job: Any) -> float:
        """Return the megabytes of texts that are embedded: ids and tokens, and the block of vectors
        that is written."""
        n, depths = self._texts(job, "inference"), len(self.config["embedding"]["depths"])
        block = min(n, 131072) * self.sizes[job.model].hidden_size * 2 * (1 + depths)
        return (n * (400 + 4 * self.config["tokens"]["max_length"]) + block) / 1e6

    def _reading(self, job: Any, section: str) -> float:
        """Return the minutes to read a section's texts, all as long as is kept, at 2e14 operations
        a second; by a tiny model at 1e10."""
        operations = 2 * self.sizes[job.model].parameters * self.config["embedding"]["max_length"]
        share = int(getattr(job, "scatteritem", "1").rpartition("-")[2])
        rate = 1e10 if job.model in self.tiny else 2e14 * self.several.get(job.model, 1)
        return self._texts(job, section) / share * operations / rate / 60

    def _rows(self, job: Any) -> float:
        """Return the megabytes of texts that are ranked: ids, scores, and the two copies of its
        examples that an estimator of each fold has beside the others', of which there are no more
        at a time than threads. Networks make none, and read a matrix that is mapped."""
        n, selector = self._texts(job, "inference"), self.config["selectors"][job.selector]
        fits = (selector.get("folds") or 0) * selector.get("seeds_averaged", 1)
        most = min(n, selector.get("fit_sample") or n) * min(fits, THREADS)
        copied = 0 if selector["kind"] == "mamushi" else 8 * most
        return (n * 1000 + copied * self.sizes[job.model].hidden_size) / 1e6

    def _ranking(self, job: Any) -> float:
        """Return the minutes to rank all texts: 25 for a million of width 4096 and every network
        that each fold averages, on the job's threads; twice what was measured."""
        threads = 1 if job.model in self.tiny else THREADS
        networks = self.config["selectors"][job.selector].get("seeds_averaged", 1)
        width = self.sizes[job.model].hidden_size
        return 200 / threads * networks * self._texts(job, "inference") / 1e6 * width / 4096
