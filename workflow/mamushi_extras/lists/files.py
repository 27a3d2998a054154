"""Removal lists of one's own, unlearned: the files of the target `unlearned`."""

from mamushi.config import arms
from mamushi.config.grid import expand, hindrances, starting_endpoints
from mamushi.config.kinds import NO_PATH, Config, refuse
from mamushi.io import paths


def unlearned_lists(config: Config) -> list[str]:
    """Return the files to make for the user's own lists: models that unlearned each list, by each
    unlearner, and perplexities before and after.

    Raises ``UserError`` when there is no such list, one without a path, or no model or dataset with
    which it could be unlearned and measured."""
    unlearning, lists = config["unlearning"], config["unlearning"]["lists"]
    unset = [f"unlearning.lists.{name}: {NO_PATH}" for name, path in lists.items() if path is None]
    none = [] if lists else ["unlearning.lists: no list is named; name a file with the ids"]
    refuse([*none, *unset, *hindrances(config, unlearning, is_retrained=False)])
    files, listed = list[str](), expand(unlearning, arms.LISTED)
    for model, start in starting_endpoints(config, "unlearning").items():
        files += expand({**unlearning, "models": [model]}, paths.PERPLEXITY, [start])
    for pattern in (paths.TRAINED, paths.PERPLEXITY, paths.CARD):
        files += expand(unlearning, pattern, listed)
    return files
