"""The arms of a cell: its models, each by its name and with a folder of its own.

``base``, ``contaminated``, ``gold`` and ``beta0`` are endpoints, shared by all selectors.
``retrained/mamushi/beta0.10`` was trained without a removal list;
``neggrad_plus/mamushi/beta0.10`` unlearned one, ``neggrad_plus/whole`` the whole forget set, and
``neggrad_plus/lists/mine`` a removal list of one's own.
"""

import re
from typing import NamedTuple, Self

from mamushi.config.kinds import Config
from mamushi.config.selectors import ranks_tokens
from mamushi.io import paths

ENDPOINTS = ("base", "contaminated", "gold", "beta0")
RETRAINING = "retrained"
"""Stands where others have the name of an unlearner, which none may have."""
RETRAINING_SOURCE = "retraining"
"""What tables call training without the examples of a list, beside the names of unlearners."""
UNLEARNED = "{unlearner}/{selector}/beta{beta}"
RETRAINED = UNLEARNED.replace("{unlearner}", RETRAINING)
UNLEARNED_WHOLE = "{unlearner}/whole"
LISTED = "{unlearner}/lists/{list}"
BETA = r"0\.\d\d(?:\d{0,3}[1-9])?"
"""A budget as it stands in file names: see ``paths.beta``."""
PATTERN = re.compile(
    rf"(?P<endpoint>{'|'.join(ENDPOINTS)})|(?:{RETRAINING}|(?P<unlearner>[^/]+))/"
    r"(?:whole|lists/(?P<list>[^/]+)|(?P<selector>[^/]+)/beta(?P<beta>[^/]+))"
)


class Arm(NamedTuple):
    """One model of a cell, by what it was made with."""

    endpoint: str | None = None
    unlearner: str | None = None
    selector: str | None = None
    beta: str | None = None
    list: str | None = None

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the arm of this name. Raises ``ValueError`` for a name that is none."""
        if (match := PATTERN.fullmatch(name)) is None:
            raise ValueError(f"{name!r} is no model of a cell")
        return cls(**match.groupdict())


def retrained_arm(selector: str, budget: float | str) -> str:
    """Return the name of the model that was trained without a selector's list at a budget."""
    return unlearned_arm(RETRAINING, selector, budget)


def unlearned_arm(unlearner: str, selector: str, budget: float | str) -> str:
    """Return the name of the model that unlearned a selector's list at a budget."""
    return UNLEARNED.format(unlearner=unlearner, selector=selector, beta=paths.beta(budget))


def starting_endpoint(config: Config, model: str) -> str:
    """Return the endpoint from which unlearning starts. A model that is declared contaminated
    starts as it is: it has seen the data, and is the one to be mended."""
    is_ready = config["models"][model].get("contaminated")
    return "contaminated" if is_ready else str(config["unlearning"]["start"])


def arm_files(config: Config, model: str, name: str) -> dict[str, str]:
    """Return what an arm is made and opened from, as patterns: ``model_card`` and ``tokens`` of its
    base model, the ``trained`` tensors that lie over that, of an unlearned arm its start's, its own
    ``unlearned`` ones, and the ``removal`` list or the ``spans`` that it is made without. A model
    that is already contaminated is that arm itself, and all others are of the ``base`` it names."""
    arm, definition = Arm.parse(name), config["models"][model]
    start = starting_endpoint(config, model) if arm.unlearner else name
    is_ready = definition.get("contaminated")
    is_itself = is_ready and start == "contaminated"
    base = (is_ready and not is_itself and definition.get("base")) or model
    opened = {"model_card": paths.MODEL_CARD, "tokens": paths.TOKENS}
    files = {kind: pattern.replace("{model}", base) for kind, pattern in opened.items()}
    if start != "base" and not is_itself:
        files["trained"] = paths.TRAINED.replace("{arm}", start)
    if arm.unlearner:
        files["unlearned"] = paths.TRAINED.replace("{arm}", name)
    if arm.list:
        files["removal"] = config["unlearning"]["lists"][arm.list]
    elif arm.selector and ranks_tokens(config, arm.selector):
        files["spans"] = paths.SPANS
    elif arm.selector:
        files["removal"] = paths.REMOVAL
    return files
