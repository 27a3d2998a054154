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

__all__ = ["DensityRatioClassifier", "rank"]
"""What a room beside the core has for Python: see ``rooms``."""
__version__ = "0.8.0"


def __getattr__(name: str) -> Any:
    # Only for whoever asks for it: it is heavy, and every command imports this package.
    if name in __all__:
        from mamushi.rooms import additions

        for names in additions("python_names"):
            if name in names():
                return getattr(import_module(names()[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
