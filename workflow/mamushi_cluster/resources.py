"""What jobs ask for: memory, minutes, GPUs and threads, by configuration, wildcards and attempt.

It grows with the attempt. Minutes with a language model are 15 and twice ``forecast.gpu_seconds``.
Where a GPU is, by partition and type, the profile says: under ``on_gpu`` of its ``set-resources``.
"""

import math
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from mamushi.config import grid
from mamushi.config.kinds import Config
from mamushi.io import paths
from mamushi_cluster.forecast import Job, expected_texts, gpu_seconds, model_size

THREADS = 8
"""Of a job that ranks the texts of a model that is not tiny."""
TINY_MINUTES = 60
"""Of a tiny model on a core, for a million texts."""
WILDCARDS = ("dataset", "model", "role", "selector", "unlearner", "beta")
"""On which minutes depend: those of other seeds are the same."""
Resource = Callable[[Any, int], int]
"""Megabytes or minutes by wildcards and attempt."""


def _scaled_by_attempt(need: Callable[[Any], float]) -> Resource:
    return lambda wildcards, attempt: attempt * math.ceil(need(wildcards))


class JobResources:
    """The resources of a configuration's jobs. ``of_profile`` has what a profile sets by rule."""

    def __init__(self, config: Config, of_profile: Mapping[str, Mapping[str, Any]]) -> None:
        self.config, models, of_gpus = config, config["models"], of_profile.get("on_gpu", {})
        self.of_gpus = {name: resource.raw for name, resource in of_gpus.items()}
        self.tiny = {name for name in models if "family" in models[name]}
        self.sizes = {name: model_size(config, name) for name in models}
        count = config["execution"]["gpus_per_job"]
        large = {name for name in models if not grid.no_language_model(config, name)}
        self.several = dict.fromkeys(large - self.tiny, count) if count > 1 else {}
        """GPUs of a job by model, where it has several."""
        self._texts = cache(lambda dataset, is_counted: expected_texts(config, dataset))
        self._seconds = cache(
            lambda rule, is_counted, *at: gpu_seconds(
                config, Job(rule, dict(at), gpus=self.several.get(dict(at)["model"], 1))
            )
        )
        self.rank_memory = _scaled_by_attempt(self._ranking_megabytes)

    def on_gpu(self, work: str, **others: Any) -> dict[str, Any]:
        """Return what a job with a language model asks for: GPUs, memory, minutes of the rule
        ``work``, and what the profile sets for ``on_gpu``. Entries of ``others`` replace these."""
        gpus = (lambda wildcards: self.several.get(wildcards.model, 1)) if self.several else 1
        mine = {"gpu": gpus, "mem_mb": _scaled_by_attempt(self._model_megabytes)}
        return {**self.of_gpus, **mine, "runtime": self.minutes(work), **others}

    def cores(self, large: int) -> Any:
        """Return threads: one for a tiny model, whose products are too small to share."""
        return (lambda job: 1 if job.model in self.tiny else large) if self.tiny else large

    def minutes(self, rule: str) -> Resource:
        """Return the minutes of a rule's jobs: 15, and twice what the plan expects of its work."""

        def minutes_needed(job: Any) -> float:
            if job.model in self.tiny:
                return 15 + TINY_MINUTES * self._millions(job)
            at = ((name, getattr(job, name)) for name in WILDCARDS if hasattr(job, name))
            return 15 + 2 / 60 * (self._seconds(rule, self._has_counts(job), *at) or 0.0)

        return _scaled_by_attempt(minutes_needed)

    def amount(self, small: float, large: float | None = None, texts: float = 0) -> Resource:
        """Return megabytes or minutes: ``small`` or, if given and the job's model is not tiny,
        ``large``, plus ``texts`` for every million texts of the dataset."""

        def amount_needed(job: Any) -> float:
            start = small if large is None or job.model in self.tiny else large
            return start + texts * self._millions(job)

        return _scaled_by_attempt(amount_needed)

    def _has_counts(self, job: Any) -> bool:
        """Return whether a job's texts are counted: they are when the job starts."""
        return os.path.exists(paths.DATA_CARD.format(dataset=job.dataset))

    def _millions(self, job: Any, *sections: str) -> float:
        """Return the millions of texts of a job's dataset, in these sections or in all."""
        texts = self._texts(job.dataset, self._has_counts(job))
        return sum(sum(texts.get(name, {}).values()) for name in sections or texts) / 1e6

    def _model_megabytes(self, job: Any) -> float:
        """Return the megabytes of a job with a model in the memory of its node: libraries and data
        (16 GB) and for every billion parameters 2 GB of bf16 weights, about 0.9 GB of fp32 tensors
        that are trained and, while a checkpoint is written, 2.6 GB of these with their moments, and
        a tenth to spare; 4 and 12 where all is trained. Of GPUs that share the model the first
        process opens it, and others have 4 GB. A million texts, twice while they are read: 1.5."""
        texts = 1500 * self._millions(job)
        if job.model in self.tiny:
            return 4000 + texts
        is_whole = self.config["models"][job.model]["training"]["method"] == "full"
        billions = self.sizes[job.model].parameters / 1e9
        others = self.several.get(job.model, 1) - 1
        return 16000 + (20000 if is_whole else 6000) * billions + 4000 * others + texts

    def _ranking_megabytes(self, job: Any) -> float:
        """Return the megabytes of texts that are ranked: ids, scores, and the two copies of its
        examples that an estimator of each fold has beside the others', of which there are no more
        at a time than threads. Networks make none, and read a matrix that is mapped."""
        n, selector = 1e6 * self._millions(job, "inference"), self.config["selectors"][job.selector]
        fits = (selector.get("folds") or 0) * selector.get("seeds_averaged", 1)
        examples = min(n, selector.get("fit_sample") or n) * min(fits, THREADS)
        copied = 0 if selector["kind"] == "mamushi" else 8 * examples
        texts = (n * 1000 + copied * self.sizes[job.model].hidden_size) / 1e6
        return (4000 if job.model in self.tiny else 16000) + texts
