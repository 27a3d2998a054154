"""Which scores say what a retraining without a random list of texts changes?

    python -m studies.influence.peers results jigsaw --seed 3 --out peers --make
    python -m studies.influence.peers results jigsaw --seed 3 --out peers

The first retrains without a third of the forget texts, drawn at random, ``LISTS`` times, and with a
tenth of their tokens masked, ``MASKS`` times. The second gives the linear datamodeling score (Park
et al. 2023): Spearman's correlation, over the lists, of a score summed over what is left out with
the measured change of the NLL of held-out texts. ``bergson_scores.py`` adds the scores of bergson.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mamushi.io.tables import FORGET, RETAIN
from mamushi.lm.batches import model_batches
from mamushi.lm.loss import run
from mamushi.lm.tokens import TokenSet
from mamushi.unlearning.trunk import starting_from
from mamushi_extras.influence.measuring import count_predicted, points_of, split_by_text
from mamushi_extras.tokens.masks import highest_spans
from studies.influence.bank import BATCH_TOKENS, BETA0, POINTS, Bank, Cell, Corpus, Scores
from studies.influence.directions import Variants, meters_of
from studies.influence.regime import retrain
from studies.lib import report

LISTS, LEFT_OUT = 24, 3
"""Lists of texts, and of how many forget texts one is on a list."""
MASKS, MASKED = 12, 10
RESAMPLES = 2000
DIRECTIONS = (FORGET, RETAIN, "deep")
Doubles = NDArray[np.float64]


def list_of(forget_texts: int, number: int) -> NDArray[np.int64]:
    """Return which of the forget texts the list of this number has."""
    return np.random.default_rng([1, number]).permutation(forget_texts)[: forget_texts // LEFT_OUT]


def mask_of(lengths: NDArray[np.int64], number: int) -> list[NDArray[np.float32]]:
    """Return 1 for the tokens of the forget texts that the mask of this number has, else 0."""
    flat = np.zeros(int(lengths.sum()), dtype=np.float32)
    flat[np.random.default_rng([2, number]).permutation(len(flat))[: len(flat) // MASKED]] = 1
    return np.split(flat, np.cumsum(lengths)[:-1])


def states(bank: Bank, texts: TokenSet) -> NDArray[np.float32]:
    """Return the last hidden state of each text's tokens, all but its first: (predicted, width)."""
    counts = np.maximum(texts.lengths - 1, 0)
    parts: dict[int, NDArray[np.float32]] = {}
    for rows, batch, _ in model_batches(
        bank.model, texts, BATCH_TOKENS, bank.accelerator, "states"
    ):
        with bank.accelerator.autocast():
            hidden = run(bank.model.base_model, bank.model, batch).last_hidden_state
        here = hidden.detach().flatten(0, 1)[batch.predicting + 1].float().cpu().numpy()
        split = np.split(here, np.cumsum(counts[rows])[:-1])
        parts |= dict(zip(rows.tolist(), split, strict=True))
    return np.concatenate([parts[row] for row in range(len(texts))])


def classify(bank: Bank) -> Doubles:
    """Return the log odds of forget against retain of every token of the ranked texts (predicted,),
    by a logistic regression on beta 0's states of the contamination section's tokens."""
    section = bank.contamination
    labels = np.repeat(section.domains == FORGET, np.maximum(section.lengths - 1, 0))
    with starting_from(bank.trunk, bank.model):
        fitted = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
        fitted.fit(states(bank, section), labels)
        odds: Doubles = fitted.decision_function(states(bank, bank.ranked)).astype(np.float64)
    return odds


def make(bank: Bank, seed: int, lists: int, masks: int) -> None:
    """Measure what scores need along one training, then train and measure without each list."""
    folder = bank.folder / f"seed{seed}"
    Cell(bank, seed, choosing=False).prepare("mamushi")
    if not (folder / "slopes.safetensors").is_file():
        points = points_of(bank.steps, POINTS)
        meters = meters_of(bank, seed, points, bank.training, choosing=True).only(*DIRECTIONS)
        with starting_from(bank.trunk, bank.model):
            bank.train(seed, bank.ranked, None, meters.updated)
        meters.save(folder / "slopes.safetensors")
        save_file({"log_odds": classify(bank)}, folder / "states.safetensors")
    retrain(bank, seed, BETA0, [])
    ids = bank.ranked.ids[bank.forget].astype(str)
    lengths = np.maximum(bank.ranked.lengths[bank.forget] - 1, 0)
    for number in range(max(lists, masks)):
        if number < lists:
            retrain(bank, seed, f"list{number}", ids[list_of(len(ids), number)].tolist())
        if number < masks:
            scores = mask_of(lengths, number)
            spans = highest_spans(scores, int(sum(part.sum() for part in scores)))
            masked = {str(ids[place]): spans[place] for place in spans}
            retrain(bank, seed, f"mask{number}", masked)


class Changes(NamedTuple):
    """What retrainings change, in nats per held-out token (retrainings,): the NLL of forget texts,
    the deep one, and that of forget less that of retain texts."""

    forget: Doubles
    deep: Doubles
    apart: Doubles


def changes(folder: Path, names: list[str]) -> Changes:
    """Return what these retrainings have changed from beta 0."""

    def nll(name: str) -> tuple[float, float, float]:
        table = pq.read_table(folder / f"{name}.parquet")
        columns = {key: table[key].to_numpy().astype(np.float64) for key in ("nll", "deep")}
        tokens, forget = table["tokens"].to_numpy(), table["forget"].to_numpy()
        raked = forget & np.isfinite(columns["deep"])
        means = [
            columns[key][inside].sum() / tokens[inside].sum()
            for key, inside in (("nll", forget), ("deep", raked), ("nll", ~forget))
        ]
        return means[0], means[1], means[0] - means[2]

    start = np.array(nll(BETA0))
    return Changes(*(np.array([nll(name) for name in names]) - start).T)


def token_scores(scores: Scores) -> Iterator[tuple[str, list[NDArray[np.float32]]]]:
    """Yield each score of the forget texts' tokens with its name."""
    corpus, slopes = (
        scores.corpus,
        Variants(scores.folder / "slopes.safetensors", scores.corpus.ranked),
    )
    of_tokens: dict[str, Sequence[NDArray[np.float32] | None]] = {
        "influence": slopes.of_tokens(""),
        "influence_forget_alone": slopes.of_tokens("less0"),
        "influence_and_deep": slopes.of_tokens("deep"),
        "influence_last_point": slopes.of_tokens("last"),
        "states_classifier": split_by_text(
            load_file(scores.folder / "states.safetensors")["log_odds"], corpus.ranked
        ),
        "token_unigram": scores.score_tokens("token_unigram"),
        "random": split_by_text(
            np.random.default_rng(scores.seed).random(count_predicted(corpus.ranked)), corpus.ranked
        ),
    }
    for name, values in of_tokens.items():
        pairs = zip(values, corpus.forget, strict=True)
        yield name, [x for x, here in pairs if here and x is not None]


def text_scores(scores: Scores) -> Iterator[tuple[str, Doubles]]:
    """Yield each score of the forget texts (n1,) with its name."""
    forget = scores.corpus.forget
    for name, values in token_scores(scores):
        if name != "random":
            yield name, np.array([x.sum(dtype=np.float64) for x in values])
            if name in ("influence", "states_classifier"):
                yield f"{name}_mean", np.array([x.mean(dtype=np.float64) for x in values])
    for name in ("lexical", "mamushi", "lr_cos", "random"):
        yield name, scores.score_texts(name)[forget]
    yield "length", scores.corpus.ranked.lengths[forget].astype(np.float64)
    for path in sorted(scores.folder.glob("bergson*.safetensors")):
        for name, values in sorted(load_file(path).items()):
            yield f"bergson_{name}", values[forget].astype(np.float64)


def spearman(foreseen: Doubles, values: Doubles) -> Doubles:
    """Return Spearman's correlation of each row (..., lists)."""
    x, y = (rankdata(part, axis=-1) for part in (foreseen, values))
    x, y = (part - part.mean(axis=-1, keepdims=True) for part in (x, y))
    rho: Doubles = (x * y).sum(axis=-1) / np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    return rho


def tell(printed: report.Report, name: str, foreseen: Doubles, measured: Changes) -> None:
    """Print the correlations of what is foreseen (lists,) with what was measured, with 95%
    intervals over lists by a bootstrap."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(foreseen), (RESAMPLES, len(foreseen)))
    for measure, values in measured._asdict().items():
        low, high = np.quantile(spearman(foreseen[drawn], values[drawn]), [0.025, 0.975])
        rho = float(spearman(foreseen, values))
        printed.value(f"{name}_{measure}", f"{rho:.2f} {low:.2f} {high:.2f}")


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("source", type=Path, help="the folder of results with texts and tokens")
    parser.add_argument("dataset")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--lists", type=int, default=LISTS)
    parser.add_argument("--masks", type=int, default=MASKS)
    args: argparse.Namespace = parser.parse_args()
    read = (args.source, args.dataset, args.out)
    if args.make:
        make(Bank(*read), args.seed, args.lists, args.masks)
        return
    corpus = Corpus(*read)
    scores = Scores(corpus, args.seed)
    printed = report.Report("peers")
    lists = [f"list{n}" for n in range(args.lists)]
    measured, forget_texts = changes(scores.folder, lists), int(corpus.forget.sum())
    printed.value("lists", len(lists))
    for measure, values in measured._asdict().items():
        printed.value(f"texts_change_{measure}", f"{values.mean():.4f} sd {values.std(ddof=1):.4f}")
    for name, values in text_scores(scores):
        sums = [values[list_of(forget_texts, number)].sum() for number in range(len(lists))]
        tell(printed, f"texts_{name}", np.array(sums), measured)
    masks = [f"mask{n}" for n in range(args.masks)]
    printed.value("masks", len(masks))
    if masks:
        lengths = np.maximum(corpus.ranked.lengths[corpus.forget] - 1, 0)
        measured = changes(scores.folder, masks)
        for name, parts in token_scores(scores):
            flat = np.concatenate(parts)
            picked = [np.concatenate(mask_of(lengths, n)) > 0 for n in range(len(masks))]
            tell(printed, f"tokens_{name}", np.array([flat[x].sum() for x in picked]), measured)
    printed.write(args.results)


if __name__ == "__main__":
    main()
