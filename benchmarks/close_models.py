"""What a retrained model knows of removed texts that others restate, with `close` and without.

    python benchmarks/close_models.py results newsgroups smollm2_frozen --seeds 0 1 2

Of the forget texts 24 are removed. Each is restated twice among the texts that stay: 30 of its
words inside a retain text, and with 30% of its telling words replaced. Trained from the same start
in the same steps and order, for three epochs:

- ``kept``: nothing is removed; ``list``: the 24; ``close``: also what `mamushi close` finds;
  ``all``: also everything that was planted.

Reported are, over seeds with 95% t intervals, the share of what is known of the removed texts that
a removal takes away, in mean NLL per token, from ``kept`` to ``all``; and the AUC by which the loss
tells the removed texts from held-out forget texts, less that of ``all``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from cells import EXECUTION, Cell, arguments
from close import Nearest, restated
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from mamushi.evaluation.paired import interval
from mamushi.evidence.close import close
from mamushi.io import schemas
from mamushi.io.files import atomic
from mamushi.io.tables import EVALUATION, FORGET, read_table
from mamushi.lm import device
from mamushi.lm.batches import steps
from mamushi.lm.loading import open_model, open_tokenizer
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet, encode, joined, offsets_of, subset
from mamushi.lm.training import finetune
from mamushi.running.progress import Progress
from mamushi.running.threads import one_for_arithmetic
from report import Report

Doubles = NDArray[np.float64]
Row = dict[str, float | str]
REMOVED, LEAST, DIMENSIONS, EPOCHS = 24, 40, 100, 3.0
"""Texts and the fewest words of each, the width of the vectors of words, and epochs."""
WAYS, ARMS = ("quote", "reworded_30"), ("kept", "list", "close", "all")


class Planted:
    """The ranked texts of a cell, and behind them what restates some."""

    def __init__(self, cell: Cell) -> None:
        table = read_table(cell.files[1], schemas.EXAMPLES, ["id", "text"])
        known = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
        texts = [known[name] for name in cell.ranked.ids]
        rng = np.random.default_rng(cell.seed)
        long = [i for i in np.flatnonzero(cell.forget) if len(texts[i].split()) >= LEAST]
        self.removed = rng.permutation(long)[:REMOVED]
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
        matrix = vectorizer.fit_transform([*known.values()])
        svd = TruncatedSVD(DIMENSIONS, random_state=cell.seed).fit(matrix)
        nearest, hosts = Nearest(vectorizer, svd), np.flatnonzero(~cell.forget)
        planted = [
            restated(way, texts[row], texts[rng.choice(hosts)], nearest, rng)
            for row in self.removed
            for way in WAYS
        ]
        stays = np.setdiff1d(np.arange(len(texts)), self.removed)
        every = [*(texts[row] for row in stays), *planted]
        places = np.concatenate([stays, len(texts) + np.arange(len(planted))])
        found = close([texts[row] for row in self.removed], every)
        self.close = np.array([places[each.kept] for each in found], dtype=np.int64)
        self.planted = len(texts) + np.arange(len(planted))
        tokens = encode(open_tokenizer(cell.base), planted, int(cell.training["max_length"]))
        rows = [np.array(each, dtype=np.int32) for each in tokens]
        more = TokenSet(
            np.array([f"planted{i}" for i in range(len(rows))], dtype=object),
            np.full(len(rows), FORGET, dtype=object),
            np.concatenate(rows),
            offsets_of(np.array([len(row) for row in rows])),
        )
        self.texts = joined([replace(cell.ranked, weights=None), more])

    def kept(self, arm: str) -> NDArray[np.bool_]:
        """Which texts an arm is trained on."""
        found = np.ones(len(self.texts), dtype=bool)
        if arm != "kept":
            found[self.removed] = False
        if arm in ("close", "all"):
            found[self.close] = False
        if arm == "all":
            found[self.planted] = False
        return found


def known(cell: Cell, given: Planted, arm: str) -> tuple[float, float]:
    """The mean NLL per token of the removed texts under an arm's model, and the AUC."""
    accelerator, kept = cell.accelerator(), given.kept(arm)
    how = cell.training | EXECUTION | {"steps": "aligned", "epochs": EPOCHS}
    model = open_model(cell.base)
    freeze(model, cell.training)
    device.place(model, cell.training["precision"], accelerator.device)
    total = steps(len(kept), int(how["batch_size"]), EPOCHS)
    texts = subset(given.texts, np.flatnonzero(kept))
    finetune(model, texts, how, total=total, seed=cell.seed, accelerator=accelerator, kept=kept)
    held = cell.texts(EVALUATION, FORGET)
    per_token = []
    for each in (subset(given.texts, given.removed), held):
        found = text_nll(model, each, EXECUTION["batch_tokens"], accelerator)
        per_token.append(found.nll / np.maximum(found.tokens, 1))
    ours, others = per_token
    return float(ours.mean()), float((ours[:, None] < others).mean())


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("close_models", threads=1)
    table = args.results / f"close_models-{args.dataset}-{args.model}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = csv.read_csv(table).to_pylist() if table.is_file() else []
    nll, auc = (np.empty((len(args.seeds), len(ARMS))) for _ in range(2))
    found, others = [], []
    with Progress(nll.size, "close", "model") as progress:
        for row, seed in enumerate(args.seeds):
            cell = Cell(args.run, args.dataset, args.model, seed)
            given = Planted(cell)
            found.append(np.isin(given.planted, given.close).mean())
            others.append(int((~np.isin(given.close, given.planted)).sum()))
            for column, arm in enumerate(ARMS):
                there = [each for each in rows if (each["seed"], each["arm"]) == (seed, arm)]
                if not there:
                    own = dict(zip(("nll", "auc"), known(cell, given, arm), strict=True))
                    rows.append({"seed": seed, "arm": arm, **own})
                    with atomic(table) as part:
                        csv.write_csv(pa.Table.from_pylist(rows), part)
                    there = rows[-1:]
                nll[row, column], auc[row, column] = there[0]["nll"], there[0]["auc"]
                progress.advance()

    def shown(name: str, values: Doubles) -> None:
        low, high = interval(values)
        report.value(name, f"{values.mean():+.3f} [{low:+.3f}, {high:+.3f}]")

    report.value("planted_found", float(np.mean(found)))
    report.value("others_found", float(np.mean(others)))
    for column, arm in enumerate(ARMS):
        report.value(f"{arm}_nll", float(nll[:, column].mean()))
        shown(f"{arm}_auc_less_all", auc[:, column] - auc[:, -1])
        if arm in ("list", "close"):
            whole = nll[:, -1] - nll[:, 0]
            shown(f"{arm}_share_taken_away", (nll[:, column] - nll[:, 0]) / whole)
    report.write(args.results)


if __name__ == "__main__":
    main()
