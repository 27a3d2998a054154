"""What is left of planted texts in a contaminated and an unlearned model, beside gold.

    python benchmarks/canaries.py results newsgroups smollm2 --seeds 0 --to /tmp/planted

Of a finished run whose base model, gold and beta 0 models are there: plants forget texts in its
examples (once, 4 and 16 times), contaminates the base model anew with them, unlearns all forget
texts of the inference section, the planted ones among them, from that, and asks all of these models
about the planted texts and those that were held out in their place. The gold models of the run have
seen neither and serve as they are. Its beta 0 models saw what is planted once, and also what is now
held out, so that they tell the likelihood ratio what seen texts are like and are no more than that.

Per model and number of repeats: each attack's AUC with its 95% interval and what it is more than
gold's. With one seed intervals are over texts alone. A step whose output is in the folder `--to` is
not done again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.cli import main
from mamushi.data.sections import plant
from mamushi.evaluation.attacks import (
    FEWEST_SEEDS,
    Compared,
    Scored,
    auc,
    compare,
    likelihood_ratio,
    per_token,
    simple_scores,
)
from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.running.threads import one_for_arithmetic
from report import Report, arguments

Doubles = NDArray[np.float64]
Columns = dict[str, Any]

REPEATS = [1, 4, 16]


class Planted:
    """The models and what they say, each made where it is not there yet."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.to = given, given.to
        self.cell = given.run / "runs" / given.dataset / given.model
        self.card = given.run / "base" / given.model / "card.json"
        self.examples, self.tokens = self.to / "examples.parquet", self.to / "tokens.parquet"
        trained = read_json(self.cell / "seed0/arms/contaminated/card.json")["settings"]
        self.contaminate: Columns = trained
        pattern = f"seed0/arms/{given.unlearner}/whole/card.json"
        self.unlearn: Columns = read_json(self.cell / pattern)["settings"]

    def stage(self, target: Path, name: str, settings: Columns, **files: Path | None) -> Path:
        """Run a stage unless its ``target`` is there."""
        if target.exists():
            return target
        words = [name, f"--settings={json.dumps(settings)}"]
        for key, path in files.items():
            words += [f"--{key.replace('_', '-')}={path}"] if path is not None else []
        if main(words) != 0:
            raise SystemExit(f"{name} failed")
        return target

    def data(self) -> None:
        """The run's examples with planted ones, and their tokens."""
        theirs = self.given.run / "data" / self.given.dataset
        if not self.examples.exists():
            table = read_table(theirs / "examples.parquet", schemas.EXAMPLES)
            planted = {"texts": self.given.texts, "repeats": REPEATS}
            write_table(
                self.examples,
                schemas.EXAMPLES,
                plant(table.replace_schema_metadata(None), planted, seed=0),
            )
        length = read_metadata(theirs / "tokens" / f"{self.given.model}.parquet")["max_length"]
        self.stage(
            self.tokens,
            "tokens",
            {"max_length": length},
            examples=self.examples,
            model_card=self.card,
            out=self.tokens,
        )

    def contaminated(self, seed: int) -> Path:
        at = self.to / f"seed{seed}" / "contaminated"
        return self.stage(
            at / "trained.safetensors",
            "finetune",
            {**self.contaminate, "seed": seed},
            **self.texts(),
            tensors=at / "trained.safetensors",
            log_table=at / "log.parquet",
            card=at / "card.json",
        )

    def unlearned(self, seed: int) -> Path:
        at = self.to / f"seed{seed}" / "unlearned"
        return self.stage(
            at / "trained.safetensors",
            "unlearn",
            {**self.unlearn, "seed": seed},
            **self.texts(),
            trained=self.contaminated(seed),
            tensors=at / "trained.safetensors",
            perplexity=at / "perplexity.parquet",
            log_table=at / "log.parquet",
            card=at / "card.json",
        )

    def texts(self) -> dict[str, Path]:
        return {"examples": self.examples, "tokens": self.tokens, "model_card": self.card}

    def asked(self, name: str, seed: int) -> tuple[Columns, dict[str, Path | None]]:
        """How a model is opened, and its files."""
        training = self.contaminate["training"]
        trained = self.unlearn["start"]["training"]
        opened: Columns = {
            "training": None if name == "base" else trained,
            "precision": training["precision"],
        }
        if name == "unlearned":
            keys = {"trained_blocks", "method", "lora"} & self.unlearn.keys()
            opened["unlearned"] = {key: self.unlearn[key] for key in keys}
            return opened, {"trained": self.contaminated(seed), "unlearned": self.unlearned(seed)}
        if name == "contaminated":
            return opened, {"trained": self.contaminated(seed)}
        kept = self.cell / f"seed{seed}/arms" / name / "trained.safetensors"
        return opened, {"trained": None if name == "base" else kept}

    def ask(self, out: Path, question: str, name: str, seed: int, **asked: Any) -> None:
        opened, files = self.asked(name, seed)
        length = self.contaminate["training"]["max_length"]
        questions = {question: {**asked, "max_length": length}}
        settings = {"model": opened, "questions": questions}
        self.stage(out, "ask", settings, **self.texts(), **files, **{question: out})

    def likelihoods(self, name: str, seed: int) -> Columns:
        out = self.to / f"seed{seed}" / f"membership-{name}.parquet"
        self.ask(out, "membership", name, seed, texts=self.given.held_out)
        table = read_table(out, schemas.LIKELIHOODS).to_pydict()
        numbers = ("tokens", "nll")
        return {
            **{key: np.array(table[key], dtype=np.float64) for key in numbers},
            "often": np.array([-1 if n is None else n for n in table["planted"]]),
            "ranked": np.array(table["section"]) == "inference",
        }


def attacked(
    planted: Planted, names: list[str], seeds: list[int]
) -> Iterator[tuple[str, Compared]]:
    """By model, repeats and attack: the AUC of planted against held-out texts, beside gold's."""
    models = {(name, seed): planted.likelihoods(name, seed) for name in names for seed in seeds}
    golds = {seed: planted.likelihoods("gold", seed) for seed in seeds}
    base = planted.likelihoods("base", 0)
    others = range(planted.given.shadows)
    shadows = [[planted.likelihoods(name, s) for s in others] for name in ("gold", "beta0")]

    def scores(one: Columns, seed: int) -> dict[str, Doubles]:
        found = simple_scores(one, base)
        if len(others) >= FEWEST_SEEDS:
            outside, inside = (
                np.array([per_token(found[s]) for s in others if s != seed]) for found in shadows
            )
            ratio = likelihood_ratio(per_token(one), outside, inside, one["ranked"])
            found["likelihood_ratio"] = ratio
        return found

    gold = {seed: scores(golds[seed], seed) for seed in seeds}
    for name in names:
        told = {seed: scores(models[name, seed], seed) for seed in seeds}
        for often in REPEATS:
            roles = base["often"] == often, base["often"] == 0
            for attack in told[seeds[0]]:
                found = [Scored(told[s][attack], gold[s][attack], *roles) for s in seeds]
                yield f"{name}_{often}x_{attack}_auc", compare(found, auc)


def run() -> None:
    parser = arguments(__doc__)
    parser.add_argument("run", type=Path, help="the folder of results of a run")
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--models", nargs="+", default=["contaminated", "unlearned"])
    parser.add_argument(
        "--shadows", type=int, default=3, help="seeds for the likelihood ratio; 0: without it"
    )
    parser.add_argument("--unlearner", default="neggrad_plus")
    parser.add_argument("--texts", type=int, default=16, help="planted with each number of repeats")
    parser.add_argument(
        "--held-out", type=int, default=1, help="further texts that are asked about"
    )
    parser.add_argument("--to", type=Path, required=True, help="the folder for the new models")
    given = parser.parse_args()
    one_for_arithmetic()
    planted = Planted(given)
    planted.data()
    report = Report("canaries", threads=1)
    report.value("seeds", len(given.seeds))
    report.value("planted_texts_each", given.texts)
    for name, compared in attacked(planted, given.models, given.seeds):
        for part in ("model", "gold", "difference"):
            each = getattr(compared, part)
            report.value(f"{name}_{part}", f"{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]")
    report.write(given.results)


if __name__ == "__main__":
    run()
