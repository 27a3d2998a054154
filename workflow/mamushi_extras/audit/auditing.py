"""What people's answers about a sample of texts say of a removal list: its precision, its recall,
and the share of the domain before and after.

Texts are drawn at random within strata. Intervals are melded (Fay, Proschan and Brittain 2015): the
exact one-sided confidence distributions of each stratum's number of texts of the domain, of which a
lower limit takes the lower and an upper limit the upper one.

The majority of those who say yes or no decides; a text on which they are divided, or that was
passed over, is unsure. Texts behind the last that was answered are as if they had not been drawn.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mamushi.selection.arrays import Doubles
from mamushi_extras.audit.answers import NO, YES

Ints = NDArray[np.int64]
UNSURE = "unsure"

TAIL = (1 - 0.95) / 2
DRAWS = 20_000  # Of the number of texts of the domain in each stratum, for an interval.
STRATUM_FLOOR = 4  # One answer in so many is spread evenly over the strata, for surprises.
NEAR = 6  # The stratum below the list's end has at most one in so many of the kept texts.
QUANTITIES = {
    "precision": "of the list is of the domain",
    "recall": "of the domain is on the list",
    "before": "of all texts is of the domain",
    "after": "of what is kept is of the domain",
}


def stratify(source: Ints, place: Ints | Doubles) -> Ints:
    """Return the stratum of each of n texts, from 0, those of the list first. ``source`` (n,) is 0
    for texts of the list, ``place`` (n,) the order in which the texts of a source would go. The
    list is halved; what is kept is cut below its first texts, as many as the list has, and where it
    is of one source, a second time."""
    codes = np.empty(len(source), dtype=np.int64)
    sources, strata = np.unique(source), list[Ints]()
    for number in sources:
        members = np.flatnonzero(source == number)
        members = members[np.argsort(place[members], kind="stable")]
        near = min(int((source == 0).sum()), len(members) // NEAR)
        ends = [len(members) // 2] if number == 0 else [near, 4 * near][: 4 - len(sources)]
        strata += filter(len, np.split(members, ends))
    for code, members in enumerate(strata):
        codes[members] = code
    return codes


def allocate(strata: pd.DataFrame, answers: int) -> Ints:
    """Return how many of so many ``answers`` each stratum gets (h,): as many as narrows the
    intervals of precision and recall most (Neyman), and no fewer than a floor. What is likely
    counts as much as answers spread evenly: also where nothing is likely something may be."""
    sizes, listed, likely = (strata[name].to_numpy() for name in ("texts", "listed", "likely"))
    worth = answers / len(strata)
    share = (likely * worth + 0.5) / (worth + 1)
    total = sizes @ share
    recall = sizes[listed] @ share[listed] / total
    of_precision = np.where(listed, sizes / max(sizes[listed].sum(), 1), 0.0)
    of_recall = np.where(listed, 1 - recall, recall) * sizes / total
    need = np.hypot(of_precision, of_recall) * np.sqrt(share * (1 - share))
    counts = np.minimum(sizes, max(2, answers // (STRATUM_FLOOR * len(strata))))
    for _ in range(min(answers, int(sizes.sum())) - int(counts.sum())):
        # To where it takes most off the variance, which is need^2 / answers (Wright 2012).
        takes_off = np.where(counts < sizes, need**2 / (counts * (counts + 1.0)), -1.0)
        counts[takes_off.argmax()] += 1
    return np.asarray(counts, dtype=np.int64)


def sample(codes: Ints, counts: Ints, rng: np.random.Generator) -> Ints:
    """Return which texts to read, in an order by chance: ``counts`` (h,) of each stratum."""
    members = (np.flatnonzero(codes == stratum) for stratum in range(len(counts)))
    drawn = [rng.choice(rows, n, replace=False) for rows, n in zip(members, counts, strict=True)]
    return np.asarray(rng.permutation(np.concatenate(drawn)))


def estimates(
    strata: pd.DataFrame, answers: Doubles, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """Return each of ``QUANTITIES`` with the ends of its 95% interval, from ``answers`` (3, h): how
    many texts of each stratum were read, how many of them are of the domain, and of how many nobody
    can say. These are left out of the value; each limit takes one for what is worse."""
    read, yes, unsure = answers
    sizes, listed = strata["texts"].to_numpy(), strata["listed"].to_numpy()

    def drawn(seen: Doubles, shift: int) -> Doubles:
        """Draw each stratum's number of texts of the domain (DRAWS, h): of those that nobody read
        it is beta-binomial, as order statistics of a sample without replacement, with a shift of 0
        for the exact distribution of the lower limit, of 1 for the upper one."""
        a, b = seen + shift, read - seen + 1 - shift
        share = rng.beta(np.maximum(a, 1e-9), np.maximum(b, 1e-9), (DRAWS, len(read)))
        share = np.where(a <= 0, 0.0, np.where(b <= 0, 1.0, share))
        return np.asarray(seen + rng.binomial(np.rint(sizes - read).astype(int), share))

    def quantities(numbers: Doubles, of_kept: Doubles) -> list[Doubles]:
        """Return ``QUANTITIES`` of numbers of texts (..., h). Recall is the lower, the fewer listed
        and the more kept texts are of the domain: it takes numbers ``of_kept`` texts by others."""
        of_all = np.where(listed, numbers, of_kept)
        return [
            numbers[..., listed].sum(-1) / sizes[listed].sum(),
            of_all[..., listed].sum(-1) / of_all.sum(-1),
            numbers.sum(-1) / sizes.sum(),
            numbers[..., ~listed].sum(-1) / sizes[~listed].sum(),
        ]

    low, high = drawn(yes, 0), drawn(yes + unsure, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = sizes * (yes / (read - unsure))
        ends = quantities(numbers, numbers), quantities(low, high), quantities(high, low)
    return {
        name: (
            float(value),
            float(np.quantile(np.nan_to_num(lowest, nan=0.0), TAIL)),
            float(np.quantile(np.nan_to_num(highest, nan=1.0), 1 - TAIL)),
        )
        for name, value, lowest, highest in zip(QUANTITIES, *ends, strict=True)
    }


def merge(people: pd.DataFrame, least: int = 1) -> pd.Series:
    """Return one answer to each of the texts that so many people have reached, at ``least``: that
    which so many more give than the other one; else it is unsure."""
    places = np.arange(1, len(people) + 1)[:, None] * people.notna().to_numpy()
    reached = np.sort(places.max(axis=0))
    count = reached[-least] if len(reached) >= least else 0
    margin = ((people == YES).sum(axis=1) - (people == NO).sum(axis=1))[:count]
    merged = np.select([margin >= least, margin <= -least], [YES, NO], UNSURE)
    return pd.Series(merged, margin.index, dtype=object)
