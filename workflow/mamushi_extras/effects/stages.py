"""What removals change on held-out texts, and what the core's tables say of it, collected."""

from mamushi.config import grid
from mamushi.config import selectors as of_selectors
from mamushi.config.kinds import Config
from mamushi.io import paths
from mamushi.stages import tables
from mamushi.stages.publish import Needs, Published


def effects(config: Config) -> Needs:
    """Return the grid's texts with their NLL, the cards of its models, and its lists; its axes,
    which of its selectors rank texts and which are lists of chance, and what loss of the retain
    domain is small, in nats per token."""
    axes, settings = config["grid"], tables.grid_needs(config)[1]
    files = grid.expand(axes, paths.EXAMPLES)
    for pattern in (paths.NLL, paths.CARD):
        files += grid.expand(axes, pattern, grid.MEASURED)
    files += grid.expand(of_selectors.text_axes(config, axes), paths.REMOVAL)
    settings["by_chance"] = of_selectors.random_selectors(config)
    return files, {**settings, "margin": config["evaluation"]["retain_margin"]}


def half_gap(config: Config) -> Needs:
    """Return what the core's tables need, the NLL of all texts, and the texts."""
    files, settings = tables.half_gap(config)
    nll = [path.replace("perplexity.parquet", "nll.parquet") for path in files]
    return [*files, *nll, *grid.expand(config["unlearning"], paths.EXAMPLES)], settings


ROOM = "mamushi_extras.effects"
SAD, CURVES = (tables.TABLES[rule] for rule in ("tables", "half_gap"))
TABLES = {
    "effects": Published("Tables", ("effects", "subgroups"), f"{ROOM}.effects", effects),
    "tables": SAD._replace(names=(*SAD.names, "sad_differences"), module=f"{ROOM}.differences"),
    "half_gap": CURVES._replace(module=f"{ROOM}.deep_gap", needs=half_gap),
}
