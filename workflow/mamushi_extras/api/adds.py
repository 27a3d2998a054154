"""What this room adds to the core."""

from collections.abc import Mapping


def python_names() -> Mapping[str, str]:
    """Return the functions for Python users, each with its module."""
    return {"rank": "mamushi_extras.api.rank"}
