"""The audit of models as wholes: distances to gold, what comes back, utility.

Distances read the held-out NLL that evaluation has stored, of the retrained models of the grid, and
that of the unlearned ones that are audited; the rest needs the models, and is of these alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import DOMAINS, FORGET, RETAIN, read_table
from mamushi.configuration.grid import UTILITY
from mamushi.evaluation.cohort import RETRAINING, Cohort, Source, cohorts
from mamushi.evaluation.curves import read_perplexity
from mamushi.evaluation.paired import seeds_range, t_quantile
from mamushi.evaluation.sad import Floats, standard_error
from mamushi.evaluation.subgroups import change, groups

Row = dict[str, Any]
Cohorts = Iterator[tuple[Cohort, list[Source]]]

GOLD = "gold"


@dataclass(frozen=True)
class Audit:
    """The lists of ``grid``, whose retrained models are measured anyway, and of ``deleted``, whose
    models are asked more; and by model the endpoint from which unlearning starts."""

    grid: Mapping[str, Any]
    deleted: Mapping[str, Any]
    starts: Mapping[str, str]
    root: str | Path

    def asked(self) -> Cohorts:
        """Yield each dataset and model of ``deleted``, with what is retrained and unlearned."""
        yield from self._of(self.deleted, (RETRAINING, *self.deleted["unlearners"]))

    def measured(self) -> Cohorts:
        """Yield each dataset and model of the grid, with all that it retrains; then those of
        ``deleted``, with what is unlearned."""
        yield from self._of(self.grid, (RETRAINING,))
        yield from self._of(self.deleted, self.deleted["unlearners"])

    def _of(self, axes: Mapping[str, Any], names: Sequence[str]) -> Cohorts:
        betas = sorted(map(float, axes["budgets"]))
        sources = [Source(*each) for each in product(names, axes["selectors"], betas)]
        for cohort in cohorts(axes, self.root):
            yield cohort, sources

    def tables(self) -> list[tuple[Table, pa.Table]]:
        """Return all tables.

        Raises ``UserError`` that names the first file that is missing, damaged or of other texts.
        """
        kinds: dict[Table, Callable[[Audit], Iterator[Row]]] = {
            schemas.KLOM: klom,
            schemas.RELAPSE: relapse,
            schemas.UTILITY: utility,
        }
        return [
            (kind, pa.Table.from_pylist(list(rows(self)), schema=kind.schema))
            for kind, rows in kinds.items()
        ]


def _nll(cohort: Cohort, source: Source) -> Floats:
    """Return sums of the NLL (S, n) of held-out texts, which unlearned models are asked for."""
    unlearned = source.selector is not None and source.source != RETRAINING
    return cohort.nll(source.arm, paths.RELAPSE_NLL if unlearned else paths.NLL)


def margins(nll: Floats, tokens: Floats) -> Floats:
    """Return log-likelihoods (..., n) over the root of the texts' predicted ``tokens`` (n,), which
    have one spread for long and short texts."""
    return -nll / np.sqrt(tokens)


def surprise(models: Floats, gold: Floats) -> Floats:
    """Return by seed (S,) how much more a model surprises the other seeds' gold models than the
    gold model of its own seed does: nats a text, mean over texts.

    ``1/2 mean_x[(m_s - g)^2 - (g_s - g)^2] / v`` of margins (S, n), S of 2 or more, where g is the
    mean of the gold models of other seeds and v their variance, one for all texts. Its mean is the
    cross entropy of the one under the other less the entropy of gold: 0 of models that are like it.
    """
    others = (gold.sum(axis=0) - gold) / (len(gold) - 1)
    spread = gold.var(axis=0, ddof=1).mean()
    apart = ((models - others) ** 2 - (gold - others) ** 2).mean(axis=1)
    return np.asarray(0.5 * apart / spread, dtype=np.float64)


def distance(models: Floats, gold: Floats) -> Row:
    """Return how far margins ``models`` (S, n) are from ``gold`` (S, n): columns of ``klom``."""
    from scipy.stats import t

    if len(gold) < 2:
        return {"why": "one seed: gold models have no spread to measure by"}
    if not gold.var(axis=0, ddof=1).mean() > 0:
        return {"why": "gold models of all seeds are the same"}
    mean, seeds = float(surprise(models, gold).mean()), len(gold)
    error = seed_error(models, gold)
    if error is None:
        return {"excess": mean, "why": "too few seeds with gold models that differ for an error"}
    return {**_excess(mean, error, seeds), "p": float(2 * t.sf(abs(mean) / error, seeds - 1))}


def seed_error(models: Floats, gold: Floats) -> float | None:
    """Return the error of the mean surprise of margins (S, n), by a jackknife of whole seeds.

    Models of all seeds are measured by the same gold ones, whose error the spread over seeds leaves
    out. With E the mean of all and E_s that without seed s, model and gold, its square is
    S / (S - 1) sum_s (E_s - E)^2: the jackknife's times (S / (S - 1))^2, without which the interval
    is too narrow where seeds move all texts together. None with fewer than 3 seeds, and where the
    gold models of all but one are the same.
    """
    seeds, mean = len(gold), surprise(models, gold).mean()
    rest = [tuple(np.delete(each, s, axis=0) for each in (models, gold)) for s in range(seeds)]
    if seeds < 3 or not all(own.var(axis=0).any() for _, own in rest):
        return None
    left = np.array([surprise(*each).mean() for each in rest])
    return float(np.sqrt(seeds / (seeds - 1) * ((left - mean) ** 2).sum())) or None


def klom(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``klom``: distances between ensembles."""
    for cohort, sources in audit.measured():
        for source, domain in product(sources, DOMAINS):
            here = cohort.of(domain)
            nlls = _nll(cohort, source), cohort.gold
            yield {
                **cohort.at,
                **asdict(source),
                **{"domain": domain, "texts": int(here.sum()), "seeds": len(cohort.seeds)},
                **distance(*(margins(x[:, here], cohort.tokens[here]) for x in nlls)),
            }


def relapse(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``relapse``: what brings the domain back."""
    for cohort, sources in audit.asked():
        before_all = cohort.files(paths.PERPLEXITY, arm=audit.starts[cohort.model])
        start = [np.log(read_perplexity(path).ppl_forget) for path in before_all]
        gold = _read_treatments(cohort.files(paths.RELAPSE, arm=GOLD))
        for source in sources:
            found = _read_treatments(cohort.files(paths.RELAPSE, arm=source.arm))
            for (treatment, amount), (before, after) in found.items():
                if treatment.startswith("relearn") and amount == 0:
                    continue
                regained = (before - after)[:, 0]
                theirs = np.subtract(*gold[treatment, amount])[:, 0]
                yield {
                    **cohort.at,
                    **asdict(source),
                    **{"treatment": treatment, "amount": amount, "seeds": len(cohort.seeds)},
                    "raised": float((before[:, 0] - start).mean()),
                    "regained": float(regained.mean()),
                    "gold_regained": float(theirs.mean()),
                    **_regained(regained - theirs),
                    "retain_lost": float((after - before)[:, 1].mean()),
                }


def _regained(by_seed: Floats) -> Row:
    mean = float(by_seed.mean())
    if len(by_seed) == 1:
        return {"excess": mean, "why": "one seed: training again may change as much"}
    return _excess(mean, standard_error(by_seed), len(by_seed))


def _excess(mean: float, error: float, seeds: int) -> Row:
    """Return a mean over seeds, its interval, and the seeds that would show it."""
    half = t_quantile(seeds - 1) * error
    needed = seeds_range(mean, error * float(np.sqrt(seeds)), seeds, 1) or (None, None)
    return {
        **{"excess": mean, "excess_low": mean - half, "excess_high": mean + half},
        **{"seeds_needed_low": needed[0], "seeds_needed_high": needed[1]},
    }


def _read_treatments(files: Sequence[Path]) -> dict[tuple[str, int], tuple[Floats, Floats]]:
    """Return mean NLL before and after each treatment and amount: (S, 2), forget and retain."""
    found: dict[tuple[str, int], list[Floats]] = {}
    for path in files:
        for row in read_table(path, schemas.RELAPSES).to_pylist():
            ends = np.array([row[f"nll_{domain}"] for domain in (FORGET, RETAIN)])
            found.setdefault((row["treatment"], row["amount"]), []).append(ends)
    before = np.array(found[f"relearn {FORGET}", 0])
    return {key: (before, np.array(after)) for key, after in found.items()}


def utility(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``utility``: perplexity of groups of the retain domain."""
    for cohort, sources in audit.asked():
        parts = [p for p in groups(cohort.texts, cohort.counted) if p.domain == RETAIN]
        for source in (*map(Source, UTILITY), *sources):
            nll = _nll(cohort, source)
            for part in parts:
                here = nll[:, part.rows]
                ends = change(here, np.zeros_like(here), cohort.tokens[part.rows])
                ppl = [None if end is None else float(np.exp(end)) for end in ends]
                yield {
                    **cohort.at,
                    **asdict(source),
                    **{"subgroup": part.subgroup, "value": part.value},
                    **{"texts": len(part.rows), "seeds": len(cohort.seeds)},
                    **dict(zip(("ppl", "ppl_low", "ppl_high"), ppl, strict=True)),
                }
