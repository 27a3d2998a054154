"""Does influence foresee what a retraining recovers, better than counting words does?

    python -m studies.influence.foresee results bank

Of every model of a bank: the share of all forget texts' influence that its list or mask has, which
is what it would recover if effects added up; what a unigram model of the remaining tokens predicts,
as the program does (table ``predicted``); and what was measured. A power of the share is fitted on
the seeds that chose, and judged on the others.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.evidence.predicted import Proxy
from studies.influence.bank import BETA0, GOLD, Corpus, Scores
from studies.influence.directions import Variants
from studies.influence.judge import ARCHIVE, Archived, read_claims
from studies.lib import report


class Foreseen(NamedTuple):
    """Of one model: the share of influence that is gone, what counting words predicts, and what was
    recovered, of the whole gap and of the deep one."""

    share: float
    unigram: float
    recovered: float
    deep: float


def gone(scores: Scores, arm: str) -> NDArray[np.bool_]:
    """Return which of the ranked texts' tokens (tokens,) an arm does not train on."""
    texts = scores.corpus.ranked
    mask = np.zeros(len(texts.tokens), dtype=bool)
    starts = dict(zip(texts.ids.astype(str).tolist(), texts.offsets[:-1].tolist(), strict=True))
    if arm.startswith("texts-"):
        listed = np.isin(texts.ids.astype(str), scores.listed(arm))
        return np.repeat(listed, texts.lengths)
    for name, spans in scores.spans(arm).items():
        for start, stop in spans:
            mask[starts[name] + start : starts[name] + stop] = True
    return mask


def foreseen(
    scores: Scores, proxy: Proxy, variants: Variants, archived: Archived, arm: str
) -> Foreseen:
    """Return what is foreseen of an arm, and what was measured."""
    texts = scores.corpus.ranked
    mask = gone(scores, arm)
    predicted = np.ones(len(texts.tokens), dtype=bool)
    predicted[texts.offsets[:-1][texts.lengths > 0]] = False
    values = variants.flat("")
    of_forget = np.repeat(scores.corpus.forget, texts.lengths)[predicted]
    share = values[mask[predicted] & of_forget].sum() / values[of_forget].sum()
    unigram = float(proxy.curve([np.flatnonzero(mask)])[0, 0])
    seed = [scores.seed]
    measured = [archived.effect(of, arm, 0.0, seed).estimate for of in ("recovered", "deep")]
    return Foreseen(float(share), unigram, *measured)


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("run", type=Path, help="the folder of results with texts and tokens")
    parser.add_argument("bank", type=Path)
    args = parser.parse_args()
    judging = read_claims()["seeds"]
    printed = report.Report("foreseen")
    rows: dict[tuple[str, bool, str], list[Foreseen]] = defaultdict(list)
    for path in sorted(ARCHIVE.glob("*.parquet")):
        archived = Archived.read(path.stem)
        corpus = Corpus(args.run, path.stem, args.bank)
        proxy = Proxy(corpus.ranked, corpus.held_out)
        for seed in archived.seeds():
            scores = Scores(corpus, seed)
            if not (scores.folder / "slopes.safetensors").is_file():
                continue
            for arm in sorted({a for s, a, _ in archived.values if s == seed} - {BETA0, GOLD}):
                if arm.startswith("edit-") or "mamushi" in arm:
                    continue  # Mamushi ranks by ten networks, which would be fitted again.
                row = foreseen(scores, proxy, scores.slopes, archived, arm)
                rows[path.stem, seed in judging, arm.split("-")[0]].append(row)
                numbers = " ".join(f"{value:.2f}" for value in row)
                printed.value(f"{path.stem}_seed{seed}_{arm}", numbers)
    chosen = [
        row
        for (_, is_judged, unit), of in rows.items()
        if not is_judged and unit == "texts"
        for row in of
    ]
    shares, recovered = (
        np.array(column) for column in zip(*[(r.share, r.recovered) for r in chosen], strict=True)
    )
    power = float(np.log(recovered) @ np.log(shares) / (np.log(shares) @ np.log(shares)))
    printed.value("power", power)
    for (dataset, is_judged, unit), of in sorted(rows.items()):
        if not is_judged:
            continue
        table = np.array(of)
        raised = np.sign(table[:, 0]) * np.abs(table[:, 0]) ** power
        for name, predicted in (
            ("share", table[:, 0]),
            ("power", raised),
            ("unigram", table[:, 1]),
        ):
            for measure, column in (("recovered", 2), ("deep", 3)):
                error = float(np.sqrt(np.mean((predicted - table[:, column]) ** 2)))
                printed.value(f"{dataset}_{unit}_{name}_{measure}_error", error)
    printed.write(args.results)


if __name__ == "__main__":
    main()
