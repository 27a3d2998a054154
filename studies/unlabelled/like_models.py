"""What retraining without a list from examples recovers, beside the list from all labels.

    python -m studies.unlabelled.like_models results jigsaw smollm2_frozen --seeds 1 2 3 4 5

Of a run that has the models of beta 0 and gold, and those without the lists of ``mamushi`` and
``random``. The corpus is its ranked texts, of both domains, without their labels; the examples
are forget texts of the contamination section, other ones with each seed. `mamushi rank --like`
ranks the corpus with the model before any training. Its first texts are removed, as many as the
lists from labels have, whatever their domain, and the model is trained on the others in the steps
and order of beta 0.

*Recovered* is the share of the gap in held-out forget NLL from beta 0 to gold. Reported are means
over seeds with 95% t intervals, the precision of the lists, and retain NLL less gold's.
``like_less_0.9_mamushi`` is what is recovered by ``like`` less 0.9 of what ``mamushi`` recovers:
above 0 where a list from examples does nine tenths of what one from labels does.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.io import paths, schemas
from mamushi.io.tables import EVALUATION, FORGET, RETAIN, read_table
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import subset
from mamushi.running.machine import limit_threads
from mamushi.running.progress import Progress
from mamushi_extras.effects.contrasts import interval
from studies.lib.cells import EXECUTION, Cell, arguments, tuned
from studies.lib.report import Report

Doubles = NDArray[np.float64]
Row = dict[str, float | str]

LISTS = {"0.25": 48, "0.50": 96}
"""Budgets of the lists from labels, and how many texts these have."""
BESIDE = ("mamushi", "random")
KINDS = ("like", *BESIDE)
SHARE = 0.9


def ranking(cell: Cell, examples: int, folder: Path) -> list[str]:
    """The ids of the corpus in the order in which `mamushi rank --like` removes them."""
    table = read_table(cell.files[1], schemas.EXAMPLES, ["id", "text", "domain", "section"])
    rows = table.to_pylist()
    text_of = {row["id"]: row["text"] for row in rows}
    pool = [r["text"] for r in rows if (r["section"], r["domain"]) == ("contamination", FORGET)]
    rng = np.random.default_rng(cell.seed)
    drawn = [pool[i] for i in rng.permutation(len(pool))[:examples]]
    corpus = [{"id": name, "body": text_of[name]} for name in cell.ranked.ids]
    for name, every in (("corpus", corpus), ("unwanted", [{"body": line} for line in drawn])):
        lines = "".join(json.dumps(line) + "\n" for line in every)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    data = ["corpus.jsonl", "--text", "body", "--id", "id", "--like", "unwanted.jsonl"]
    options = ["--model", str(cell.base.parent.resolve()), "--quick", "--cores", "1"]
    command = [sys.executable, "-m", "mamushi", "rank", *data, *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    (path,) = folder.glob(
        paths.POSTERIOR.format(dataset="*", model="*", seed="*", selector="mamushi_words")
    )
    ranked = [row for row in pq.read_table(path, columns=["id", "rank"]).to_pylist() if row["rank"]]
    return [row["id"] for row in sorted(ranked, key=lambda row: row["rank"])]


def trained(cell: Cell, gone: set[str]) -> Row:
    """Held-out NLL of the domains after training without some texts."""
    accelerator = cell.accelerator()
    kept = np.array([name not in gone for name in cell.ranked.ids])
    model = tuned(cell, cell.ranked, cell.seed, accelerator, kept).eval()
    held = cell.texts(EVALUATION)
    means: Row = {}
    for domain in (FORGET, RETAIN):
        inside = subset(held, np.flatnonzero(held.domains == domain))
        nll = text_nll(model, inside, EXECUTION["batch_tokens"], accelerator)
        means[domain] = float(nll.nll.sum() / nll.tokens.sum())
    return means


def archived(cell: Cell, arm: str) -> Row:
    """Held-out NLL of the domains by a model of the run."""
    table = pq.read_table(cell.folder / "arms" / arm / "perplexity.parquet")
    return dict(zip(table["domain"].to_pylist(), table["nll"].to_pylist(), strict=True))


def summary(report: Report, rows: list[Row], dataset: str, seeds: list[int]) -> None:
    """Report every number of a dataset."""
    by_model = {(row["kind"], row["budget"], int(row["seed"])): row for row in rows}

    def of(kind: str, budget: str, name: str) -> Doubles:
        return np.array([by_model[kind, budget, seed][name] for seed in seeds], dtype=np.float64)

    def shown(name: str, values: Doubles) -> None:
        low, high = interval(values)
        report.value(f"{dataset}_{name}", f"{values.mean():+.3f} [{low:+.3f}, {high:+.3f}]")

    start, gold = of("beta0", "0", FORGET), of("gold", "0", FORGET)
    for budget in LISTS:
        recovered = {k: (of(k, budget, FORGET) - start) / (gold - start) for k in KINDS}
        report.value(f"{dataset}_{budget}_precision", float(of("like", budget, "precision").mean()))
        for kind, values in recovered.items():
            shown(f"{budget}_{kind}_recovered", values)
            shown(
                f"{budget}_{kind}_retain_less_gold",
                of(kind, budget, RETAIN) - of("gold", "0", RETAIN),
            )
        shown(f"{budget}_like_less_mamushi", recovered["like"] - recovered["mamushi"])
        shown(
            f"{budget}_like_less_{SHARE}_mamushi", recovered["like"] - SHARE * recovered["mamushi"]
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--examples", type=int, default=100)
    args = parser.parse_args()
    limit_threads()
    report = Report("like_models", threads=1)
    rows: list[Row] = []
    with Progress(len(args.seeds), "like", "seed") as progress:
        for seed in args.seeds:
            rows += of_seed(Cell(args.run, args.dataset, args.model, seed), args.examples)
            progress.advance()
    report.value(f"{args.dataset}_examples", args.examples)
    summary(report, rows, args.dataset, args.seeds)
    report.write(args.results)


def of_seed(cell: Cell, examples: int) -> list[Row]:
    """A row for every model of a seed."""
    names = {"beta0": ("0", "beta0"), "gold": ("0", "gold")}
    rows: list[Row] = [
        {"kind": kind, "budget": budget, "precision": 1.0, **archived(cell, arm)}
        for kind, (budget, arm) in names.items()
    ]
    forget = set(cell.ranked.ids[cell.forget])
    with tempfile.TemporaryDirectory() as folder:
        order = ranking(cell, examples, Path(folder))
    for budget, count in LISTS.items():
        for kind in BESIDE:
            measured = archived(cell, f"retrained/{kind}/beta{float(budget):.2f}")
            rows.append({"kind": kind, "budget": budget, "precision": 1.0, **measured})
        gone = set(order[:count])
        precision = len(gone & forget) / count
        measured = {"kind": "like", "budget": budget, "precision": precision}
        rows.append(measured | trained(cell, gone))
    return [{"seed": cell.seed, **row} for row in rows]


if __name__ == "__main__":
    main()
