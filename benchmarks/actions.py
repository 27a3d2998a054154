"""Remove, weigh down, mask or replace: retraining at the same removed mass.

    python benchmarks/actions.py results synthetic tiny-llama --seeds 0 1 2 3 4

Of a run that has the contaminated models, embeddings and scores of `mamushi`. At each budget the
ranking's top is taken from the training

- `remove`: as texts, as the workflow does;
- `downweight`: by degrees, the posterior's share of every forget text;
- `mask`: as tokens, those of the highest ratio by linear probes; `mask_lm`: by the log ratio of two
  models tuned on the contamination section's forget and retain texts; `mask_chance`: any;
- `replace`: as texts whose places go to the nearest retain texts.

All are trained for as many steps as what remains of the mass has. `remove_matched` is `remove` with
the steps of beta 0, which `replace` has too: both are held against a gold standard with so many.

Reported are, as means over seeds with 95% intervals: SAD and its area from budget 0 to 1; its
paired difference to `remove` (of `replace`: to `remove_matched`); and the change of the held-out
NLL per token to the gold standard, in nats: of the forget texts, and of the retain texts by thirds
of their true log-density ratio, `near` being those that are most like forget texts. The table
beside the result file has every training, and a killed run goes on from it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import torch
from accelerate import Accelerator
from cells import EXECUTION, Cell, arguments, tuned
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.artifacts import schemas
from mamushi.artifacts.files import atomic
from mamushi.artifacts.tables import EVALUATION, FORGET, RETAIN, read_table
from mamushi.evaluation.paired import interval
from mamushi.evaluation.sad import area, sad
from mamushi.evidence.calibration import Scores
from mamushi.lm import edits
from mamushi.lm.attention import supports
from mamushi.lm.batches import batches, collate, steps
from mamushi.lm.finetune import finetune
from mamushi.lm.loading import open_model
from mamushi.lm.loss import batch_nll, run
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, subset
from mamushi.lm import device
from mamushi.running.progress import Progress
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.linear import logistic
from mamushi.selection.pool import read_pool
from mamushi.selection.replacements import nearest_unused
from mamushi.selection.spans import heads, highest, tokens_of
from mamushi.selection.weights import removed_shares
from report import Report

Doubles = NDArray[np.float64]

ENDS = ("beta0", "gold", "gold_matched")
MATCHED = {"replace", "remove_matched"}
"""Trained for as many steps as beta 0, and held against gold with as many."""
AGAINST = {"replace": "remove_matched"}
"""What is compared with another than ``remove``."""
ACTIONS = ("remove", "downweight", "mask", "mask_lm", "mask_chance", "mask_state", "mask_step", "remove_matched", "replace")
PRIOR = 10.0
"""Of the probes: the default of the selector ``linear``."""
THIRDS = ("far", "middle", "near")


class Edited:
    """The ranked texts of a cell, edited by each action."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.texts = cell.ranked
        table = read_table(cell.folder / "scores" / "mamushi.parquet", schemas.SCORES)
        rows = {row["id"]: row for row in table.to_pylist()}
        ours = [rows[each] for each in self.texts.ids]
        self.rank = np.array([row["rank"] or 0 for row in ours])
        score = np.array([row["score"] for row in ours], dtype=np.float64)
        self.fold = np.array([row["fold"] for row in ours], dtype=np.int16)
        self.ratio = Scores(score, cell.forget, self.fold.astype(np.int64)).estimate().log_ratio
        self.forget = np.flatnonzero(cell.forget)
        self.ids: list[str] = self.texts.ids.tolist()
        pool = read_pool(cell.folder / "embeddings.parquet", cell.files[1])
        assert pool.ids.tolist() == self.ids
        self.embeddings = pool.embeddings
        self.token_ratios: dict[str, list[NDArray[np.float32]]] = {}

    def tokens(self, how: str) -> list[NDArray[np.float32]]:
        """The ratio of each forget text's tokens but the first."""
        if how not in self.token_ratios:
            made = {"mask": self.by_probes, "mask_lm": self.by_models, "mask_chance": self.by_chance,
                    "mask_state": self.by_states, "mask_step": self.by_steps}
            self.token_ratios[how] = made[how]()
        return self.token_ratios[how]

    def by_chance(self) -> list[NDArray[np.float32]]:
        rng = np.random.default_rng(self.cell.seed)
        return [rng.random(max(len(self.texts[i]) - 1, 0), np.float32) for i in self.forget]

    @torch.inference_mode()
    def states(self) -> list[NDArray[np.float32]]:
        """The last hidden state of each token of each text (tokens, width)."""
        accelerator = self.cell.accelerator()
        model = self.cell.contaminated(accelerator).eval()
        found = []
        for i in range(len(self.texts)):
            batch = collate([self.texts[i]], accelerator.device, shared=supports(model))
            found.append(batch.flat(run(model.base_model, model, batch).last_hidden_state).numpy())
        return found

    def by_states(self) -> list[NDArray[np.float32]]:
        """Level."""
        if not hasattr(self, "levels"):
            states = self.states()
            width = states[0].shape[1]
            levels = []
            for k in range(self.fold.max() + 1):
                rows = np.flatnonzero(self.fold != k)
                x = np.vstack([states[i][1:] for i in rows])
                y = np.repeat(self.cell.forget[rows], [len(states[i]) - 1 for i in rows])
                mean, scale = x.mean(axis=0), x.std(axis=0)
                held = np.flatnonzero((self.fold == k) & self.cell.forget)
                z = np.vstack([states[i] for i in held])
                own = logistic((x - mean) / scale, y, (z - mean) / scale, PRIOR / width)
                cuts = np.cumsum([len(states[i]) for i in held])[:-1]
                levels += zip(held, np.split(own, cuts), strict=True)
            self.levels = [own for _, own in sorted(levels, key=lambda pair: pair[0])]
        return [own[1:].astype(np.float32) for own in self.levels]

    def by_steps(self) -> list[NDArray[np.float32]]:
        self.by_states()
        return [np.diff(own).astype(np.float32) for own in self.levels]

    @torch.inference_mode()
    def by_probes(self) -> list[NDArray[np.float32]]:
        weights, intercepts = heads(self.embeddings, self.cell.forget, self.fold, PRIOR)
        accelerator = self.cell.accelerator()
        model = self.cell.contaminated(accelerator).eval()
        found = []
        for i in self.forget:
            shared = supports(model)
            batch = collate([self.texts[i]], accelerator.device, shared=shared)
            states = batch.flat(run(model.base_model, model, batch).last_hidden_state)
            own = states.double().numpy() @ weights[self.fold[i]] + intercepts[self.fold[i]]
            found.append(own[1:].astype(np.float32))
        return found

    def by_models(self) -> list[NDArray[np.float32]]:
        both = []
        for domain in (FORGET, RETAIN):
            accelerator = self.cell.accelerator()
            seen = self.cell.texts("contamination", domain)
            both.append(self.per_token(tuned(self.cell, seen, self.cell.seed, accelerator), accelerator))
        return [two - one for one, two in zip(*both, strict=True)]

    @torch.inference_mode()
    def per_token(
        self, model: PreTrainedModel, accelerator: Accelerator
    ) -> list[NDArray[np.float32]]:
        model.eval()
        shared = supports(model)
        return [
            batch_nll(model, collate([self.texts[i]], accelerator.device, shared=shared)).numpy()
            for i in self.forget
        ]

    def removed(self, beta: float) -> NDArray[np.bool_]:
        k = int(round(beta * len(self.forget)))
        return (self.rank > 0) & (self.rank <= k)

    def by(self, action: str, beta: float) -> TokenSet:
        """The texts, of which those without mass are to be left out."""
        out = self.removed(beta)
        if action in ("remove", "remove_matched"):
            return edits.weighed(self.texts, {self.ids[i]: 0.0 for i in np.flatnonzero(out)})
        if action == "downweight":
            shares = removed_shares(self.ratio[self.forget], int(out.sum()))
            left = dict(zip(self.texts.ids[self.forget].tolist(), 1 - shares, strict=True))
            return edits.weighed(self.texts, left)
        if action == "replace":
            order = np.argsort(np.where(out, self.rank, len(out)), kind="stable")[: out.sum()]
            retain = np.flatnonzero(~self.cell.forget)
            chosen = nearest_unused(self.embeddings, order, retain)
            by = {self.ids[i]: self.ids[j] for i, j in zip(order, chosen, strict=True)}
            return edits.replaced(self.texts, by)
        ratios = self.tokens(action)
        spans = highest(ratios, int(beta * sum(map(len, ratios))))
        return edits.masked(self.texts, {self.ids[self.forget[p]]: s for p, s in spans.items()})


def measured(cell: Cell, given: Edited, action: str, beta: float) -> dict[str, float | str]:
    """A row of the table: the held-out NLL per token of each group."""
    began = time.process_time()
    texts = given.texts
    if action in ("gold", "gold_matched"):
        texts = edits.weighed(texts, {given.ids[i]: 0.0 for i in given.forget})
    elif action != "beta0":
        texts = given.by(action, beta)
    mass = edits.mass(texts)
    batch, epochs = int(cell.training["batch_size"]), float(cell.training["epochs"])
    matched = action in MATCHED or action == "gold_matched"
    total = steps(len(texts) if matched else float(mass.sum()), batch, epochs)
    before, after = float(given.texts.counted.sum()), float(texts.counted.sum())
    kept = mass > 0
    accelerator = cell.accelerator()
    model = open_model(cell.base)
    freeze(model, cell.training)
    device.place(model, cell.training["precision"], accelerator.device)
    left = subset(texts, np.flatnonzero(kept))
    finetune(model, left, cell.training | EXECUTION, total=total, seed=cell.seed,
             accelerator=accelerator, kept=kept)  # fmt: skip
    held = cell.texts(EVALUATION)
    found = text_nll(model, held, EXECUTION["batch_tokens"], accelerator)
    row: dict[str, float | str] = {"seed": cell.seed, "action": action, "beta": beta}
    row |= {"steps": total, "texts": len(left), "tokens_removed": before - after}
    for name, rows in groups(cell, held).items():
        row[name] = float(found.nll[rows].sum() / found.tokens[rows].sum())
    return row | {"cpu_seconds": time.process_time() - began}


def groups(cell: Cell, held: TokenSet) -> dict[str, NDArray[np.bool_]]:
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
    return f"{values.mean():+.4f} [{low:+.4f}, {high:+.4f}]"


def summary(rows: list[dict[str, float]], seeds: list[int], betas: list[float]) -> Iterator[tuple[str, str]]:
    """Name and words of every number that is reported."""
    found = {(row["action"], row["beta"], row["seed"]): row for row in rows}

    def of(action: str, beta: float, name: str) -> Doubles:
        return np.array([found[action, beta, seed][name] for seed in seeds], dtype=np.float64)

    def apart(action: str, beta: float) -> Doubles:
        gold = "gold_matched" if action in MATCHED else "gold"
        ours = [np.exp(of(action, beta, name)) for name in ("forget", "retain")]
        return sad(*ours, *(np.exp(of(gold, 1.0, name)) for name in ("forget", "retain")))

    start = {matched: apart("beta0", 0.0) for matched in (False,)}
    beta0 = [np.exp(of("beta0", 0.0, name)) for name in ("forget", "retain")]
    start[True] = sad(*beta0, *(np.exp(of("gold_matched", 1.0, n)) for n in ("forget", "retain")))
    yield "beta0_sad", said(start[False])
    yield "beta0_sad_matched", said(start[True])
    areas = {}
    for action in ACTIONS:
        curve = np.array([start[action in MATCHED], *(apart(action, b) for b in betas), 0 * start[True]])
        areas[action] = np.array([area([0, *betas, 1], each) for each in curve.T])
    for action in ACTIONS:
        other, gold = AGAINST.get(action, "remove"), "gold_matched" if action in MATCHED else "gold"
        yield f"{action}_area", said(areas[action])
        if other != action:
            yield f"{action}_area_less_{other}", said(areas[action] - areas[other])
        for beta in betas:
            at = f"{action}_{beta:.2f}"
            yield f"{at}_steps", f"{of(action, beta, 'steps').mean():.1f}"
            yield f"{at}_tokens_removed", f"{of(action, beta, 'tokens_removed').mean():.1f}"
            yield f"{at}_sad", said(apart(action, beta))
            if other != action:
                yield f"{at}_sad_less_{other}", said(apart(action, beta) - apart(other, beta))
            for name in ("forget", "retain", *(f"retain_{third}" for third in THIRDS)):
                yield f"{at}_{name}_to_gold", said(of(action, beta, name) - of(gold, 1.0, name))
                if other != action:
                    less = of(action, beta, name) - of(other, beta, name)
                    yield f"{at}_{name}_less_{other}", said(less)
    yield "cpu_seconds_a_training", f"{np.mean([row['cpu_seconds'] for row in rows]):.1f}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--betas", type=float, nargs="+", default=[0.25, 0.5, 0.75])
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("actions", threads=1)
    table = args.results / f"actions-{args.dataset}-{args.model}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = csv.read_csv(table).to_pylist() if table.is_file() else []
    wanted = [*((end, 0.0 if end == "beta0" else 1.0) for end in ENDS)]
    wanted += [(action, beta) for beta in args.betas for action in ACTIONS]
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
    for name, words in summary(rows, args.seeds, args.betas):
        report.value(name, words)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
