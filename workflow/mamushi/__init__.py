"""Mamushi: which training examples to remove from a language model, how many, and what it buys.

Rooms, in the order in which data flows; a room imports only from rooms before it: ``artifacts`` and
``running``, on which all rest, then ``data`` -> ``lm`` -> ``selection`` -> ``unlearning`` ->
``evaluation`` -> ``evidence`` -> ``figures``. ``configuration`` says what is asked for, and
``stages`` holds one thin command per workflow rule and ``commands`` those for people: see
``mamushi --help``. ``mamushi.rank`` does the same in Python.
"""

from importlib import import_module
from typing import Any

__all__ = ["rank"]
"""Functions of a room beside the core: see ``rooms``."""
__version__ = "0.8.0"


def __getattr__(name: str) -> Any:
    # Only for whoever asks for it: it is heavy, and every command imports this package.
    if name in __all__:
        from mamushi.rooms import additions

        for names in additions("python_names"):
            if name in names():
                return getattr(import_module(names()[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
