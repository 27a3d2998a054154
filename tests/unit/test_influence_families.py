"""The claims of influence and cross-entropy are judged by the archive, as the page says."""

import numpy as np
import pytest

from studies.influence.judge import FAMILIES, HERE, Archived, family_seeds, judged, read_claims

FILE = read_claims()


def made(shares: dict[str, float], seeds: int = 4, texts: int = 60) -> Archived:
    """An archive in which each arm has recovered a share of the gap, of 0.1 nats a token, and gold
    is worse by 0.03 on all texts."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(5, 40, 2 * texts).astype(float)
    forget = np.arange(2 * texts) < texts
    values = {}
    for seed in range(seeds):
        beta0 = tokens * (4 + 0.01 * rng.standard_normal(2 * texts))
        gap = np.where(forget, 0.1, 0.0) * tokens * (1 + 0.1 * rng.standard_normal(2 * texts))
        worse = 0.03 * tokens
        for arm, share in {"beta0": 0.0, "gold": 1.0, **shares}.items():
            noise = 0.001 * tokens * rng.standard_normal(2 * texts) * (0 < share < 1)
            for column in ("nll", "deep", "relearned"):
                values[seed, arm, column] = beta0 + share * gap + noise + worse * (arm == "gold")
    return Archived(forget, np.arange(2 * texts), tokens, values)


def test_shares_and_claims_are_those_of_the_world() -> None:
    world = made({"texts-influence-0.50": 0.7, "texts-random-0.50": 0.3})
    seeds = world.seeds("texts-influence-0.50", "texts-random-0.50")
    assert seeds == [0, 1, 2, 3]
    effect = world.effect("deep", "texts-influence-0.50", 0.0, seeds)
    assert effect.low < 0.7 < effect.high
    assert effect.high - effect.low < 0.05
    alone = world.effect("deep", "texts-influence-0.50", 0.0, seeds, net=False)
    assert alone.estimate == pytest.approx(0.7 / 1.3, abs=0.02)
    gap = world.effect("recovered", "gold", 0.0, seeds, share=False)
    assert gap.estimate == pytest.approx(0.1, abs=0.01)
    assert world.effect("retain", "texts-random-0.50", 0.01, seeds).high < 0
    arm = {"arm": "texts-influence-0.50"}
    claims = {
        "right": {**arm, "measure": "recovered", "above": "texts-random-0.50"},
        "wrong": {"arm": "texts-random-0.50", "measure": "relearned", "above": 0.5},
        "preserves": {**arm, "measure": "retain", "below": 0.01},
        "lacking": {"arm": "texts-auto-0.50", "measure": "deep", "above": 0.5},
    }
    words = dict(judged(world, claims, seeds))
    assert words["right"].endswith(": confirmed")
    assert words["wrong"].endswith(": contradicted")
    assert words["preserves"].endswith(": confirmed")
    assert words["lacking"] == "not trained"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dataset", FILE["datasets"])
def test_the_archive_has_the_verdicts_of_the_file(dataset: str, family: str) -> None:
    (file,) = HERE.glob("families-*.txt")
    prefix = f"{dataset}_claim_{family}_"
    lines = file.read_text(encoding="utf-8").splitlines()
    printed = dict(
        line.removeprefix(prefix).split(" ", 1) for line in lines if line.startswith(prefix)
    )
    assert dict(judged(Archived.read(dataset), FILE[family], family_seeds(FILE, family))) == printed
