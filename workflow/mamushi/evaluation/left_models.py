"""The tables of what is left in a model, from what every model measured of every text.

Distances and tests of models read the held-out NLL that evaluation has stored: of gold and of all
retrained models of the grid, and of the unlearned ones that are looked at. What comes back, and
naming the removed texts, need the models themselves, and are of those that are looked at alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.schemas import Table
from mamushi.artifacts.tables import DOMAINS, FORGET, RETAIN, read_table
from mamushi.configuration import arms
from mamushi.configuration.grid import UTILITY, cells
from mamushi.data.labels import Labelled, read_labels
from mamushi.errors import UserError
from mamushi.evaluation import forensic
from mamushi.evaluation.curves import read_perplexity
from mamushi.evaluation.klom import distance, margins
from mamushi.evaluation.paired import interval, known, seeds_needed
from mamushi.evaluation.sad import Floats
from mamushi.evaluation.subgroups import change, groups

Rows = Iterator[dict[str, Any]]

RETRAINING, GOLD = "retraining", "gold"
ONE_SEED = "one seed: training again may change as much"


@dataclass(frozen=True)
class Axes:
    """What is looked at: the lists of ``grid``, whose retrained models are measured anyway, and of
    ``deleted``, whose models are made once more; and by model the endpoint from which unlearning
    starts. All under the folder of results ``root``."""

    grid: Mapping[str, Any]
    deleted: Mapping[str, Any]
    starts: Mapping[str, str]
    root: str | Path

    def looked_at(self) -> Iterator[tuple[Cohort, list[Deleted]]]:
        """Each dataset and model of ``deleted``, with what is retrained and unlearned."""
        yield from self._of(self.deleted, (RETRAINING, *self.deleted["unlearners"]))

    def measured(self) -> Iterator[tuple[Cohort, list[Deleted]]]:
        """Each dataset and model of the grid, with all that it retrains; then those of ``deleted``,
        with what is unlearned."""
        yield from self._of(self.grid, (RETRAINING,))
        yield from self._of(self.deleted, self.deleted["unlearners"])

    def _of(
        self, axes: Mapping[str, Any], sources: Sequence[str]
    ) -> Iterator[tuple[Cohort, list[Deleted]]]:
        betas = sorted(map(float, axes["budgets"]))
        deleted = [Deleted(*each) for each in product(sources, axes["selectors"], betas)]
        for dataset, model in product(axes["datasets"], axes["models"]):
            yield Cohort(dataset, model, tuple(axes["seeds"]), self.root), deleted


@dataclass(frozen=True)
class Deleted:
    """Models, one for each seed, from which a selector's texts were deleted: by retraining, or by
    the unlearner ``source``."""

    source: str
    selector: str
    beta: float

    @property
    def arm(self) -> str:
        """Their name among the models of a cell."""
        if self.source == RETRAINING:
            return arms.retrained(self.selector, self.beta)
        return arms.unlearned(self.source, self.selector, self.beta)

    @property
    def listed(self) -> dict[str, str]:
        """The wildcards of what was removed, beside those of the cell."""
        return {"selector": self.selector, "beta": paths.beta(self.beta)}


@dataclass(frozen=True)
class Cohort:
    """A dataset and a model with all seeds of an axis."""

    dataset: str
    model: str
    seeds: tuple[int, ...]
    root: str | Path

    @property
    def at(self) -> dict[str, str]:
        return {"dataset": self.dataset, "model": self.model}

    def paths(self, pattern: str, **more: str) -> list[Path]:
        """The file of each seed."""
        axes = {"datasets": [self.dataset], "models": [self.model], "seeds": self.seeds}
        return [paths.under(self.root, pattern, **cell, **more) for cell in cells(axes)]

    @cached_property
    def _held_out(self) -> pa.Table:
        return read_table(self.paths(paths.NLL, arm=GOLD)[0], schemas.NLL)

    @cached_property
    def _counted(self) -> NDArray[np.bool_]:
        return np.asarray(self._held_out["tokens"].to_numpy() > 0)

    @cached_property
    def ids(self) -> list[str]:
        """Of the n held-out texts with a token to predict."""
        return list(self._held_out.filter(pa.array(self._counted))["id"].to_pylist())

    @cached_property
    def tokens(self) -> Floats:
        """Predicted tokens (n,)."""
        found = self._held_out["tokens"].to_numpy()[self._counted]
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def texts(self) -> Labelled:
        """What is known of them."""
        first = self.paths(paths.NLL, arm=GOLD)[0]
        examples = paths.under(self.root, paths.EXAMPLES, dataset=self.dataset)
        return read_labels(examples, self.ids, do=f"delete {first} and run again")

    def of(self, domain: str) -> NDArray[np.bool_]:
        """Which of them are of a domain (n,)."""
        return self.texts.forget if domain == FORGET else ~self.texts.forget

    def nll(self, pattern: str, **more: str) -> Floats:
        """Sums of the NLL (S, n) in nats."""
        found = [read_nll(path, self.ids) for path in self.paths(pattern, **more)]
        for path, (tokens, _) in zip(self.paths(pattern, **more), found, strict=True):
            if not np.array_equal(tokens, self.tokens):
                raise UserError("has texts cut at another length", where=path, do="run again")
        return np.array([nll for _, nll in found])

    def said(self, deleted: Deleted) -> Floats:
        """The same of models from which something was deleted."""
        one = deleted.source == RETRAINING
        return self.nll(paths.NLL if one else paths.RELAPSE_NLL, arm=deleted.arm)

    @cached_property
    def gold(self) -> Floats:
        """The same of the gold models."""
        return self.nll(paths.NLL, arm=GOLD)


def read_nll(path: Path, ids: Sequence[str]) -> tuple[Floats, Floats]:
    """Predicted tokens and NLL of the texts ``ids``, in their order, float64 (n,) each.

    Raises ``UserError`` when the table is missing or damaged, or lacks one of them.
    """
    table = read_table(path, schemas.NLL)
    rows = pc.index_in(pa.array(ids, pa.string()), value_set=table["id"].combine_chunks())
    if rows.null_count:
        missing = ids[rows.is_null().index(True).as_py()]
        raise UserError(f"has no text {missing!r}", where=path, do="run again")
    table = table.take(rows)
    tokens, nll = (table[name].to_numpy().astype(np.float64) for name in ("tokens", "nll"))
    return tokens, nll


def table(kind: Table, rows: Callable[[Axes], Rows], axes: Axes) -> pa.Table:
    """One of the tables below. Raises ``UserError`` that names the first file that is missing,
    damaged or of other texts."""
    return pa.Table.from_pylist(list(rows(axes)), schema=kind.schema)


# Distances between ensembles ----------------------------------------------------------------------


def klom(axes: Axes) -> Rows:
    """The rows of the table ``klom``."""
    for cohort, several in axes.measured():
        for deleted in several:
            said = cohort.said(deleted)
            for domain in DOMAINS:
                here = cohort.of(domain)
                ours, theirs = (
                    margins(nll[:, here], cohort.tokens[here]) for nll in (said, cohort.gold)
                )
                found = asdict(distance(ours, theirs))
                yield {
                    **cohort.at,
                    **asdict(deleted),
                    "domain": domain,
                    "texts": int(here.sum()),
                    "seeds": len(cohort.seeds),
                    "klom": found["klom"],
                    "klom_floor": found["floor"],
                    **{f"excess{end}": found[key] for end, key in ENDS.items()},
                    "p": found["p"],
                    "seeds_needed": found["needed"],
                    "why": found["why"],
                }


ENDS = {"": "excess", "_low": "low", "_high": "high"}

# Forensic tests -----------------------------------------------------------------------------------


def tell_models(axes: Axes) -> Rows:
    """The rows of the table ``tell_models``: against gold, and unlearned against retrained models;
    for each dataset and model also gold models of some seeds against those of others."""
    shown = set()
    for cohort, several in axes.measured():
        pairs: list[tuple[dict[str, Any], str, Floats, Floats]] = []
        if (cohort.dataset, cohort.model, cohort.seeds) not in shown:
            none = {"source": GOLD, "selector": None, "beta": None}
            half = len(cohort.seeds) // 2
            pairs.append((none, GOLD, cohort.gold[:half], cohort.gold[half : 2 * half]))
            shown.add((cohort.dataset, cohort.model, cohort.seeds))
        for deleted in several:
            said = cohort.said(deleted)
            pairs.append((asdict(deleted), GOLD, said, cohort.gold))
            if deleted.source != RETRAINING:
                retrained = Deleted(RETRAINING, deleted.selector, deleted.beta)
                pairs.append((asdict(deleted), RETRAINING, said, cohort.said(retrained)))
        for source, against, first, second in pairs:
            for domain in DOMAINS:
                here = cohort.of(domain)
                yield {
                    **cohort.at,
                    **source,
                    "against": against,
                    "domain": domain,
                    "pairs": len(first),
                    **_told(*(margins(x[:, here], cohort.tokens[here]) for x in (first, second))),
                }


def _told(first: Floats, second: Floats) -> dict[str, Any]:
    names = ("told", "chance_low", "chance_high", "p")
    needed = forensic.pairs_needed()
    why = f"{len(first)} pairs of models: p can be below 0.05 from {needed} on"
    if len(first) < 2:
        return {**dict.fromkeys(names), "why": f"{why}; a classifier has none to learn from"}
    found = forensic.tell_models_apart(first, second)
    said = (found.share, found.low, found.high, found.p)
    return {**dict(zip(names, said, strict=True)), "why": why if len(first) < needed else None}


def name_texts(axes: Axes) -> Rows:
    """The rows of the table ``name_texts``."""
    for cohort, several in axes.looked_at():
        unseen = [i for i, one in zip(cohort.ids, cohort.texts.forget, strict=True) if one]
        gold = cohort.paths(paths.RELAPSE_NLL, arm=GOLD)
        for deleted in several:
            models = cohort.paths(paths.RELAPSE_NLL, arm=deleted.arm)
            lists = [
                read_table(path, schemas.REMOVALS, ["id"])["id"].to_pylist()
                for path in cohort.paths(paths.REMOVAL, **deleted.listed)
            ]
            row = {
                **cohort.at,
                **asdict(deleted),
                "seeds": len(cohort.seeds),
                "removed": min(map(len, lists)),
                "unseen": len(unseen),
            }
            yield {**row, **_named(models, gold, lists, unseen)}


def _named(
    models: Sequence[Path], gold: Sequence[Path], lists: Sequence[list[str]], unseen: list[str]
) -> dict[str, Any]:
    names = [f"{whose}auc{end}" for whose in ("", "gold_") for end in ("", "_low", "_high")]
    fewest = forensic.FEWEST_TEXTS
    if len(models) < 2:
        return {**dict.fromkeys(names), "why": "one seed: there is no other gold model to compare"}
    if min(len(unseen), *map(len, lists)) < fewest:
        return {**dict.fromkeys(names), "why": f"fewer than {fewest} texts of either kind"}
    found: dict[str, list[forensic.TextTest]] = {"": [], "gold_": []}
    for seed, (model, removed) in enumerate(zip(models, lists, strict=True)):
        texts = [*removed, *unseen]

        def margin(path: Path, texts: list[str] = texts) -> Floats:
            tokens, nll = read_nll(path, texts)
            return np.asarray(margins(nll, np.maximum(tokens, 1)), dtype=np.float64)

        every = [margin(path) for path in gold]
        others = np.mean([each for i, each in enumerate(every) if i != seed], axis=0)
        for whose, each in (("", margin(model)), ("gold_", every[seed])):
            apart = each - others
            found[whose].append(
                forensic.name_removed_texts(apart[: len(removed)], apart[len(removed) :])
            )
    said = [value for whose in found for value in forensic.mean_over_seeds(found[whose])]
    return {**dict(zip(names, said, strict=True)), "why": None}


# What comes back ----------------------------------------------------------------------------------


def relapse(axes: Axes) -> Rows:
    """The rows of the table ``relapse``."""
    for cohort, several in axes.looked_at():
        start = [
            np.log(read_perplexity(path).ppl_forget)
            for path in cohort.paths(paths.PERPLEXITY, arm=axes.starts[cohort.model])
        ]
        gold = _treated(cohort.paths(paths.RELAPSE, arm=GOLD))
        for deleted in several:
            found = _treated(cohort.paths(paths.RELAPSE, arm=deleted.arm))
            for (treatment, amount), (before, after) in found.items():
                if (treatment, amount) not in gold:
                    raise UserError(
                        f"has no {treatment} {amount}",
                        where=cohort.paths(paths.RELAPSE, arm=GOLD)[0],
                        do="run again",
                    )
                if not (treatment.startswith("relearn") and amount == 0):
                    regained = (before - after)[:, 0]
                    theirs = np.subtract(*gold[treatment, amount])[:, 0]
                    yield {
                        **cohort.at,
                        **asdict(deleted),
                        "treatment": treatment,
                        "amount": amount,
                        "seeds": len(cohort.seeds),
                        "raised": float((before[:, 0] - start).mean()),
                        "regained": float(regained.mean()),
                        "gold_regained": float(theirs.mean()),
                        **_over_seeds(regained - theirs),
                        "retain_lost": float((after - before)[:, 1].mean()),
                    }


def _over_seeds(each: Floats) -> dict[str, Any]:
    low, high = interval(each)
    several = len(each) > 1
    return {
        "excess": float(each.mean()),
        "excess_low": known(low),
        "excess_high": known(high),
        "seeds_needed": seeds_needed(float(each.mean()), float(each.std(ddof=1)), 1)
        if several
        else None,
        "why": None if several else ONE_SEED,
    }


def _treated(files: Sequence[Path]) -> dict[tuple[str, int], tuple[Floats, Floats]]:
    """By treatment and amount, mean NLL before and after it: (S, 2), forget and retain."""
    found: dict[tuple[str, int], list[Floats]] = {}
    for path in files:
        for row in read_table(path, schemas.RELAPSES).to_pylist():
            ends = np.array([row[f"nll_{domain}"] for domain in (FORGET, RETAIN)])
            found.setdefault((row["treatment"], row["amount"]), []).append(ends)
    for (treatment, amount), each in found.items():
        if len(each) != len(files):
            raise UserError(
                f"not all seeds have {treatment} {amount}", where=files[0].parent, do="run again"
            )
    before = found.get((f"relearn {FORGET}", 0))
    if before is None:
        raise UserError("has no model before treatment", where=files[0], do="run again")
    return {key: (np.array(before), np.array(after)) for key, after in found.items()}


# Utility ------------------------------------------------------------------------------------------


def utility(axes: Axes) -> Rows:
    """The rows of the table ``utility``: perplexity of groups of the retain domain."""
    for cohort, several in axes.looked_at():
        parts = [
            part
            for part in groups(cohort.texts, np.ones(len(cohort.ids), dtype=bool))
            if part.domain == RETAIN
        ]
        for source, deleted in _side_by_side(several):
            if deleted is None:
                nll = cohort.nll(paths.NLL, arm=source["source"])
            else:
                nll = cohort.said(deleted)
            for part in parts:
                here = nll[:, part.rows]
                ends = change(here, np.zeros_like(here), cohort.tokens[part.rows])
                names = ("ppl", "ppl_low", "ppl_high")
                ppl = [None if end is None else float(np.exp(end)) for end in ends]
                yield {
                    **cohort.at,
                    **source,
                    "subgroup": part.subgroup,
                    "value": part.value,
                    "texts": len(part.rows),
                    "seeds": len(cohort.seeds),
                    **dict(zip(names, ppl, strict=True)),
                }


def _side_by_side(several: Sequence[Deleted]) -> Iterator[tuple[dict[str, Any], Deleted | None]]:
    for endpoint in UTILITY:
        yield {"source": endpoint, "selector": None, "beta": None}, None
    for deleted in several:
        yield asdict(deleted), deleted


def utility_tasks(axes: Axes) -> Rows:
    """The rows of the table ``utility_tasks``."""
    for cohort, several in axes.looked_at():
        for source, deleted in _side_by_side(several):
            arm = source["source"] if deleted is None else deleted.arm
            files = cohort.paths(paths.TASKS, arm=arm)
            found: dict[tuple[str, str], list[tuple[float, float | None]]] = {}
            for path in files:
                for row in read_table(path, schemas.TASK_SCORES).to_pylist():
                    key = (row["task"], row["metric"])
                    found.setdefault(key, []).append((row["value"], row["error"]))
            for (task, metric), scores in found.items():
                values = np.array([value for value, _ in scores])
                errors = [error for _, error in scores if error is not None]
                low, high = interval(values)
                yield {
                    **cohort.at,
                    **source,
                    "task": task,
                    "metric": metric,
                    "seeds": len(scores),
                    "value": float(values.mean()),
                    "value_low": known(low),
                    "value_high": known(high),
                    "error": float(np.mean(errors)) if errors else None,
                }
