"""Judge the claims of claims.yaml by what bank.py has measured, and print every arm's shares.

    python -m studies.influence.judge --pack results bank
    python -m studies.influence.judge

The first puts the models of a bank into ``archive``, a Parquet file for each corpus without a text
or a weight; the second computes all from there. Shares are net: the change on forget texts less
that on retain texts, over gold's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from numpy.typing import NDArray

from mamushi.io import schemas
from mamushi.io.files import atomic, read_json
from mamushi.io.tables import read_table
from mamushi_extras.effects.contrasts import Effect, contrast, holm, pooled_variance
from studies.evidence.claims import verdict
from studies.lib import report

HERE = Path(__file__).parent
ARCHIVE, CLAIMS = HERE / "archive", HERE / "claims.yaml"
COLUMN = {"recovered": "nll", "deep": "deep", "relearned": "relearned", "retain": "nll"}
BETA0, GOLD = "beta0", "gold"
ARMS = {
    "edit-temperature": "nothing trained, a temperature",
    "edit-logit_bias": "nothing trained, `logit_bias`, all texts",
    "edit-tilt": "nothing trained, `tilt`, all texts",
    "edit-tilt-stack-0.50": "nothing trained, `tilt`, half of the texts, `stack`",
    "retain-random-0.50": "as many retain texts, `random`",
    "texts-random-0.50": "half of the texts, `random`",
    "texts-longest-0.50": "half of the texts, the longest",
    "texts-mamushi-0.50": "half of the texts, `mamushi`",
    "texts-stack-0.50": "half of the texts, `stack`",
    "texts-influence-0.50": "half of the texts, `influence`",
    "texts-halves-0.50": "half of the texts, `cross_entropy` of two halves",
    "texts-quarters-0.50": "half of the texts, `cross_entropy` of four folds",
    "texts-cross_entropy-0.50": "half of the texts, `cross_entropy`",
    "texts-cross_entropy_mean-0.50": "half of the texts, `cross_entropy`, mean over tokens",
    "texts-cross_entropy_stack-0.50": "half of the texts, `cross_entropy` and `stack`",
    "texts-aligned-0.50": "half of the texts, `cross_entropy`, each retain text in its step",
    "texts-greedy-0.50": "half of the texts, `cross_entropy`, what adds most after what is gone",
    "texts-raked-0.50": "half of the texts, `cross_entropy`, word frequencies taken out",
    "texts-ngram-0.50": "half of the texts, `cross_entropy` of counts of words and pairs",
    "texts-tiny-0.50": "half of the texts, `cross_entropy` of a tiny model",
    "texts-ten_blocks-0.50": "half of the texts, `cross_entropy` of the first ten blocks",
    "texts-random-0.25": "a quarter of the texts, `random`",
    "texts-cross_entropy-0.25": "a quarter of the texts, `cross_entropy`",
    "texts-cross_entropy-0.10": "a tenth of the texts, `cross_entropy`",
    "tokens-token_unigram-0.10": "a tenth of the tokens, `token_unigram`",
    "tokens-influence-0.10": "a tenth of the tokens, `token_influence`",
    "tokens-cross_entropy-0.05": "a twentieth of the tokens, `token_cross_entropy`",
    "tokens-cross_entropy-0.10": "a tenth of the tokens, `token_cross_entropy`",
    "tokens-cross_entropy-0.25": "a quarter of the tokens, `token_cross_entropy`",
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
OWN = "texts-random-0.50", "texts-cross_entropy-0.50"
"""What a judge's list lies between: chance, and the list of the model itself."""
SHARES = ("recovered", "deep", "relearned")
FAMILIES = ("removals", "cross_entropy", "budgets", "judges", "again")
POOLED = FAMILIES[:2]
"""Families whose models say how far two of one list differ."""
GAP = "the gap, thousandths of a nat"
LONGER, ONE_DRAW = "-epochs4", "-one-draw"
"""Of the archive's files of before, whose seeds share their texts and whose retain texts have no
deep NLL: models that were trained for four epochs, and unlearned ones."""
Doubles = NDArray[np.float64]


def pack(results: Path, bank: Path) -> None:
    """Put what a bank has measured into the archive, by the names of corpora."""
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
        foreseen = {
            path.parent.name: read_json(path) for path in folder.glob("seed*/foreseen.json")
        }
        table = pa.table(columns).replace_schema_metadata({"foreseen": json.dumps(foreseen)})
        ARCHIVE.mkdir(exist_ok=True)
        with atomic(ARCHIVE / f"{folder.name}.parquet") as part:
            pq.write_table(table, part, compression="zstd", use_dictionary=False)


@dataclass(frozen=True)
class Archived:
    """The models of one corpus: ``values`` by seed, arm and column, of each held-out text (n,)."""

    forget: NDArray[np.bool_]
    groups: NDArray[np.int64]
    tokens: Doubles
    values: dict[tuple[int, str, str], Doubles]
    foreseen: dict[str, dict[str, float]] = field(default_factory=dict)
    """By seed and list by ``cross_entropy``, the share that it has of all scores."""

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
        foreseen = json.loads((table.schema.metadata or {}).get(b"foreseen", b"{}"))
        return cls(table["forget"].to_numpy(), np.array(groups), tokens, values, foreseen)

    @cached_property
    def arms(self) -> Counter[str]:
        """In how many seeds each arm is there."""
        return Counter(arm for _, arm, column in self.values if column == "nll")

    def seeds(self, *arms: str) -> list[int]:
        """Return the seeds that have all of these arms, and both ends of the gap."""
        every = {seed for seed, _, _ in self.values}
        needed = {*arms, BETA0, GOLD}
        return sorted(s for s in every if all((s, arm, "nll") in self.values for arm in needed))

    def effect(
        self,
        measure: str,
        arm: str,
        above: str | float,
        seeds: list[int],
        *,
        net: bool = True,
        share: bool = True,
        ends: tuple[str, str] = (BETA0, GOLD),
    ) -> Effect:
        """Return what an arm has over another, or over a share of the gap between both ``ends``, as
        a ``share`` of it, else in nats per token; of ``retain`` what it has over gold, and
        ``above``, in nats per token."""
        column = COLUMN[measure]

        def nll(name: str) -> Doubles:
            return np.array([self.values[seed, name, column][inside] for seed in seeds])

        def mean(values: Doubles) -> Doubles:
            level = [values[..., of].sum(axis=-1) / tokens[of].sum() for of in sides]
            return np.asarray(level[0] - level[1] if net else level[0])

        inside = ~self.forget if measure == "retain" else self.forget | net
        inside = inside & np.isfinite(self.values[seeds[0], BETA0, column])
        tokens, groups = self.tokens[inside], self.groups[inside]
        if measure == "retain":
            rival = nll(GOLD) + float(above) * tokens
            return contrast(nll(arm), rival, tokens, groups)
        forget = self.forget[inside]
        sides = [forget, ~forget]
        beta0, gold = map(nll, ends)
        how: dict[str, Any] = {"forget": forget if net else None}
        how["gap"] = (beta0, gold) if share else None
        if not isinstance(above, str):
            rival = beta0 + above * (gold - beta0)
            return contrast(nll(arm), rival, tokens, groups, **how)
        # Arms that were trained after these claims were judged change no verdict.
        named = [name for name in self.arms if name in claimed_arms()]
        every = np.array([nll(name) for name in named if not set(seeds) - set(self.seeds(name))])
        of_arm, of_rival = nll(arm), nll(above)
        # As in the table effects: two models, each of one list.
        pooled = pooled_variance(mean(every), mean(of_arm - of_rival), 2.0)
        return contrast(of_arm, of_rival, tokens, groups, pooled=pooled, **how)


@cache
def claimed_arms() -> set[str]:
    """Return the arms of the pooled families that are retrained: an edit spreads otherwise."""
    families = read_claims()
    return {
        name
        for family in POOLED
        for claim in families[family].values()
        for name in (claim["arm"], claim.get("above"))
        if isinstance(name, str) and not name.startswith("edit")
    }


def written(effect: Effect, digits: int = 2) -> str:
    """Return an effect and its interval in words."""
    ends = " ".join(f"{x:.{digits}f}" for x in (effect.estimate, effect.low, effect.high))
    return ends if effect.reason is None else f"{effect.estimate:.{digits}f} {effect.reason}"


def judged(
    archived: Archived, claims: dict[str, Any], seeds: list[int]
) -> Iterator[tuple[str, str]]:
    """Yield each claim of a family with its difference, its p by Holm and the word."""
    effects = {name: claimed(archived, claim, seeds) for name, claim in claims.items()}
    ps = [1.0 if e is None or np.isnan(e.p) else e.p for e in effects.values()]
    for (name, effect), p in zip(effects.items(), holm(ps), strict=True):
        claim = claims[name]
        if effect is None:
            yield name, "not trained"
            continue
        towards = (effect.estimate < 0) if "below" in claim else (effect.estimate > 0)
        word = verdict(float(p), (effect.low, effect.high), towards=towards)
        digits = 4 if claim["measure"] == "retain" else 2
        count = len(seeds_of(archived, claim, seeds))
        yield name, f"{written(effect, digits)} p_holm {p:.2g} seeds {count}: {word}"


def seeds_of(archived: Archived, claim: dict[str, Any], seeds: list[int]) -> list[int]:
    """Return which of the seeds have all models of a claim."""
    above = claim.get("above")
    arms = [claim["arm"], *([above] if isinstance(above, str) else [])]
    return [seed for seed in archived.seeds(*arms) if seed in seeds]


def claimed(archived: Archived, claim: dict[str, Any], seeds: list[int]) -> Effect | None:
    """Return the difference that a claim is about; None with fewer than two seeds."""
    if len(at := seeds_of(archived, claim, seeds)) < 2:
        return None
    rival = claim["below" if "below" in claim else "above"]
    return archived.effect(claim["measure"], claim["arm"], rival, at)


def read_claims() -> dict[str, Any]:
    """Return the families of claims, their corpora and the seeds that judge them."""
    file: dict[str, Any] = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
    return file


def family_seeds(file: Mapping[str, Any], family: str) -> list[int]:
    """Return the seeds that judge a family: its own, drawn after the others were judged, or all."""
    seeds: list[int] = file["fresh" if family == "again" else "seeds"]
    return seeds


def shares_table(dataset: str, seeds: list[int]) -> Iterator[list[str]]:
    """Yield a row for each arm of a corpus: what it recovers, whole, deep and after relearning, net
    of retain texts; the same of forget texts alone; and the change of retain NLL from gold's. The
    first row has the gaps, and that change of beta 0."""
    archived = Archived.read(dataset)
    at = [seed for seed in archived.seeds() if seed in seeds]
    gaps = [
        in_nats(archived.effect(of, GOLD, 0.0, at, net=net, share=False))
        for net in (True, False)
        for of in SHARES
    ]
    harm = in_nats(archived.effect("retain", BETA0, 0.0, at))
    yield [GAP, str(len(at)), *gaps, harm]
    for arm, name in ARMS.items():
        if not (at := [seed for seed in archived.seeds(arm) if seed in seeds]):
            continue
        effects = [
            archived.effect(of, arm, 0.0, at, net=net) for net in (True, False) for of in SHARES
        ]
        retain = archived.effect("retain", arm, 0.0, at)
        yield [name, str(len(at)), *map(in_percent, effects), in_nats(retain)]


def judges_table(file: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield a row for each judge: of what the model's own list adds to chance, the share that the
    judge's adds, whole, deep and after relearning, on each corpus."""
    archives = [Archived.read(dataset) for dataset in file["datasets"]]
    for judge in ("ngram", "tiny", "ten_blocks"):
        arm, cells = f"texts-{judge}-0.50", []
        for archived in archives:
            at = [seed for seed in archived.seeds(arm, *OWN) if seed in file["seeds"]]
            effects = [archived.effect(of, arm, 0.0, at, ends=OWN) for of in SHARES if at]
            # None where the model's own list is not clearly above chance.
            shares = ["–" if np.isnan(e.estimate) else in_percent(e) for e in effects]
            cells.append("; ".join(shares) + f" ({len(at)})" * bool(at))
        yield [ARMS[arm], *cells]


def by_seed_table(dataset: str, arms: Mapping[str, str], seeds: list[int]) -> Iterator[list[str]]:
    """Yield a row for each arm of a corpus, with the shares of forget texts alone and the change of
    retain NLL of one seed after the other: of two seeds an interval says nothing."""
    archived = Archived.read(dataset)
    for arm, name in arms.items():
        if at := [seed for seed in archived.seeds(arm) if seed in seeds]:
            shares, retain = (
                [
                    [archived.effect(of, arm, 0.0, [seed], net=False).estimate for seed in at]
                    for of in measures
                ]
                for measures in (SHARES, ("retain",))
            )
            cells = [", ".join(f"{value:.0%}" for value in values) for values in shares]
            yield [name, *cells, ", ".join(f"{1000 * value:+.1f}" for value in retain[0])]


def claims_table(file: dict[str, Any], family: str) -> Iterator[list[str]]:
    """Yield a row for each claim of a family: its words, and the verdict on each corpus."""
    claims, seeds = file[family], family_seeds(file, family)
    by_corpus = [dict(judged(Archived.read(name), claims, seeds)) for name in file["datasets"]]
    for name, claim in claims.items():
        rival = claim.get("above", claim.get("below"))
        if claim["measure"] == "retain":
            bound, difference = f"at most {rival} nats above gold", in_nats
        else:
            bound = f"above {ARMS[rival] if isinstance(rival, str) else format(rival, '.0%')}"
            difference = in_percent
        cells = []
        for dataset, verdicts in zip(file["datasets"], by_corpus, strict=True):
            # Of retain texts the change itself is shown, and not what is left of the margin.
            shown = claim if claim["measure"] != "retain" else {**claim, "below": 0.0}
            effect = claimed(Archived.read(dataset), shown, seeds)
            word = verdicts[name].rpartition(": ")[2]
            cells.append(f"{difference(effect)} {word}" if effect else word)
        yield [ARMS[claim["arm"]], claim["measure"], bound, *cells]


def in_percent(effect: Effect) -> str:
    """Return a share with its interval, alone where it has none, or why there is no share."""
    if np.isnan(effect.estimate):
        return str(effect.reason)
    if np.isnan(effect.low):
        return f"{effect.estimate:.0%}"
    return f"{effect.estimate:.0%} [{100 * effect.low:.0f}, {100 * effect.high:.0f}]"


def in_nats(effect: Effect) -> str:
    """Return a change of NLL with its interval, in thousandths of a nat."""
    if np.isnan(effect.low):
        return f"{1000 * effect.estimate:+.1f}"
    low, high = 1000 * effect.low, 1000 * effect.high
    return f"{1000 * effect.estimate:+.1f} [{low:+.1f}, {high:+.1f}]"


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--pack", type=Path, nargs=2, metavar=("RESULTS", "BANK"))
    args = parser.parse_args()
    if args.pack:
        pack(*args.pack)
        return
    file = read_claims()
    printed = report.Report("families")
    for dataset in file["datasets"]:
        archived = Archived.read(dataset)
        for arm in sorted(archived.arms):
            seeds = [seed for seed in archived.seeds(arm) if seed in file["seeds"]]
            for measure in SHARES if seeds and arm != BETA0 else ():
                for net in (True, False):
                    effect = archived.effect(measure, arm, 0.0, seeds, net=net, share=arm != GOLD)
                    name = f"{dataset}_{arm}_{measure}{'_net' * net}"
                    printed.value(name, written(effect, 4 if arm == GOLD else 2))
            shares = [archived.foreseen.get(f"seed{seed}", {}).get(arm) for seed in seeds]
            if seeds and None not in shares:
                measured = archived.effect("recovered", arm, 0.0, seeds).estimate
                pair = f"{np.mean(np.array(shares, dtype=float)):.2f} measured {measured:.2f}"
                printed.value(f"{dataset}_{arm}_foreseen", pair)
            if seeds and arm != GOLD:
                retain = archived.effect("retain", arm, 0.0, seeds)
                printed.value(f"{dataset}_{arm}_retain", written(retain, 4))
        for family in FAMILIES:
            for name, line in judged(archived, file[family], family_seeds(file, family)):
                printed.value(f"{dataset}_claim_{family}_{name}", line)
    printed.write(args.results)


if __name__ == "__main__":
    main()
