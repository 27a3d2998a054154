"""What a run says of the claims that were written down before it: confirmed, contradicted, or not.

A claim says that some differences are above 0: each is a test, and the claim's p is the largest of
them, since all must hold. All claims of a dataset are corrected together (Holm), whichever measure
they use; those of unlearned models count where the run has them all. One function gives the word.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mamushi.evaluation.intervals import LEVEL
from mamushi_extras.effects.contrasts import Effect, holm
from studies.evidence.archive import Run
from studies.evidence.families import Claim, Family, read_families
from studies.evidence.measures import Absent, Measured, difference

CONFIRMED, CONTRADICTED, CANNOT = "confirmed", "contradicted", "cannot be told"


def verdict(p: float, interval: tuple[float, float], *, towards: bool) -> str:
    """Return the word for a claim, of its corrected p, the interval of the difference that decides
    it, and whether that lies towards the claim. Without a p, or where the interval is open, it
    cannot be told."""
    if not (np.isfinite(interval).all() and p <= LEVEL):
        return CANNOT
    return CONFIRMED if towards else CONTRADICTED


@dataclass(frozen=True)
class Tried:
    """A claim and what was measured: by rival the difference, and by statement that and its sign.

    ``seeds`` are those of the run. ``why`` says what is lacking, where nothing was measured.
    """

    claim: Claim
    effects: dict[str, Effect]
    statements: list[tuple[Effect, float]]
    seeds: list[int]
    why: str | None = None

    @property
    def closest(self) -> tuple[str, Effect]:
        """The rival that is the hardest for the claim, and the difference to it."""
        hard = {"above": lambda d: -d, "alike": abs}.get(self.claim.expect, lambda d: d)

        def hardness(pair: tuple[str, Effect]) -> float:
            # One that is not known may be any.
            return float(hard(pair[1].estimate)) if np.isfinite(pair[1].p) else np.inf

        return max(self.effects.items(), key=hardness)

    @property
    def sides(self) -> tuple[float, float]:
        """One-sided p of the claim, which holds where all statements do, and of its contrary, which
        does where one fails (Bonferroni)."""
        one_sided = [
            effect.p / 2 if sign * effect.estimate > 0 else 1 - effect.p / 2
            for effect, sign in self.statements
        ]
        if not one_sided or not np.isfinite(one_sided).all():
            return np.nan, np.nan
        return max(one_sided), min(1.0, len(one_sided) * (1 - max(one_sided)))

    @property
    def p(self) -> float:
        """Two-sided p, corrected for nothing."""
        return float(np.minimum(1.0, 2 * np.minimum(*self.sides)))

    @property
    def towards(self) -> bool:
        """Whether the difference that decides it lies towards the claim."""
        return self.sides[0] <= self.sides[1]


@dataclass(frozen=True)
class Judged:
    """A claim with its place in the family: the p that is corrected, and the word."""

    tried: Tried
    p: float
    word: str


def try_claim(claim: Claim, measured: Measured) -> Tried:
    """Measure a claim on what a run has trained."""
    rivals = claim.than or claim.than_budgets or claim.than_by
    seeds = measured.seeds
    if not seeds:
        return Tried(claim, {}, [], seeds, "no seed has all of its models")
    try:
        effects = {str(rival): difference(claim, measured, rival) for rival in rivals}
        statements = [
            (difference(claim, measured, rival, shift), sign)
            for rival in rivals
            for sign, shift in claim.statements
        ]
    except Absent as missing:
        return Tried(claim, {}, [], seeds, str(missing))
    reasons = [effect.reason for effect in effects.values() if effect.reason]
    return Tried(claim, effects, statements, seeds, reasons[0] if reasons else None)


def judge(family: Family, run: Run, *, net: bool = True) -> dict[str, Judged]:
    """Return each claim of a family as the run has it, by name; of shares ``net`` of retain texts,
    or of forget texts alone."""
    measured = Measured(run, family, net)
    tried = {name: try_claim(claim, measured) for name, claim in family.claims.items()}
    # A claim that has no p is counted: what is corrected for was written down before the run.
    corrected = holm([1.0 if np.isnan(claim.p) else claim.p for claim in tried.values()])
    judged = {}
    for (name, claim), p in zip(tried.items(), corrected, strict=True):
        interval = np.nan, np.nan
        if claim.effects:
            interval = claim.closest[1].low, claim.closest[1].high
        p = float("nan") if np.isnan(claim.p) else float(p)
        word = verdict(p, interval, towards=claim.towards)
        judged[name] = Judged(claim, p, word)
    return judged


def claim_lines(archive: Mapping[tuple[str, str], Run]) -> Iterator[tuple[str, str]]:
    """Yield name and value of every claim of every family that the runs of an archive try."""
    for family in read_families().values():
        if (run := archive.get((family.dataset, family.model))) is None:
            continue
        for name, judged in judge(family, run).items():
            line = f"{in_words(judged.tried)} p_holm {judged.p:.3g}: {judged.word}"
            yield f"{family.dataset}/{family.model}/{name}", line


def in_words(tried: Tried) -> str:
    """Return a claim's difference to its closest rival in words."""
    if not tried.effects:
        return str(tried.why)
    rival, effect = tried.closest
    return (
        f"{tried.claim.measure} {tried.claim.one} less {rival} {effect.estimate:.4g} "
        f"[{effect.low:.4g}, {effect.high:.4g}] p {tried.p:.3g} seeds {len(tried.seeds)}"
    )
