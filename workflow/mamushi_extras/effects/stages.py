"""What removals change on held-out texts, collected."""

from itertools import chain
from pathlib import Path

from mamushi.config import grid
from mamushi.config import selectors as of_selectors
from mamushi.config.kinds import Config, refuse, setting
from mamushi.config.selectors import of_texts
from mamushi.io import paths
from mamushi.running.stage import Job, Output
from mamushi.stages._io import parquet
from mamushi.stages.tables import Compared


def effect_files(config: Config) -> list[str]:
    """Return the grid's texts with their NLL, the cards of its models, and its lists."""
    compared = config["grid"]
    refuse(grid.hindrances(config, compared))
    measured = (grid.expand(compared, kind, grid.MEASURED) for kind in (paths.NLL, paths.CARD))
    lists = grid.expand(of_texts(config, compared), paths.REMOVAL)
    return [*grid.expand(compared, paths.EXAMPLES), *chain(*measured), *lists]


class Effects(Compared):
    """``by_chance`` says which selectors are lists of chance, ``margin`` (nats per token) what loss
    of the retain domain is small."""

    by_chance: dict[str, bool] = setting(of_selectors.by_chance)
    margin: float = setting("evaluation.retain_margin")


def effects(*, root: Path = paths.RESULTS, out_folder: Output, settings: Effects, job: Job) -> None:
    """Collect what removals change on held-out texts, with errors over seeds and texts, and who
    pays for it and who is removed, by the texts' labels."""
    from mamushi_extras.effects.effects import effects_table, subgroups_table
    from mamushi_extras.effects.schemas import EFFECTS, SUBGROUPS

    changes = effects_table(settings.grid, settings.by_chance, settings.margin, root)
    subgroups = subgroups_table(settings.grid, settings.ranked, root)
    results = [(EFFECTS, changes), (SUBGROUPS, subgroups)]
    parquet.publish(out_folder, results, job.origin)
