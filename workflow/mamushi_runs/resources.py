"""What jobs ask for: memory, minutes, GPUs and threads, by configuration, wildcards and attempt.

All is said for a tiny model, which the workflow builds itself, and for others by their size. It
grows with the attempt, so that a job that ran out of something gets more of it.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mamushi.artifacts import paths
from mamushi.configuration import grid
from mamushi.configuration.questions import QUESTIONS
from mamushi_runs.forecast import sizes, work
from mamushi_runs.internals import inspected

Asked = Callable[[Any, int], int]
"""A resource by wildcards and attempt: megabytes or minutes."""
Texts = Callable[[int, Any], float]
"""What n texts that are ranked take, with the wildcards of the job."""


def counted(dataset: str, section: str = "inference") -> int:
    """Return the texts of a section; 0 until they are counted. Snakemake asks for a job's resources
    again when it starts, and then they are."""
    try:
        with open(paths.DATA_CARD.format(dataset=dataset), encoding="utf-8") as file:
            return sum(json.load(file)["counts"]["sections"][section].values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0


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

        # In the memory of its node a job with a model has the libraries and data (16 GB) and for
        # every billion parameters 2 GB of bf16 weights, about 0.9 GB of fp32 tensors that are
        # trained and, while a checkpoint is written, 2.6 GB of these with their moments: 5.5, and a
        # tenth to spare. Where all is trained, these are 4 and 12: 18, and a tenth. A text is some
        # sixty tokens of 4 bytes, twice while they are read, and an id.
        node: dict[str, Any] = {"full": 20000, "cut": self._memory_if_cut}
        self.model_memory = self.scaled(4000, 16000, 6000, texts=1000, **node)
        self.embed_memory = self.scaled(4000, 16000, 6000, texts=self._vectors, **node)
        self.rank_memory = self.scaled(4000, 16000, texts=self._memory_to_rank)
        # At the paper's rate, on padded texts, 13 minutes for every billion: twice that.
        self.training_minutes = self.minutes(60, 30, 26, shared=["contaminate", "beta0"])
        reading: dict[str, Any] = {"texts": self._minutes_to_read, "shared": ["embed"]}
        self.embed_minutes = self.minutes(30, 20, 5, **reading)
        reading = {"texts": self._minutes_to_measure, "shared": ["evaluate"]}
        self.evaluate_minutes = self.minutes(30, 20, 5, **reading)
        self.rank_minutes = self.minutes(30, 240, texts=self._minutes_to_rank)
        self.refit_minutes = self.minutes(60, 480, texts=self._minutes_to_rank_again)

    @property
    def gpus(self) -> Any:
        """GPUs of a job with a language model."""
        if not self.several:
            return 1
        return inspected(lambda wildcards: self.several.get(wildcards.model, 1))

    def cores(self, large: int) -> Any:
        """Return threads: one for a tiny model, whose products are too small to share."""
        if not self.tiny:
            return large
        return inspected(lambda wildcards: 1 if wildcards.model in self.tiny else large)

    def of_texts(self, start: float, each: float) -> Asked:
        """Return megabytes or minutes: ``start``, and ``each`` for every million texts of the
        dataset."""

        def asked(wildcards: Any, attempt: int) -> int:
            return attempt * math.ceil(start + each * self.millions[wildcards.dataset])

        return inspected(asked)

    def memory(self, small: float, large: float, each: float = 0, texts: float = 0) -> Asked:
        """Return megabytes: ``small`` for a tiny model, else ``large`` and ``each`` for every
        billion parameters; and ``texts`` for every million texts."""
        return self.scaled(small, large, each, texts=texts)

    def minutes(
        self,
        small: float,
        large: float,
        each: float = 0,
        texts: float | Texts | None = None,
        shared: Sequence[str] = (),
    ) -> Asked:
        """Return minutes, in the same way; those of a function ``texts`` in their place where they
        are more.

        The GPUs of a job share what grows with the model, where ``shared`` names a rule or two by
        whose steps it is reckoned how long they wait for each other's part of it, twice that."""

        def cut(wildcards: Any, count: int) -> float:
            waits = max(self._minutes_to_exchange(rule, wildcards, count) for rule in shared)
            return large + each * self.sizes[wildcards.model].billions / count + 2 * waits

        together = max if callable(texts) else operator.add
        how: dict[str, Any] = {"texts": texts, "together": together, "cut": cut if shared else None}
        return self.scaled(small, large, each, **how)

    def scaled(
        self,
        small: float,
        large: float,
        each: float = 0,
        *,
        full: float | None = None,
        texts: float | Texts | None = None,
        together: Callable[[float, float], float] = operator.add,
        cut: Callable[[Any, int], float] | None = None,
    ) -> Asked:
        """Return a resource of a job with a model.

        ``full`` is in the place of ``each`` for a model of which all is trained; ``texts`` is for
        every million texts of the dataset, or ``texts(n, wildcards)`` what n texts that are ranked
        take, ``together`` with all else; ``cut(wildcards, count)`` is in the place of ``large`` and
        ``each`` where count GPUs share the model."""

        def asked(wildcards: Any, attempt: int) -> int:
            model = wildcards.model
            if callable(texts):
                further: float = int(texts(counted(wildcards.dataset), wildcards))
            else:
                further = texts * self.millions[wildcards.dataset] if texts else 0
            if model in self.tiny:
                found: float = small
            elif cut and (count := self.several.get(model, 1)) > 1:
                found = cut(wildcards, count)
            else:
                whole = full and self.config["models"][model]["training"]["method"] == "full"
                found = large + (full if full and whole else each) * self.sizes[model].billions
            return attempt * math.ceil(together(found, further))

        return inspected(asked)

    def _minutes_to_exchange(self, rule: str, wildcards: Any, count: int) -> float:
        """Return the minutes that a job waits in all its steps for other GPUs' parts."""
        training = self.config["models"][wildcards.model]["training"]
        step = sizes.exchange(self.sizes[wildcards.model], training, count)
        return self.costs.of(rule, dict(wildcards)).steps * step / 60

    def _memory_if_cut(self, wildcards: Any, count: int) -> float:
        """Return the megabytes of a job whose model several GPUs share, none of which opens all of
        it: libraries and data, of each further process 4 GB, and a state that is written, with a
        tenth to spare."""
        training = self.config["models"][wildcards.model]["training"]
        state = work.STATE * self.sizes[wildcards.model].trained(training)
        return 16000 + 4000 * (count - 1) + 1.1 * state / 1e6

    def _vectors(self, n: int, wildcards: Any) -> float:
        """Return the megabytes of n texts: ids and tokens, and the block of vectors that is
        written."""
        depths = len(self.config["embedding"]["depths"])
        block = min(n, 131072) * self.sizes[wildcards.model].hidden_size * 2 * (1 + depths)
        return (n * (400 + 4 * self.config["tokens"]["max_length"]) + block) / 1e6

    def _minutes_to_read(self, n: int, wildcards: Any) -> float:
        """Return the minutes to read n texts, all as long as is kept, at 2e14 operations a second;
        by a tiny model at 1e10."""
        model = wildcards.model
        operations = 2 * self.sizes[model].parameters * self.config["embedding"]["max_length"]
        share = int(getattr(wildcards, "scatteritem", "1").rpartition("-")[2])
        rate = 1e10 if model in self.tiny else 2e14 * self.several.get(model, 1)
        return n / share * operations / rate / 60

    def _minutes_to_measure(self, n: int, wildcards: Any) -> float:
        """Return the same for the perplexity of the held-out texts, which are not those that are
        ranked."""
        return self._minutes_to_read(counted(wildcards.dataset, "evaluation"), wildcards)

    def _memory_to_rank(self, n: int, wildcards: Any) -> float:
        """Return the megabytes of n texts: ids, scores, and the two copies of its examples that an
        estimator of each fold has beside the others'. Networks make none, and read a matrix that is
        mapped."""
        selector = self.config["selectors"][wildcards.selector]
        most = min(n, selector.get("fit_sample") or n) * selector.get("folds", 0)
        copied = 0 if selector["kind"] == "mamushi" else 8 * most
        return (n * 1000 + copied * self.sizes[wildcards.model].hidden_size) / 1e6

    def _minutes_to_rank(self, n: int, wildcards: Any) -> float:
        """Return the minutes to rank n texts, as the plan reckons them: twice that, on the job's
        threads."""
        selector = work.selector(self.config, wildcards.selector)
        width = self.sizes[wildcards.model].hidden_size
        threads = 1 if wildcards.model in self.tiny else 8
        return work.score_seconds(selector, n, n / 2, width) / threads / 30

    def _minutes_to_rank_again(self, n: int, wildcards: Any) -> float:
        """Return the minutes of the refits: a pair of halves is as much work as a whole."""
        refits = sum(self.config["evidence"]["refits"].values())
        return refits * self._minutes_to_rank(n, wildcards)

    def and_asked(self, minutes: Asked, names: Sequence[str]) -> Asked:
        """Return these minutes and those of the questions that the job asks its model."""
        if not names:
            return minutes
        parts = [minutes, *(self.minutes(*QUESTIONS[name].minutes) for name in names)]

        def asked(wildcards: Any, attempt: int) -> int:
            return sum(part(wildcards, attempt) for part in parts)

        return inspected(asked)
