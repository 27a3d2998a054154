"""Mamushi: which training examples to remove from a language model, how many, and what it buys.

Rooms, in the order in which data flows; a room imports only from rooms before it: ``artifacts`` and
``running``, on which all rest, then ``data`` -> ``lm`` -> ``selection`` -> ``unlearning`` ->
``evaluation`` -> ``evidence`` -> ``figures``. ``configuration`` says what is asked for, and
``stages`` holds one thin command per workflow rule and ``commands`` those for people: see
``mamushi --help``.
"""

__version__ = "0.7.0"
