"""Mamushi: which training examples to remove from a language model, how many, and what it buys.

This package is the core, which is the paper. Its rooms, in the order in which data flows:
``config`` and ``io``, then ``data`` -> ``lm`` -> ``selection`` -> ``unlearning`` ->
``evaluation`` -> ``evidence`` -> ``figures``. A room imports only from rooms before it.
``running`` says what a stage is; ``stages`` has one for each rule of the workflow, ``commands``
those for people: see ``mamushi --help``. Extras beside it, such as ``mamushi.rank`` in Python, are
found by their folders: see ``registry``.
"""

from importlib import import_module
from typing import Any

__version__ = "0.9.0"
__all__ = ["edits", "rank"]


def __getattr__(name: str) -> Any:
    # Only for whoever asks for it: it is heavy, and every command imports this package.
    if name == "rank":
        return import_module("mamushi_curate.ranking").rank
    if name == "edits":
        return import_module("mamushi_extras.edits")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
