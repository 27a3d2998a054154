"""Judge the claims of claims.yaml by what bank.py has measured, and print every arm's shares.

    python -m studies.influence.judge --pack results bank
    python -m studies.influence.judge --pack results bank4 --suffix=-epochs4
    python -m studies.influence.judge

The first puts the models of a bank into ``archive``, a Parquet file for each corpus without a text
or a weight, and the second those that were trained longer; the third computes all from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from numpy.typing import NDArray

from mamushi.io import schemas
from mamushi.io.files import atomic
from mamushi.io.tables import read_table
from mamushi_extras.effects.contrasts import Effect, contrast, holm, pooled_variance
from studies.evidence.claims import verdict
from studies.lib import report

HERE = Path(__file__).parent
ARCHIVE, CLAIMS = HERE / "archive", HERE / "claims.yaml"
COLUMN = {"recovered": "nll", "deep": "deep", "relearned": "relearned", "retain": "nll"}
BETA0, GOLD = "beta0", "gold"
ARMS = {
    "edit-logit_bias": "nothing trained, `logit_bias`",
    "edit-tilt": "nothing trained, `tilt`",
    "texts-random-0.50": "half of the texts, `random`",
    "texts-mamushi-0.50": "half of the texts, `mamushi`",
    "texts-stack-0.50": "half of the texts, `stack`",
    "texts-influence-0.50": "half of the texts, `influence`",
    "texts-influence-0.25": "a quarter of the texts, `influence`",
    "tokens-token_unigram-0.10": "a tenth of the tokens, `token_unigram`",
    "tokens-influence-0.05": "a twentieth of the tokens, `token_influence`",
    "tokens-influence-0.10": "a tenth of the tokens, `token_influence`",
    "tokens-influence-0.25": "a quarter of the tokens, `token_influence`",
}
"""The models of the tables, in their order."""
UNLEARNED = {
    f"{unlearner}-{listed}": f"`{unlearner}`, {name}"
    for unlearner in ("neggrad_plus", "salun")
    for listed, name in {
        "tokens-influence-0.10": "a tenth of the tokens, `token_influence`",
        "texts-influence-0.50": "half of the texts, `influence`",
        "whole": "all texts",
    }.items()
}
"""Those that are unlearned from beta 0 and not retrained."""
LONGER = "-epochs4"
"""Of the archive's files whose models were trained for four epochs."""
Doubles = NDArray[np.float64]


def pack(results: Path, bank: Path, suffix: str = "") -> None:
    """Put what a bank has measured into the archive, by the names of corpora and a suffix."""
    for folder in sorted(path for path in bank.iterdir() if path.is_dir()):
        if not (files := sorted(folder.glob("seed*/*.parquet"))):
            continue
        examples = read_table(
            results / f"data/{folder.name}/examples.parquet", schemas.EXAMPLES, ["id", "group"]
        )
        groups = dict(zip(examples["id"].to_pylist(), examples["group"].to_pylist(), strict=True))
        first = pq.read_table(files[0])
        ids = first["id"].to_pylist()
        columns: dict[str, Any] = {
            "id": ids,
            "group": pa.array([groups[name] for name in ids], pa.string()),
            "forget": first["forget"],
            "tokens": first["tokens"],
        }
        for path in files:
            table = pq.read_table(path)
            assert table["id"].to_pylist() == ids, path
            for name in ("nll", "deep", "relearned"):
                values = table[name].to_numpy().astype(np.float32)
                columns[f"{path.parent.name}/{path.stem}/{name}"] = values
        ARCHIVE.mkdir(exist_ok=True)
        with atomic(ARCHIVE / f"{folder.name}{suffix}.parquet") as part:
            pq.write_table(pa.table(columns), part, compression="zstd", use_dictionary=False)


@dataclass(frozen=True)
class Archived:
    """The models of one corpus: ``values`` by seed, arm and column, of each held-out text (n,)."""

    forget: NDArray[np.bool_]
    groups: NDArray[np.int64]
    tokens: Doubles
    values: dict[tuple[int, str, str], Doubles]

    @classmethod
    def read(cls, dataset: str) -> Archived:
        """Read the file of a corpus."""
        table = pq.read_table(ARCHIVE / f"{dataset}.parquet")
        codes: dict[Any, int] = {}
        named = enumerate(table["group"].to_pylist())
        groups = [codes.setdefault(place if g is None else g, len(codes)) for place, g in named]
        values = {}
        for name in table.column_names:
            if name.startswith("seed"):
                seed, arm, column = name.split("/")
                numbers = table[name].to_numpy().astype(np.float64)
                values[int(seed.removeprefix("seed")), arm, column] = numbers
        tokens = table["tokens"].to_numpy().astype(np.float64)
        return cls(table["forget"].to_numpy(), np.array(groups), tokens, values)

    @cached_property
    def arms(self) -> Counter[str]:
        """In how many seeds each arm is there."""
        return Counter(arm for _, arm, column in self.values if column == "nll")

    def seeds(self, *arms: str) -> list[int]:
        """Return the seeds that have all of these arms, and both ends of the gap."""
        every = {seed for seed, _, _ in self.values}
        needed = {*arms, BETA0, GOLD}
        return sorted(s for s in every if all((s, arm, "nll") in self.values for arm in needed))

    def effect(self, measure: str, arm: str, above: str | float, seeds: list[int]) -> Effect:
        """Return what an arm has over another, or over a share of the gap, as a share of the gap;
        of ``retain`` what it has over gold, and ``above``, in nats per token."""
        column = COLUMN[measure]

        def nll(name: str) -> Doubles:
            return np.array([self.values[seed, name, column][inside] for seed in seeds])

        inside = self.forget != (measure == "retain")
        inside &= np.isfinite(self.values[seeds[0], BETA0, column])
        tokens, groups = self.tokens[inside], self.groups[inside]
        if measure == "retain":
            rival = nll(GOLD) + float(above) * tokens
            return contrast(nll(arm), rival, tokens, groups)
        beta0, gold = nll(BETA0), nll(GOLD)
        if not isinstance(above, str):
            rival = beta0 + above * (gold - beta0)
            return contrast(nll(arm), rival, tokens, groups, gap=(beta0, gold))
        # Arms that were trained after the claims were judged change no verdict.
        named = [name for name in self.arms if name in claimed_arms()]
        every = np.array([nll(name) for name in named if not set(seeds) - set(self.seeds(name))])
        of_arm, of_rival = nll(arm), nll(above)
        by_arm, by_seed = (x.sum(axis=-1) / tokens.sum() for x in (every, of_arm - of_rival))
        # As in the table effects: two models, each of one list.
        pooled = pooled_variance(by_arm, by_seed, 2.0)
        return contrast(of_arm, of_rival, tokens, groups, gap=(beta0, gold), pooled=pooled)

    def gap(self, column: str, seeds: list[int]) -> Effect:
        """Return the gap from beta 0 to gold in nats per token of forget texts."""
        inside = self.forget & np.isfinite(self.values[seeds[0], BETA0, column])
        ends = [
            np.array([self.values[seed, name, column][inside] for seed in seeds])
            for name in (GOLD, BETA0)
        ]
        return contrast(*ends, self.tokens[inside], self.groups[inside])


@cache
def claimed_arms() -> set[str]:
    """Return the arms that claims.yaml names."""
    claims = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))["claims"].values()
    return {
        name
        for claim in claims
        for name in (claim["arm"], claim.get("above"))
        if isinstance(name, str)
    }


def written(effect: Effect, digits: int = 2) -> str:
    """Return an effect and its interval in words."""
    ends = " ".join(f"{x:.{digits}f}" for x in (effect.estimate, effect.low, effect.high))
    return ends if effect.reason is None else f"{effect.estimate:.{digits}f} {effect.reason}"


def judged(archived: Archived, family: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each claim of a family with its difference, its p by Holm and the word."""
    claims = family["claims"]
    effects = {name: claimed(archived, claim, family["seeds"]) for name, claim in claims.items()}
    ps = [1.0 if e is None or np.isnan(e.p) else e.p for e in effects.values()]
    for (name, effect), p in zip(effects.items(), holm(ps), strict=True):
        claim = claims[name]
        if effect is None:
            yield name, "not trained"
            continue
        towards = (effect.estimate < 0) if "below" in claim else (effect.estimate > 0)
        word = verdict(float(p), (effect.low, effect.high), towards=towards)
        digits = 4 if claim["measure"] == "retain" else 2
        seeds = len(seeds_of(archived, claim, family["seeds"]))
        yield name, f"{written(effect, digits)} p_holm {p:.2g} seeds {seeds}: {word}"


def seeds_of(archived: Archived, claim: dict[str, Any], seeds: list[int]) -> list[int]:
    """Return which of the seeds have all models of a claim."""
    above = claim.get("above")
    arms = [claim["arm"], *([above] if isinstance(above, str) else [])]
    return [seed for seed in archived.seeds(*arms) if seed in seeds]


def claimed(archived: Archived, claim: dict[str, Any], seeds: list[int]) -> Effect | None:
    """Return the difference that a claim is about; None with fewer than two seeds."""
    if len(at := seeds_of(archived, claim, seeds)) < 2:
        return None
    rival = claim.get("above", claim.get("below"))
    return archived.effect(claim["measure"], claim["arm"], rival, at)


def read_claims() -> dict[str, Any]:
    """Return the claims, their corpora and the seeds that judge them."""
    family: dict[str, Any] = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
    return family


def shares_table(dataset: str, seeds: list[int]) -> Iterator[list[str]]:
    """Yield a row for each arm of a corpus: what it recovers, whole, deep and after relearning, and
    the change of retain NLL from gold's."""
    archived = Archived.read(dataset)
    for arm, name in ARMS.items():
        if len(at := [seed for seed in archived.seeds(arm) if seed in seeds]) < 2:
            continue
        effects = [archived.effect(of, arm, 0.0, at) for of in ("recovered", "deep", "relearned")]
        retain = archived.effect("retain", arm, 0.0, at)
        yield [name, *(in_percent(effect) for effect in effects), in_nats(retain)]


def by_seed_table(dataset: str, arms: Mapping[str, str], seeds: list[int]) -> Iterator[list[str]]:
    """Yield a row for each arm of a corpus, with what ``shares_table`` has of one seed after
    the other: of two seeds an interval says nothing."""
    archived = Archived.read(dataset)
    for arm, name in arms.items():
        if at := [seed for seed in archived.seeds(arm) if seed in seeds]:
            shares, retain = (
                [[archived.effect(of, arm, 0.0, [seed]).estimate for seed in at] for of in measures]
                for measures in (("recovered", "deep", "relearned"), ("retain",))
            )
            cells = [", ".join(f"{value:.0%}" for value in values) for values in shares]
            yield [name, *cells, ", ".join(f"{1000 * value:+.1f}" for value in retain[0])]


def claims_table(family: dict[str, Any]) -> Iterator[list[str]]:
    """Yield a row for each claim: its words, and the verdict on each corpus."""
    by_corpus = [dict(judged(Archived.read(name), family)) for name in family["datasets"]]
    for name, claim in family["claims"].items():
        rival = claim.get("above", claim.get("below"))
        if claim["measure"] == "retain":
            bound, difference = f"at most {rival} nats above gold", in_nats
        else:
            bound = f"above {ARMS[rival] if isinstance(rival, str) else format(rival, '.0%')}"
            difference = in_percent
        cells = []
        for dataset, verdicts in zip(family["datasets"], by_corpus, strict=True):
            # Of retain texts the change itself is shown, and not what is left of the margin.
            shown = claim if claim["measure"] != "retain" else {**claim, "below": 0.0}
            effect = claimed(Archived.read(dataset), shown, family["seeds"])
            word = verdicts[name].rpartition(": ")[2]
            cells.append(f"{difference(effect)} {word}" if effect else word)
        yield [ARMS[claim["arm"]], claim["measure"], bound, *cells]


def in_percent(effect: Effect) -> str:
    """Return a share with its interval, or why there is none."""
    if not np.isfinite((effect.low, effect.high)).all():
        return str(effect.reason)
    return f"{effect.estimate:.0%} [{100 * effect.low:.0f}, {100 * effect.high:.0f}]"


def in_nats(effect: Effect) -> str:
    """Return a change of NLL with its interval, in thousandths of a nat."""
    low, high = 1000 * effect.low, 1000 * effect.high
    return f"{1000 * effect.estimate:+.1f} [{low:+.1f}, {high:+.1f}]"


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--pack", type=Path, nargs=2, metavar=("RESULTS", "BANK"))
    parser.add_argument("--suffix", default="", help="of the archive's files")
    args = parser.parse_args()
    if args.pack:
        pack(*args.pack, args.suffix)
        return
    family = read_claims()
    printed = report.Report("families")
    for dataset in family["datasets"]:
        archived = Archived.read(dataset)
        for part, is_judged in (("", True), ("choice_", False)):
            for arm in sorted(archived.arms):
                seeds = [s for s in archived.seeds(arm) if (s in family["seeds"]) == is_judged]
                if not seeds:
                    continue
                at = f"{dataset}_{part}{arm}"
                if arm == GOLD:
                    for column in ("nll", "deep", "relearned"):
                        gap = written(archived.gap(column, seeds), 4)
                        printed.value(f"{dataset}_{part}gap_{column}", gap)
                    continue
                for measure in ("recovered", "deep", "relearned"):
                    if arm != BETA0:
                        shown = written(archived.effect(measure, arm, 0.0, seeds))
                        printed.value(f"{at}_{measure}", shown)
                printed.value(f"{at}_retain", written(archived.effect("retain", arm, 0, seeds), 4))
        for name, line in judged(archived, family):
            printed.value(f"{dataset}_claim_{name}", line)
    printed.write(args.results)


if __name__ == "__main__":
    main()
