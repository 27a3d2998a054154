"""Mamushi: which training examples to remove from a language model, how many, and what it buys.

Rooms, in the order in which data flows; a room imports only from rooms before it: ``artifacts`` and
``running``, on which all rest, then ``data`` -> ``lm`` -> ``selection`` -> ``unlearning`` ->
``evaluation`` -> ``evidence`` -> ``figures``. ``configuration`` says what is asked for, and
``stages`` holds one thin command per workflow rule and ``commands`` those for people: see
``mamushi --help``. ``mamushi.rank`` does the same in Python: see ``api``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mamushi.api import rank

__all__ = ["rank"]
__version__ = "0.7.0"


def __getattr__(name: str) -> Any:
    # Only for whoever asks for it: it is heavy, and every command imports this package.
    if name in __all__:
        from mamushi import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
