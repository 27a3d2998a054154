"""A corpus of many files, screened by several jobs, each of which reads some of the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Config, Section
from mamushi.config.sources import files
from mamushi.errors import UserError
from mamushi.io.copies import localized
from mamushi.io.digests import content_digests
from mamushi.running.stage import Input, Job, Output, typed
from mamushi.stages.data import loader_settings
from mamushi_extras.shards.settings import shards_of

if TYPE_CHECKING:
    from mamushi_extras.unlabelled.screening import CorpusShard


class ShardSettings(Section):
    """How a corpus is read, and which of how many shards this is."""

    dataset: str
    loader: dict[str, Any]
    shard: int
    shards: int
    inputs: dict[str, str]

    @classmethod
    def of(cls, config: Config, *, dataset: str, shard: str) -> ShardSettings:
        """Return how a shard is read, with the digests of its files."""
        shards = shards_of(config, dataset)
        place = int(shard)
        paths = [str(path) for path in shards[place]]
        loader = loader_settings(config, dataset)
        return typed(
            cls,
            dataset=dataset,
            loader=loader,
            shard=place,
            shards=len(shards),
            inputs=content_digests(paths),
        )

    def read(self) -> CorpusShard:
        """Return its files."""
        from mamushi.io import tabular
        from mamushi_extras.shards.settings import divide_files
        from mamushi_extras.unlabelled.screening import CorpusShard

        every = tabular.find(self.loader["path"])
        return CorpusShard(divide_files(every, self.shards)[self.shard], self.loader)


def screen_texts(*, out: Output, settings: ShardSettings, job: Job) -> None:
    """Draw the texts of a shard to which the screen of its corpus is fitted.

    Raises ``UserError``, with the dataset's name, for bad input.
    """
    from mamushi_extras.shards.handed_on import write_sample

    try:
        write_sample(out, settings.read().sample(), job.origin)
    except UserError as error:
        raise UserError(str(error), where=f"dataset {settings.dataset}") from None


class ScreenSettings(Section):
    """How a corpus is read, with the digests of what lies beside it."""

    dataset: str
    loader: dict[str, Any]
    inputs: dict[str, str]

    @classmethod
    def of(cls, config: Config, *, dataset: str) -> ScreenSettings:
        """Return how the screen of a dataset is fitted."""
        definition = config["datasets"][dataset]
        of_shards = {str(path) for shard in shards_of(config, dataset) for path in shard}
        beside = [path for path in files(definition) if path not in of_shards]
        loader = loader_settings(config, dataset)
        return typed(cls, dataset=dataset, loader=loader, inputs=content_digests(beside))


def screen_fit(*, texts: list[Input], out: Output, settings: ScreenSettings, job: Job) -> None:
    """Fit the screen of a corpus to texts of all shards.

    Raises ``UserError``, with the dataset's name, for examples that tell nothing.
    """
    from mamushi_extras.shards.handed_on import read_sample, write_screen
    from mamushi_extras.unlabelled.screening import fit_to_sample, join_samples

    sample = join_samples(map(read_sample, texts))
    try:
        screen = fit_to_sample(sample, localized(settings.loader))
    except UserError as error:
        raise UserError(str(error), where=f"dataset {settings.dataset}") from None
    write_screen(out, screen, sample, job.origin)


def screen_scores(*, screen: Input, out: Output, settings: ShardSettings, job: Job) -> None:
    """Score the rows of a shard by the screen of its corpus."""
    from mamushi_extras.shards.handed_on import read_screen, write_screen_scores

    write_screen_scores(out, settings.read().score(read_screen(screen)[0]), job.origin)


class CutSettings(Section):
    """How many texts pass, or below 1 what share."""

    screen: float

    @classmethod
    def of(cls, config: Config, *, dataset: str) -> CutSettings:
        """Return what the screen of a dataset lets through."""
        return typed(cls, screen=config["datasets"][dataset]["forget"]["screen"])


def screen_cut(*, scores: list[Input], out: Output, settings: CutSettings, job: Job) -> None:
    """Find where the rows end that pass, over all shards."""
    from itertools import chain

    from mamushi_extras.shards.handed_on import count_scores, read_screen_scores, write_cut
    from mamushi_extras.unlabelled.screening import find_cut, passing_count

    rows = [count_scores(path) for path in scores]
    most = passing_count({"forget": {"screen": settings.screen}}, sum(rows))
    cut = find_cut(lambda: chain.from_iterable(map(read_screen_scores, scores)), most)
    write_cut(out, cut, rows, job.origin)


def screen_pass(
    *, scores: Input, cut: Input, out: Output, settings: ShardSettings, job: Job
) -> None:
    """Read the rows of a shard that pass.

    Raises ``UserError``, with the dataset's name, for bad input.
    """
    import numpy as np

    from mamushi_extras.shards.handed_on import read_cut, read_screen_scores, write_passed

    (ends, rows), place = read_cut(cut), settings.shard
    passing = [ends.passing(block) for block in read_screen_scores(scores)]
    try:
        raw = settings.read().take(np.concatenate(passing), sum(rows[:place]))
    except UserError as error:
        raise UserError(str(error), where=f"dataset {settings.dataset}") from None
    write_passed(out, raw, job.origin)
