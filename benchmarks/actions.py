"""Remove, weigh down, mask or replace: retraining at the same removed mass.

    python benchmarks/actions.py results synthetic tiny-llama --seeds 0 1 2 3 4

Of a run that has the contaminated models, embeddings and scores of `mamushi`. At each budget is
taken from the training, by the ranking of `mamushi` where no other is named:

- `remove`: the texts at its top, as the workflow does;
- `downweight`: as many texts' weight from all forget texts, by the calibrated posterior;
- `mask`: as large a share of the forget texts' tokens, those of the highest log ratio of two models
  tuned on the contamination section's forget and retain texts; `mask_probes`: those of the highest
  logit of linear probes, the cross-fitted logistic regression on the embeddings (the mean of the
  tokens' hidden states) applied to each token's hidden state; `mask_chance`: any;
- `replace`: the texts at its top, whose places go to the nearest retain texts, none of which is
  taken twice before all are: some are nearest to dozens.

All are trained for as many steps as what remains of the mass has. `remove_matched` is `remove` with
the steps of beta 0, which `replace` has too: both are held against a gold standard with so many.

Reported are means over seeds with 95% intervals: SAD and its area from budget 0 to 1; the paired
difference to `remove` (of `replace` to `remove_matched`); and the change of the held-out NLL per
token to the gold standard, in nats: of the forget texts, and of the retain texts by thirds of their
true log-density ratio, `near` being those that are most like forget texts. The table beside the
result file has every training, and a killed run goes on from it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import torch
from cells import EXECUTION, Cell, arguments, tuned
from numpy.typing import NDArray

from mamushi.evaluation.paired import interval
from mamushi.evaluation.sad import area, sad
from mamushi.evidence.calibration import Scores
from mamushi.io import schemas
from mamushi.io.files import atomic
from mamushi.io.tables import EVALUATION, FORGET, RETAIN, read_table
from mamushi.lm import device, tokens
from mamushi.lm.attention import supports
from mamushi.lm.batches import collate, steps
from mamushi.lm.loading import open_model
from mamushi.lm.loss import run
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll, token_nll
from mamushi.lm.tokens import TokenSet, subset
from mamushi.lm.training import finetune
from mamushi.running.progress import Progress
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.linear import logistic
from mamushi.selection.pool import read_pool
from mamushi.selection.removals import count
from mamushi.selection.tokens import highest_spans
from report import Report

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]
Ratios = list[NDArray[np.float32]]
HALVINGS = 100

ENDS = {"beta0": 0.0, "gold": 1.0, "gold_matched": 1.0}
ACTIONS = (
    *("remove", "downweight", "mask", "mask_probes", "mask_chance"),
    *("remove_matched", "replace"),
)
MATCHED = ("remove_matched", "replace", "gold_matched")
"""Trained for as many steps as beta 0, and held against gold with as many."""
PRIOR = 10.0
"""Of the probes: the default of the selector ``linear``."""
THIRDS = ("far", "middle", "near")


def heads(x: Doubles, forget: NDArray[np.bool_]) -> tuple[Doubles, float]:
    """Weights (d,) and intercept of the logistic regression of the domain on ``x`` (n, d), which
    standardises its columns. An affine function is known by its values at 0 and at unit vectors."""
    mean, scale = x.mean(axis=0), x.std(axis=0)
    points = np.vstack([np.zeros(len(mean)), np.eye(len(mean))])
    values = logistic((x - mean) / scale, forget, PRIOR / len(mean))(points)
    weights: Doubles = (values[1:] - values[0]) / scale
    return weights, float(values[0] - weights @ mean)


def nearest_unused(embeddings: Doubles, removed: Rows, others: Rows) -> Rows:
    """For each of ``removed`` (k,), in their order, the nearest of ``others`` that none before it
    has taken, by Euclidean distance between rows of ``embeddings``; all are free once all are
    taken."""
    taken = np.zeros(len(others), dtype=bool)
    found = []
    for row in removed:
        if taken.all():
            taken[:] = False
        distance = ((embeddings[others] - embeddings[row]) ** 2).sum(axis=1)
        chosen = int(np.where(taken, np.inf, distance).argmin())
        taken[chosen] = True
        found.append(others[chosen])
    return np.array(found, dtype=np.int64)


class Edited:
    """The ranked texts of a cell, edited by each action."""

    def __init__(self, cell: Cell) -> None:
        self.cell, self.texts = cell, cell.ranked
        self.ids: list[str] = self.texts.ids.tolist()
        self.forget = np.flatnonzero(cell.forget)
        table = read_table(cell.folder / "scores" / "mamushi.parquet", schemas.SCORES)
        by_id = {row["id"]: row for row in table.to_pylist()}
        rows = [by_id[each] for each in self.ids]
        self.rank = np.array([row["rank"] or 0 for row in rows])
        self.fold = np.array([row["fold"] for row in rows], dtype=np.int64)
        score = np.array([row["score"] for row in rows], dtype=np.float64)
        self.ratio = Scores(score, cell.forget, self.fold).estimate().log_ratio
        pool = read_pool(cell.folder / "embeddings.parquet", cell.files[1])
        assert pool.ids.tolist() == self.ids
        self.embeddings = pool.embeddings.astype(np.float64)
        self.ratios: dict[str, Ratios] = {}

    def by_chance(self) -> Ratios:
        rng = np.random.default_rng(self.cell.seed)
        return [rng.random(max(len(self.texts[i]) - 1, 0), np.float32) for i in self.forget]

    def by_models(self) -> Ratios:
        both = []
        for domain in (FORGET, RETAIN):
            accelerator = self.cell.accelerator()
            seen = self.cell.texts("contamination", domain)
            model = tuned(self.cell, seen, self.cell.seed, accelerator)
            ours = subset(self.texts, self.forget)
            both.append(token_nll(model, ours, EXECUTION["batch_tokens"], accelerator))
        return [two - one for one, two in zip(*both, strict=True)]

    @torch.inference_mode()
    def by_probes(self) -> Ratios:
        fitted = [
            heads(self.embeddings[self.fold != k], self.cell.forget[self.fold != k])
            for k in range(self.fold.max() + 1)
        ]
        accelerator = self.cell.accelerator()
        model = self.cell.contaminated(accelerator).eval()
        found = []
        for i in self.forget:
            batch = collate([self.texts[i]], accelerator.device, shared=supports(model))
            states = batch.flat(run(model.base_model, model, batch).last_hidden_state)
            weights, intercept = fitted[self.fold[i]]
            own = states.double().numpy() @ weights + intercept
            found.append(own[1:].astype(np.float32))
        return found

    def by(self, action: str, beta: float) -> TokenSet:
        """The texts, of which those without mass are to be left out."""
        out = (self.rank > 0) & (self.rank <= count(beta, len(self.forget)))
        if action in ("remove", "remove_matched"):
            return self.without(np.flatnonzero(out))
        if action == "downweight":
            shares = removed_shares(self.ratio[self.forget], int(out.sum()))
            left = dict(zip(self.texts.ids[self.forget].tolist(), 1 - shares, strict=True))
            return weighed(self.texts, left)
        if action == "replace":
            order = np.flatnonzero(out)
            order = order[np.argsort(self.rank[order])]
            source = np.arange(len(self.texts))
            source[order] = nearest_unused(
                self.embeddings, order, np.flatnonzero(~self.cell.forget)
            )
            return subset(self.texts, source)
        if action not in self.ratios:
            made = {"mask": self.by_models, "mask_probes": self.by_probes}
            self.ratios[action] = made.get(action, self.by_chance)()
        ratios = self.ratios[action]
        spans = highest_spans(ratios, count(beta, sum(map(len, ratios))))
        return tokens.masked(self.texts, {self.ids[self.forget[p]]: s for p, s in spans.items()})

    def without(self, rows: Rows) -> TokenSet:
        return weighed(self.texts, {self.ids[row]: 0.0 for row in rows})


def measured(cell: Cell, given: Edited, action: str, beta: float) -> dict[str, float | str]:
    """A row of the table: the held-out NLL per token of each group."""
    began = time.process_time()
    if action in ENDS:
        texts = given.without(given.forget[: round(beta * len(given.forget))])
    else:
        texts = given.by(action, beta)
    mass = tokens.mass(texts)
    counted = len(texts) if action in MATCHED else float(mass.sum())
    total = steps(counted, int(cell.training["batch_size"]), float(cell.training["epochs"]))
    kept = mass > 0
    accelerator = cell.accelerator()
    model = open_model(cell.base)
    freeze(model, cell.training)
    device.place(model, cell.training["precision"], accelerator.device)
    finetune(
        model,
        subset(texts, np.flatnonzero(kept)),
        cell.training | EXECUTION,
        total=total,
        seed=cell.seed,
        accelerator=accelerator,
        kept=kept,
    )
    held = cell.texts(EVALUATION)
    found = text_nll(model, held, EXECUTION["batch_tokens"], accelerator)
    row: dict[str, float | str] = {"seed": cell.seed, "action": action, "beta": beta}
    removed = float(given.texts.counted.sum() - texts.counted.sum())
    row |= {"steps": total, "texts": int(kept.sum()), "tokens_removed": removed}
    for name, rows in groups(cell, held).items():
        row[name] = float(found.nll[rows].sum() / found.tokens[rows].sum())
    return row | {"cpu_seconds": time.process_time() - began}


def groups(cell: Cell, held: TokenSet) -> Mapping[str, NDArray[np.bool_]]:
    """Held-out texts: of each domain, and the retain texts by thirds of their true ratio."""
    table = read_table(cell.files[1], schemas.EXAMPLES, ["id", "log_density_ratio"])
    known = dict(zip(table["id"].to_pylist(), table["log_density_ratio"].to_pylist(), strict=True))
    truth = np.array([known[each] for each in held.ids], dtype=np.float64)
    retain = held.domains == RETAIN
    third = np.searchsorted(np.quantile(truth[retain], [1 / 3, 2 / 3]), truth)
    parts = {f"retain_{name}": retain & (third == i) for i, name in enumerate(THIRDS)}
    return {"forget": ~retain, "retain": retain, **parts}


def said(values: Doubles) -> str:
    low, high = interval(values)
    return f"{values.mean():+.4g} [{low:+.4g}, {high:+.4g}]"


def summary(
    rows: list[dict[str, float]], seeds: list[int], betas: list[float]
) -> Iterator[tuple[str, str]]:
    """Name and words of every number that is reported."""
    found = {(row["action"], row["beta"], row["seed"]): row for row in rows}

    def of(action: str, beta: float, name: str) -> Doubles:
        return np.array([found[action, beta, seed][name] for seed in seeds], dtype=np.float64)

    def perplexities(action: str, beta: float) -> list[Doubles]:
        return [np.exp(of(action, beta, name)) for name in ("forget", "retain")]

    def apart(action: str, beta: float, gold: str) -> Doubles:
        return sad(*perplexities(action, beta), *perplexities(gold, 1.0))

    golds = {action: "gold_matched" if action in MATCHED else "gold" for action in ACTIONS}
    start = {gold: apart("beta0", 0.0, gold) for gold in ("gold", "gold_matched")}
    for gold, values in start.items():
        yield f"beta0_sad_to_{gold}", said(values)
    areas = {}
    for action, gold in golds.items():
        inside = [apart(action, beta, gold) for beta in betas]
        curves = np.array([start[gold], *inside, np.zeros(len(seeds))]).T
        areas[action] = np.array([area([0, *betas, 1], each) for each in curves])
    for action, gold in golds.items():
        other = "remove_matched" if action == "replace" else "remove"
        compared = action not in ("remove", "remove_matched")
        yield f"{action}_area", said(areas[action])
        if compared:
            yield f"{action}_area_less_{other}", said(areas[action] - areas[other])
        for beta in betas:
            at = f"{action}_{beta:.2f}"
            yield f"{at}_steps", f"{of(action, beta, 'steps').mean():.1f}"
            yield f"{at}_tokens_removed", f"{of(action, beta, 'tokens_removed').mean():.1f}"
            ours = apart(action, beta, gold)
            yield f"{at}_sad", said(ours)
            if compared:
                yield f"{at}_sad_less_{other}", said(ours - apart(other, beta, gold))
            for name in ("forget", "retain", *(f"retain_{third}" for third in THIRDS)):
                yield f"{at}_{name}_to_gold", said(of(action, beta, name) - of(gold, 1.0, name))
                if compared:
                    less = of(action, beta, name) - of(other, beta, name)
                    yield f"{at}_{name}_less_{other}", said(less)
    yield "cpu_seconds_a_training", f"{np.mean([row['cpu_seconds'] for row in rows]):.1f}"


def weighed(texts: TokenSet, weights: Mapping[str, float]) -> TokenSet:
    """Weigh every token of a text as its id in ``weights`` says; of others by 1."""
    by_text = np.array([weights.get(name, 1.0) for name in texts.ids], np.float32)
    return replace(texts, weights=np.repeat(by_text, texts.lengths))


def removed_shares(log_ratio: Doubles, k: float) -> Doubles:
    """Return r (n1,) of forget texts with these calibrated ratios (n1,), of sum ``k``, 0 to n1."""
    if not 0 < k < len(log_ratio):
        return np.full(len(log_ratio), float(k > 0))
    # At either end every share is on one side of k / n1.
    centre = np.log(k) - np.log(len(log_ratio) - k)
    low, high = centre - log_ratio.max(), centre - log_ratio.min()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _posterior(log_ratio + middle).sum() < k:
            low = middle
        else:
            high = middle
    return _posterior(log_ratio + high)


def _posterior(log_odds: Doubles) -> Doubles:
    found: Doubles = np.exp(-np.logaddexp(0.0, -log_odds))
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.25, 0.5, 0.75])
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("actions", threads=1)
    table = args.results / f"actions-{args.dataset}-{args.model}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = csv.read_csv(table).to_pylist() if table.is_file() else []
    wanted = [*ENDS.items(), *((action, beta) for beta in args.budgets for action in ACTIONS)]
    with Progress(len(wanted) * len(args.seeds), "actions", "training") as progress:
        for seed in args.seeds:
            cell = Cell(args.run, args.dataset, args.model, seed)
            given = Edited(cell)
            done = {(row["action"], row["beta"]) for row in rows if row["seed"] == seed}
            for action, beta in wanted:
                if (action, beta) not in done:
                    rows.append(measured(cell, given, action, beta))
                    with atomic(table) as path:
                        csv.write_csv(pa.Table.from_pylist(rows), path)
                progress.advance(1)
    for name, words in summary(rows, args.seeds, args.budgets):
        report.value(name, words)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
