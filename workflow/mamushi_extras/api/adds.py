"""What this room adds to the core."""

from collections.abc import Mapping


def python_names() -> Mapping[str, str]:
    """Return what Python users call, each with its module."""
    return {
        "rank": "mamushi_curate.ranking",
        "DensityRatioClassifier": "mamushi_curate.classifier",
    }
