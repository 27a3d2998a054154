"""Families of claims, as they are written in ``studies/evidence/families`` before the runs."""

from pathlib import Path
from typing import Literal

import msgspec
import yaml

FOLDER = Path(__file__).parent / "families"
RANDOM = "random"
OF_TEXTS = ("recovered", "deep", "retain")
"""Measures that are read text by text, of the NLL."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim; ``families/README.md`` says what each key is."""

    says: str
    measure: Literal["recovered", "deep", "retain", "sad", "auc", "half_gap", "saving"]
    one: str
    expect: Literal["above", "below", "alike", "not_above"]
    than: list[str] = []
    than_budgets: list[float] = []
    than_by: list[str] = []
    by: str = "retraining"
    less: str | None = None
    budget: float | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        if sum(map(bool, (self.than, self.than_budgets, self.than_by))) != 1:
            raise ValueError("give one of than, than_budgets and than_by")
        if self.than_by and self.measure in ("sad", "auc"):
            raise ValueError(f"{self.measure} cannot be compared by unlearners")
        if (self.expect in ("alike", "not_above")) != (self.margin > 0):
            raise ValueError("alike and not_above need a margin, and nothing else has one")

    @property
    def statements(self) -> list[tuple[float, float]]:
        """What must be above 0, as (sign, shift) of sign * (difference + shift)."""
        upper, lower = (-1.0, -self.margin), (1.0, self.margin)
        return {"above": [lower], "alike": [upper, lower]}.get(self.expect, [upper])


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All claims that are tried on a dataset, and on what; they are corrected together."""

    dataset: str
    model: str
    seeds: list[int]
    budgets: list[float]
    chance: list[str]
    claims: dict[str, Claim]

    def baselines(self) -> list[str]:
        """Return the unlearners that claims hold against with the whole forget set, each once."""
        claims = [claim for claim in self.claims.values() if claim.measure in OF_TEXTS]
        return list(dict.fromkeys(name for claim in claims for name in claim.than_by))

    def selectors(self) -> list[str]:
        """Return the selectors of the claims, each once, without ``gold``."""
        claims = self.claims.values()
        names = [name for claim in claims for name in (claim.one, *claim.than, claim.less)]
        return [name for name in dict.fromkeys(names) if name not in (None, "gold")]


def read_families(folder: Path = FOLDER) -> dict[str, Family]:
    """Return the families of all files by ``jigsaw-tokens``; those of ``rankings.yaml`` have the
    name of their dataset."""
    families = {}
    for path in sorted(folder.glob("*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        for dataset in content.pop("datasets"):
            name = dataset if path.stem == "rankings" else f"{dataset}-{path.stem}"
            families[name] = msgspec.convert({"dataset": dataset, **content}, Family)
    return dict(sorted(families.items()))
