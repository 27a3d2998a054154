"""Mamushi: which training examples to remove from a language model, how many, and what it buys.

This package is the core, which is the paper. Its rooms, in the order in which data flows:
``config`` and ``io``, then ``data`` -> ``lm`` -> ``selection`` -> ``unlearning`` ->
``evaluation`` -> ``evidence`` -> ``figures``. A room imports only from rooms before it.
``running`` says what a stage is; ``stages`` has one for each rule of the workflow, ``commands``
those for people: see ``mamushi --help``. Extras beside it, such as ``mamushi.rank`` in Python, are
found by their folders: see ``rooms``.
"""

from importlib import import_module
from typing import Any

__version__ = "0.8.0"
__all__ = ["DensityRatioClassifier", "rank"]
FOR_PYTHON = {"rank": "ranking", "DensityRatioClassifier": "classifier"}
"""What the room of a user's own table has for Python, each with its module there."""


def __getattr__(name: str) -> Any:
    # Only for whoever asks for it: it is heavy, and every command imports this package.
    if name in FOR_PYTHON:
        return getattr(import_module(f"mamushi_curate.{FOR_PYTHON[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
