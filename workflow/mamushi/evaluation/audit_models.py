"""The audit of models as wholes: distances to gold, forensic tests, what comes back, utility.

Distances and tests of models read the held-out NLL that evaluation has stored: of gold and of all
retrained models of the grid, and of the unlearned ones that are audited. What comes back, and
naming the removed texts, need the models themselves, and are of those that are audited alone.
"""

from __future__ import annotations

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
from mamushi.errors import UserError
from mamushi.evaluation import forensic
from mamushi.evaluation.cohort import Cohort, cohorts, read_nll
from mamushi.evaluation.curves import read_perplexity
from mamushi.evaluation.klom import distance, margins
from mamushi.evaluation.paired import interval, known, seeds_needed
from mamushi.evaluation.sad import Floats
from mamushi.evaluation.sources import RETRAINING, Source
from mamushi.evaluation.subgroups import change, groups

Row = dict[str, Any]
Cohorts = Iterator[tuple[Cohort, list[Source]]]

GOLD = "gold"
ENDS = {"": "excess", "_low": "low", "_high": "high"}


@dataclass(frozen=True)
class Audit:
    """What is audited: the lists of ``grid``, whose retrained models are measured anyway, and of
    ``deleted``, whose models are asked more; and by model the endpoint from which unlearning
    starts. All under the folder of results ``root``."""

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

    def tables(self, *, tasks: bool) -> list[tuple[Table, pa.Table]]:
        """Return all tables, with that of ``tasks`` where models were asked for them.

        Raises ``UserError`` that names the first file that is missing, damaged or of other texts.
        """
        kinds: dict[Table, Callable[[Audit], Iterator[Row]]] = {
            schemas.KLOM: klom,
            schemas.TELL_MODELS: tell_models,
            schemas.NAME_TEXTS: name_texts,
            schemas.RELAPSE: relapse,
            schemas.UTILITY: utility,
            **({schemas.UTILITY_TASKS: utility_tasks} if tasks else {}),
        }
        return [
            (kind, pa.Table.from_pylist(list(rows(self)), schema=kind.schema))
            for kind, rows in kinds.items()
        ]


def _nll(cohort: Cohort, source: Source) -> Floats:
    """Return sums of the NLL (S, n) of held-out texts, which unlearned models are asked for."""
    unlearned = source.selector is not None and source.source != RETRAINING
    return cohort.nll(source.arm, paths.RELAPSE_NLL if unlearned else paths.NLL)


def klom(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``klom``: distances between ensembles."""
    for cohort, sources in audit.measured():
        for source, domain in product(sources, DOMAINS):
            here = cohort.of(domain)
            nlls = _nll(cohort, source), cohort.gold
            found = asdict(distance(*(margins(x[:, here], cohort.tokens[here]) for x in nlls)))
            yield {
                **cohort.at,
                **asdict(source),
                **{"domain": domain, "texts": int(here.sum()), "seeds": len(cohort.seeds)},
                **{"klom": found["klom"], "klom_floor": found["floor"]},
                **{f"excess{end}": found[key] for end, key in ENDS.items()},
                **{"p": found["p"], "seeds_needed": found["needed"], "why": found["why"]},
            }


def tell_models(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``tell_models``: against gold, and unlearned against retrained
    models; for each dataset and model also gold models of some seeds against those of others."""
    shown = set()
    for cohort, sources in audit.measured():
        pairs: list[tuple[Source, str, Floats, Floats]] = []
        if (cohort.dataset, cohort.model, cohort.seeds) not in shown:
            half = len(cohort.seeds) // 2
            pairs.append((Source(GOLD), GOLD, cohort.gold[:half], cohort.gold[half : 2 * half]))
            shown.add((cohort.dataset, cohort.model, cohort.seeds))
        for source in sources:
            ours = _nll(cohort, source)
            pairs.append((source, GOLD, ours, cohort.gold))
            if source.source != RETRAINING:
                retrained = Source(RETRAINING, source.selector, source.beta)
                pairs.append((source, RETRAINING, ours, _nll(cohort, retrained)))
        for (source, against, first, second), domain in product(pairs, DOMAINS):
            here = cohort.of(domain)
            two = (margins(x[:, here], cohort.tokens[here]) for x in (first, second))
            row = {**cohort.at, **asdict(source), "against": against, "domain": domain}
            yield {**row, "pairs": len(first), **_tell(*two)}


def _tell(first: Floats, second: Floats) -> Row:
    needed = forensic.pairs_needed()
    why = f"{len(first)} pairs of models: p can be below 0.05 from {needed} on"
    if len(first) < 2:
        return {"why": f"{why}; a classifier has none to learn from"}
    found = forensic.tell_models_apart(first, second)
    chance = {"chance_low": found.low, "chance_high": found.high}
    return {
        **{"told": found.share, **chance, "p": found.p},
        "why": why if len(first) < needed else None,
    }


def name_texts(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``name_texts``: can the removed texts be named?"""
    for cohort, sources in audit.asked():
        unseen = [i for i, one in zip(cohort.ids, cohort.of(FORGET), strict=True) if one]
        gold = cohort.files(paths.RELAPSE_NLL, arm=GOLD)
        for source in sources:
            models = cohort.files(paths.RELAPSE_NLL, arm=source.arm)
            lists = cohort.lists(source)
            yield {
                **cohort.at,
                **asdict(source),
                **{"seeds": len(cohort.seeds), "removed": min(map(len, lists))},
                "unseen": len(unseen),
                **_name(models, gold, lists, unseen),
            }


def _name(
    models: Sequence[Path], gold: Sequence[Path], lists: Sequence[list[str]], unseen: list[str]
) -> Row:
    fewest = forensic.FEWEST_TEXTS
    if len(models) < 2:
        return {"why": "one seed: there is no other gold model to compare"}
    if min(len(unseen), *map(len, lists)) < fewest:
        return {"why": f"fewer than {fewest} texts of either kind"}
    found: dict[str, list[forensic.TextTest]] = {"": [], "gold_": []}
    for seed, (model, removed) in enumerate(zip(models, lists, strict=True)):

        def margin(path: Path, texts: Sequence[str] = (*removed, *unseen)) -> Floats:
            tokens, nll = read_nll(path, texts)
            return margins(nll, np.maximum(tokens, 1))

        every = [margin(path) for path in gold]
        others = np.mean([each for i, each in enumerate(every) if i != seed], axis=0)
        for whose, each in (("", margin(model)), ("gold_", every[seed])):
            parts = np.split(each - others, [len(removed)])
            found[whose].append(forensic.name_removed_texts(*parts))
    row: Row = {}
    for whose, tests in found.items():
        names = (f"{whose}auc{end}" for end in ("", "_low", "_high"))
        row |= zip(names, forensic.mean_over_seeds(tests), strict=True)
    return row


def relapse(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``relapse``: what brings the domain back."""
    for cohort, sources in audit.asked():
        before_all = cohort.files(paths.PERPLEXITY, arm=audit.starts[cohort.model])
        start = [np.log(read_perplexity(path).ppl_forget) for path in before_all]
        gold_files = cohort.files(paths.RELAPSE, arm=GOLD)
        gold = _read_treatments(gold_files)
        for source in sources:
            found = _read_treatments(cohort.files(paths.RELAPSE, arm=source.arm))
            for (treatment, amount), (before, after) in found.items():
                if (treatment, amount) not in gold:
                    problem = f"has no {treatment} {amount}"
                    raise UserError(problem, where=gold_files[0], do="run again")
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
                    **_excess(regained - theirs),
                    "retain_lost": float((after - before)[:, 1].mean()),
                }


def _excess(by_seed: Floats) -> Row:
    mean = float(by_seed.mean())
    if len(by_seed) == 1:
        return {"excess": mean, "why": "one seed: training again may change as much"}
    low, high = interval(by_seed)
    needed = seeds_needed(mean, float(by_seed.std(ddof=1)), 1)
    return {"excess": mean, "excess_low": low, "excess_high": high, "seeds_needed": needed}


def _read_treatments(files: Sequence[Path]) -> dict[tuple[str, int], tuple[Floats, Floats]]:
    """Return mean NLL before and after each treatment and amount: (S, 2), forget and retain."""
    found: dict[tuple[str, int], list[Floats]] = {}
    for path in files:
        for row in read_table(path, schemas.RELAPSES).to_pylist():
            ends = np.array([row[f"nll_{domain}"] for domain in (FORGET, RETAIN)])
            found.setdefault((row["treatment"], row["amount"]), []).append(ends)
    for (treatment, amount), each in found.items():
        if len(each) != len(files):
            problem = f"not all seeds have {treatment} {amount}"
            raise UserError(problem, where=files[0].parent, do="run again")
    before = found.get((f"relearn {FORGET}", 0))
    if before is None:
        raise UserError("has no model before treatment", where=files[0], do="run again")
    return {key: (np.array(before), np.array(after)) for key, after in found.items()}


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


def utility_tasks(audit: Audit) -> Iterator[Row]:
    """Yield the rows of the table ``utility_tasks``: scores of tasks, mean over seeds."""
    for cohort, sources in audit.asked():
        for source in (*map(Source, UTILITY), *sources):
            found: dict[tuple[str, str], list[tuple[float, float | None]]] = {}
            for path in cohort.files(paths.TASKS, arm=source.arm):
                for row in read_table(path, schemas.TASK_SCORES).to_pylist():
                    key = (row["task"], row["metric"])
                    found.setdefault(key, []).append((row["value"], row["error"]))
            for (task, metric), scores in found.items():
                values = np.array([value for value, _ in scores])
                errors = [error for _, error in scores if error is not None]
                low, high = interval(values)
                yield {
                    **cohort.at,
                    **asdict(source),
                    **{"task": task, "metric": metric, "seeds": len(scores)},
                    **{"value": float(values.mean()), "value_low": known(low)},
                    **{
                        "value_high": known(high),
                        "error": float(np.mean(errors)) if errors else None,
                    },
                }
