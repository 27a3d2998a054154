"""What removals change on held-out texts, collected."""

from mamushi.config import grid
from mamushi.config import selectors as of_selectors
from mamushi.config.kinds import Config
from mamushi.io import paths
from mamushi.stages.publish import Needs, Published
from mamushi.stages.tables import of_grid


def effects(config: Config) -> Needs:
    """Return the grid's texts with their NLL, the cards of its models, and its lists; its axes,
    which of its selectors rank texts and which are lists of chance, and what loss of the retain
    domain is small, in nats per token."""
    axes, settings = config["grid"], of_grid(config)[1]
    files = [*grid.expand(axes, paths.EXAMPLES), *grid.expand(axes, paths.NLL, grid.MEASURED)]
    files += grid.expand(axes, paths.CARD, grid.MEASURED)
    files += grid.expand(of_selectors.of_texts(config, axes), paths.REMOVAL)
    settings["by_chance"] = of_selectors.by_chance(config)
    return files, {**settings, "margin": config["evaluation"]["retain_margin"]}


TABLES = {
    "effects": Published(
        "Tables", ("effects", "subgroups"), "mamushi_extras.effects.effects", effects
    )
}
