"""The arms of a cell: its models, each by its name and with a folder of its own.

``base``, ``contaminated``, ``gold`` and ``beta0`` are endpoints, shared by all selectors.
``retrained/mamushi/beta0.10`` was trained without a removal list;
``neggrad_plus/mamushi/beta0.10`` unlearned one, ``neggrad_plus/whole`` the whole forget set, and
``neggrad_plus/lists/mine`` a removal list of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mamushi.config.kinds import Config
from mamushi.io import paths

ENDPOINTS = ("base", "contaminated", "gold", "beta0")
RETRAINING = "retrained"
"""Stands where others have the name of an unlearner, which none may have."""
RETRAINED = "retrained/{selector}/beta{beta}"
UNLEARNED = "{unlearner}/{selector}/beta{beta}"
BETA = r"0\.\d\d(?:\d{0,3}[1-9])?"
"""A budget as it stands in file names: see ``paths.beta``."""
UNLEARNED_WHOLE = "{unlearner}/whole"
LISTED = "{unlearner}/lists/{list}"
NAME = re.compile(
    rf"(?P<endpoint>{'|'.join(ENDPOINTS)})|(?P<unlearner>[^/]+)/"
    r"(?:whole|lists/(?P<list>[^/]+)|(?P<selector>[^/]+)/beta(?P<beta>[^/]+))"
)


@dataclass(frozen=True)
class Arm:
    """One model of a cell, by what it was made with."""

    endpoint: str | None = None
    unlearner: str | None = None
    selector: str | None = None
    beta: str | None = None
    list: str | None = None

    @classmethod
    def parse(cls, name: str) -> Arm:
        """Return the arm of this name. Raises ``ValueError`` for a name that is none."""
        if (match := NAME.fullmatch(name)) is None:
            raise ValueError(f"{name!r} is no model of a cell")
        names = match.groupdict()
        retrained = {"unlearner": None} if names["unlearner"] == RETRAINING else {}
        return cls(**names | retrained)

    def origin(self, config: Config, model: str) -> str:
        """Return the endpoint that it is opened as: itself, the one that it is trained like, or
        the one that unlearning started from."""
        if self.endpoint:
            return self.endpoint
        return starting_endpoint(config, model) if self.unlearner else "beta0"

    def base(self, config: Config, model: str) -> str:
        """Return the model whose card and tokens it has: where one that is already contaminated
        names a ``base``, all but ``contaminated``, and what starts from that, are of that one."""
        is_model_itself = self.origin(config, model) == "contaminated"
        return model if is_model_itself else base(config, model) or model


def retrained(selector: str, budget: float | str) -> str:
    """Return the arm that was trained without a selector's list at a budget."""
    return RETRAINED.format(selector=selector, beta=paths.beta(budget))


def unlearned(unlearner: str, selector: str, budget: float | str) -> str:
    """Return the arm that unlearned a selector's list at a budget."""
    return UNLEARNED.format(unlearner=unlearner, selector=selector, beta=paths.beta(budget))


def whole(unlearner: str) -> str:
    """Return the arm that unlearned the whole forget set."""
    return UNLEARNED_WHOLE.format(unlearner=unlearner)


def base(config: Config, model: str) -> str | None:
    """Return the model that retraining starts from: the model itself, or the ``base`` that one
    which is already contaminated names, if any."""
    definition = config["models"][model]
    clean: str | None = definition.get("base") if definition.get("contaminated") else model
    return clean


def starting_endpoint(config: Config, model: str) -> str:
    """Return the endpoint from which unlearning starts. A model that is declared contaminated
    starts as it is: it has seen the data, and is the one to be mended."""
    ready = config["models"][model].get("contaminated")
    return "contaminated" if ready else str(config["unlearning"]["start"])


def pattern(config: Config) -> str:
    """Return the constraint of the wildcard ``arm``: every model of a cell."""

    def any_of(names: Iterable[str]) -> str:
        return f"(?:{'|'.join(map(re.escape, names)) or '(?!)'})"

    by_selector = f"{any_of(config['selectors'])}/beta(?:{BETA})"
    listed = f"lists/{any_of(config['unlearning']['lists'])}"
    by_unlearner = f"{any_of(config['unlearners'])}/(?:whole|{listed}|{by_selector})"
    return f"{any_of(ENDPOINTS)}|{RETRAINING}/{by_selector}|{by_unlearner}"
