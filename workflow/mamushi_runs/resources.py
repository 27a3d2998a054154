"""What jobs ask for: memory, minutes, GPUs and threads, by configuration, wildcards and attempt.

All is said for a tiny model, which the workflow builds itself, and for others by their size. It
grows with the attempt, so that a job that ran out of something gets more of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from mamushi.config import grid
from mamushi.io import paths
from mamushi_runs.forecast import sizes, work

THREADS = 8
"""Of a job that ranks the texts of a model that is not tiny."""
Asked = Callable[[Any, int], int]
"""A resource by wildcards and attempt: megabytes or minutes."""


def counted(dataset: str, section: str = "inference") -> int:
    """Return the texts of a section; 0 until they are counted. Snakemake asks for a job's resources
    again when it starts, and then they are."""
    try:
        with open(paths.DATA_CARD.format(dataset=dataset), encoding="utf-8") as file:
            return sum(json.load(file)["counts"]["sections"][section].values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0


def of_attempt(need: Callable[[Any], float]) -> Asked:
    """Return a resource by what a job needs of it at its first attempt."""
    return lambda wildcards, attempt: attempt * math.ceil(need(wildcards))


class JobResources:
    """The resources of the jobs of a configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.tiny = {name for name in config["models"] if grid.is_tiny(config, name)}
        self.sizes = {name: sizes.of(config, name) for name in config["models"]}
        self.several: Mapping[str, int] = sizes.several(config)
        """GPUs of a job by model, where it has several."""
        volumes = work.Volumes(config)
        # Of its card, its sizes, or as its files are large.
        self.millions = {name: volumes.all_texts(name) / 1e6 for name in config["datasets"]}
        self.costs = work.Costs(config, volumes)

        # A text is some sixty tokens of 4 bytes, twice while they are read, and an id.
        self.model_memory = of_attempt(
            lambda job: self._model(job) + 1000 * self.millions[job.dataset]
        )
        self.embed_memory = of_attempt(lambda job: self._model(job) + self._vectors(job))
        self.rank_memory = of_attempt(lambda job: self._scaled(job, 4000, 16000) + self._rows(job))
        # At the paper's rate, on padded texts, 13 minutes for every billion: twice that.
        self.training_minutes = of_attempt(
            lambda job: self._shared(job, 60, 30, 26, "contaminate", "beta0")
        )
        self.embed_minutes = of_attempt(
            lambda job: max(self._shared(job, 30, 20, 5, "embed"), self._reading(job, "inference"))
        )
        self.evaluate_minutes = of_attempt(
            # The held-out texts are not those that are ranked.
            lambda job: max(
                self._shared(job, 30, 20, 5, "evaluate"), self._reading(job, "evaluation")
            )
        )
        self.rank_minutes = of_attempt(
            lambda job: max(self._scaled(job, 30, 240), self._ranking(job))
        )
        # A pair of halves is as much work as a whole.
        refits = sum(config["evidence"]["refits"].values())
        self.refit_minutes = of_attempt(
            lambda job: max(self._scaled(job, 60, 480), refits * self._ranking(job))
        )

    @property
    def gpus(self) -> Any:
        """GPUs of a job with a language model."""
        if not self.several:
            return 1
        return lambda wildcards: self.several.get(wildcards.model, 1)

    def cores(self, large: int) -> Any:
        """Return threads: one for a tiny model, whose products are too small to share."""
        if not self.tiny:
            return large
        return lambda wildcards: 1 if wildcards.model in self.tiny else large

    def of_texts(self, start: float, each: float) -> Asked:
        """Return megabytes or minutes: ``start``, and ``each`` for every million texts of the
        dataset."""
        return of_attempt(lambda job: start + each * self.millions[job.dataset])

    def of_model(self, small: float, large: float, each: float = 0, texts: float = 0) -> Asked:
        """Return megabytes or minutes: ``small`` for a tiny model, else ``large`` and ``each`` for
        every billion parameters; and ``texts`` for every million texts."""
        return of_attempt(
            lambda job: (
                self._scaled(job, small, large, each)
                + (texts * self.millions[job.dataset] if texts else 0)
            )
        )

    def _scaled(self, job: Any, small: float, large: float, each: float = 0) -> float:
        if job.model in self.tiny:
            return small
        return large + each * self.sizes[job.model].billions

    def _training(self, job: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.config["models"][job.model]["training"]
        return found

    def _model(self, job: Any) -> float:
        """Return the megabytes of a job with a model in the memory of its node: libraries and data
        (16 GB) and for every billion parameters 2 GB of bf16 weights, about 0.9 GB of fp32 tensors
        that are trained and, while a checkpoint is written, 2.6 GB of these with their moments:
        5.5, and a tenth to spare. Where all is trained, these are 4 and 12: 18, and a tenth.

        Where several GPUs share the model, no process opens all of it: each further one has 4 GB,
        and there is the state that is written."""
        count = self.several.get(job.model, 1)
        if count > 1:
            state = work.STATE * self.sizes[job.model].trained(self._training(job))
            return 16000 + 4000 * (count - 1) + 1.1 * state / 1e6
        full = self._training(job)["method"] == "full"
        return self._scaled(job, 4000, 16000, 20000 if full else 6000)

    def _shared(self, job: Any, small: float, large: float, each: float, *rules: str) -> float:
        """Return minutes as ``of_model``, of which the GPUs of a job share what grows with the
        model. The steps of ``rules`` say how long they wait for each other's part of it: twice
        that."""
        count = self.several.get(job.model, 1)
        if count == 1:
            return self._scaled(job, small, large, each)
        size = self.sizes[job.model]
        step = sizes.exchange(size, self._training(job), count)
        waits = max(self.costs.of(rule, dict(job)).steps * step / 60 for rule in rules)
        return large + each * size.billions / count + 2 * waits

    def _vectors(self, job: Any) -> float:
        """Return the megabytes of texts that are embedded: ids and tokens, and the block of vectors
        that is written."""
        n, depths = counted(job.dataset), len(self.config["embedding"]["depths"])
        block = min(n, 131072) * self.sizes[job.model].hidden_size * 2 * (1 + depths)
        return (n * (400 + 4 * self.config["tokens"]["max_length"]) + block) / 1e6

    def _reading(self, job: Any, section: str) -> float:
        """Return the minutes to read a section's texts, all as long as is kept, at 2e14 operations
        a second; by a tiny model at 1e10."""
        operations = 2 * self.sizes[job.model].parameters * self.config["embedding"]["max_length"]
        share = int(getattr(job, work.SHARD, "1").rpartition("-")[2])
        rate = 1e10 if job.model in self.tiny else 2e14 * self.several.get(job.model, 1)
        return counted(job.dataset, section) / share * operations / rate / 60

    def _rows(self, job: Any) -> float:
        """Return the megabytes of texts that are ranked: ids, scores, and the two copies of its
        examples that an estimator of each fold has beside the others', of which there are no more
        at a time than threads. Networks make none, and read a matrix that is mapped."""
        n, selector = counted(job.dataset), self.config["selectors"][job.selector]
        fits = (selector.get("folds") or 0) * selector.get("seeds_averaged", 1)
        most = min(n, selector.get("fit_sample") or n) * min(fits, THREADS)
        copied = 0 if selector["kind"] == "mamushi" else 8 * most
        return (n * 1000 + copied * self.sizes[job.model].hidden_size) / 1e6

    def _ranking(self, job: Any) -> float:
        """Return the minutes to rank all texts, as the plan reckons them: twice that, on the job's
        threads."""
        n, selector = counted(job.dataset), work.selector(self.config, job.selector)
        threads = 1 if job.model in self.tiny else THREADS
        width = self.sizes[job.model].hidden_size
        return work.score_seconds(selector, n, n / 2, width) / threads / 30
