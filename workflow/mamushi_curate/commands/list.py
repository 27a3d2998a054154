"""Make the list at a budget of one's own: of each selector's ranking so many texts, with copies.

What was ranked is not ranked again. Only budgets of the configuration have a manifest beside the
list.
"""

import itertools
from collections.abc import Mapping
from typing import Any

from mamushi.config import grid
from mamushi.config.selectors import grid_selectors
from mamushi.config.sources import is_unlabelled
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi_cluster.commands import _run
from mamushi_curate.commands import _options
from mamushi_curate.pipeline import fits_one_process, likely_budget, open_pipeline


def run(
    *,
    budget: float | None = None,
    texts: int | None = None,
    likely: bool = False,
    selector: list[str] | None = None,
    configfile: _run.Files = None,
    how: _run.How = _run.How(),
) -> tuple[int, Any]:
    """Return the exit status. Raises ``UserError`` for a budget that is none, and for a selector of
    tokens.

    :param budget: Share of the forget texts, above 0 and below 1, in steps of 0.000001.
    :param texts: Or number of forget texts.
    :param likely: Or all that is more likely than not of the domain, of a corpus without labels.
    :param selector: By whose rankings, else those of the configuration.
    """
    _options.check_one(budget=budget, texts=texts, likely=likely)
    if budget is not None and not 0 < budget < 1:
        raise UserError(f"{budget!r} is no share above 0 and below 1", where="--budget")
    configfiles = _run.run_configs(configfile, how.profile)
    changes = {"grid": {"selectors": selector}} if selector else {}
    config = _run.check(configfiles, changes)
    is_drawn = any(config["datasets"][name].get("draws") for name in config["grid"]["datasets"])
    if texts is not None and is_drawn:
        raise UserError("seeds draw their texts", where="--texts", do="give --budget")
    tokens = grid_selectors(config, tokens=True)
    if tokens and selector:
        raise UserError(f"{tokens[0]} ranks tokens and lists no text", where="--selector")
    lists = [
        {**cell, "selector": name, "beta": _beta(budget, texts, cell, name)}
        for cell, name in itertools.product(grid.cells(config["grid"]), config["grid"]["selectors"])
        if name not in tokens
    ]
    made = [paths.REMOVAL.format(**of) for of in lists]
    # Of a corpus, every list can have its manifest.
    corpora = [of for of in lists if is_unlabelled(config["datasets"][of["dataset"]])]
    wanted = [(paths.REMOVAL, of) for of in lists] + [(paths.MANIFEST, of) for of in corpora]
    status = 0
    if fits_one_process(how, config):
        with open_pipeline(how, configfiles[-1], config) as pipeline:
            ranking = pipeline(config)
            for pattern, of in wanted:
                ranking.want(pattern, selector=of["selector"], beta=of["beta"])
            ranking.make()
    else:
        status = _run.run([pattern.format(**of) for pattern, of in wanted], configfiles, how)
    if status == 0 and not how.dry_run:
        print(*made, sep="\n")
    return status, made


def _beta(budget: float | None, texts: int | None, cell: Mapping[str, Any], selector: str) -> str:
    """Return the budget as it stands in file names."""
    from mamushi.io.domains import FORGET, INFERENCE
    from mamushi.io.files import read_json
    from mamushi.selection.removals import share_of

    if budget is not None:
        return paths.beta(budget)
    if texts is not None:
        counts = read_json(paths.DATA_CARD.format(**cell))["counts"]
        return share_of(texts, counts.get("corpus", counts["sections"][INFERENCE][FORGET]))
    return likely_budget(cell, selector)
