"""Train what a family of claims compares, on one corpus, and measure it: all in one process.

    python -m studies.influence.bank results jigsaw --seeds 1 2 3 4 5 --arms judged --out bank

The workflow has made the texts and tokens of families.yaml. A seed draws its texts from both
training sections; held-out texts are the same for all. Blocks below the trained ones never move, so
that their output is computed once for all seeds and models. Each model becomes a Parquet file
``{out}/{dataset}/seed{n}/{arm}.parquet`` with a row for every held-out text: its predicted tokens,
its NLL, the deep one, and that after relearning. A file that is there is kept.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from mamushi.io.files import atomic, write_json
from mamushi.io.tables import RETAIN
from mamushi.lm.perplexity import text_nll, token_nll
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet, keep_spans, subset
from mamushi.registry import plugin
from mamushi.selection.pool import Pool
from mamushi.selection.removals import budget_size
from mamushi.selection.scores import score_pool
from mamushi_extras.effects.raking import LogitTables, plan_rakings
from mamushi_extras.influence.measuring import InfluenceMeter, points_of
from mamushi_extras.tokens.masks import TokenPool, highest_spans, split_by_text
from studies.influence.models import (
    BATCH_TOKENS,
    EXECUTION,
    TRAINING,
    Bank,
    Doubles,
    tiny_difference,
)

MAMUSHI = {"batch_size": 256, "seeds_averaged": 10}
BETA0, GOLD, WHOLE = "beta0", "gold", "whole"
UNLEARNERS, POINTS = ("neggrad_plus", "salun"), 3
EMBEDDED = ("mamushi", "lr_cos", "stack", "cross_entropy_stack")
"""Selectors that read vectors."""
JUDGES = ("ngram", "tiny", "ten_blocks", "aligned", "raked")
"""What scores texts in the place of the model: counts of words and pairs of words; a tiny model,
pretrained on the spot; the model's first ten blocks below its norm and head; the model with a twin
that reads each text in its step; and the model with word frequencies taken out."""
FOLDS = {"halves": 2, "quarters": 4}
LIKELIHOODS = ("cross_entropy", "cross_entropy_mean", "cross_entropy_stack", "greedy", *FOLDS)
"""Selectors that read models' own likelihoods, beside those of judges."""
FILES = dict.fromkeys(("cross_entropy_mean", "cross_entropy_stack", "greedy"), "cross_entropy")
"""Whose file of likelihoods a selector reads."""


def ngram_nll(seen: TokenSet, texts: TokenSet) -> Doubles:
    """Return the NLL of the texts' predicted tokens by the counts of ``seen``: a third each by the
    token before, by the token alone, and by chance."""
    size = int(max(seen.tokens.max(), texts.tokens.max())) + 1

    def pairs(of: TokenSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        at = np.flatnonzero(of.predicted)
        return of.tokens[at - 1].astype(np.int64), of.tokens[at].astype(np.int64)

    before, after = pairs(seen)
    single = np.bincount(after, minlength=size) / len(after)
    starts = np.bincount(before, minlength=size)
    keys, counts = np.unique(before * size + after, return_counts=True)
    before, after = pairs(texts)
    wanted = before * size + after
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    together = np.where(keys[place] == wanted, counts[place], 0) / np.maximum(starts[before], 1)
    likelihood: Doubles = (together + single[after] + 1 / size) / 3
    return -np.log(likelihood)


def greedy_scores(gains: Doubles) -> Doubles:
    """Return scores (n,) of texts by what each adds after those above it (Axelrod 2017, cynical
    selection): ``gains`` (n, T) are of each token, worth the root of their sum."""
    gone, left = np.zeros(gains.shape[1]), np.ones(len(gains), dtype=np.bool_)
    scores = np.zeros(len(gains))
    for score in range(len(gains), 0, -1):
        worth = np.sqrt(gone + gains).sum(axis=1)
        best = int(np.where(left, worth, -np.inf).argmax())
        scores[best], left[best] = score, False
        gone += gains[best]
    return scores


class Cell:
    """One seed of a bank: what it ranks by, measured when it is first asked for, and its models."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self.bank, self.seed = bank, seed
        self.folder = bank.folder / f"seed{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        bank.draw(seed)

    def likelihoods(self, name: str) -> list[NDArray[np.float32]]:
        """Return of each text's predicted tokens by how much its NLL is lower under models that saw
        other forget texts than under those that saw none."""
        of_tokens = load_file(self.folder / f"{name}.safetensors")["difference"]
        return split_by_text(of_tokens, self.bank.ranked)

    @cached_property
    def influence(self) -> list[NDArray[np.float32]]:
        """The influence of each text's predicted tokens along beta 0's training."""
        total = load_file(self.folder / "slopes.safetensors")["total"]
        return split_by_text(total, self.bank.ranked)

    def pool(self, name: str) -> Pool:
        """Return the ranked texts with what a selector reads: for some the vectors of a model that
        was trained on other texts of the domains, for others none."""
        ranked = self.bank.ranked
        texts = np.array([self.bank.text_of[text] for text in ranked.ids.tolist()])
        vectors = np.zeros((len(ranked), 1), np.float16)
        if name in EMBEDDED:
            vectors = load_file(self.folder / "embeddings.safetensors")["embeddings"]
        return Pool(ranked.ids.astype(str), self.bank.forget, vectors, texts=texts)

    def score_texts(self, name: str) -> Doubles:
        """Return the scores of the ranked texts (n,)."""
        if name == "influence":
            return np.array([values.sum(dtype=np.float64) for values in self.influence])
        if name == "longest":
            return self.bank.ranked.counted.astype(np.float64)
        if name == "cross_entropy_stack":
            both = [self.score_texts(of) for of in ("cross_entropy", "stack")]
            return sum((of - of.mean()) / of.std() for of in both)
        if name == "raked":
            return load_file(self.folder / f"{name}.safetensors")["difference"]
        if name in (*LIKELIHOODS, *JUDGES):
            of_texts = self.likelihoods(FILES.get(name, name))
            sums = np.array([values.sum() for values in of_texts])
            if name == "greedy":
                return self.greedy(np.concatenate(of_texts), sums)
            tokens = np.maximum(self.bank.ranked.counted, 1)
            return sums / tokens if name == "cross_entropy_mean" else sums
        settings = {**plugin("selector", name).defaults, **(MAMUSHI if name == "mamushi" else {})}
        return np.asarray(score_pool(name, self.pool(name), settings, self.seed).scores)

    def greedy(self, of_tokens: NDArray[np.float32], sums: Doubles) -> Doubles:
        """Return ``greedy_scores`` of forget texts by the tokens' differences, and the sums of
        others, which no list has."""
        ranked, forget = self.bank.ranked, self.bank.forget
        known, columns = np.unique(ranked.tokens[ranked.predicted], return_inverse=True)
        gains = np.zeros((len(ranked), len(known)))
        rows = np.repeat(np.arange(len(ranked)), ranked.counted)
        np.add.at(gains, (rows, columns), of_tokens)
        scores = sums.astype(np.float64)
        scores[forget] = greedy_scores(np.maximum(gains[forget], 0))
        return scores

    def score_tokens(self, name: str) -> list[NDArray[np.float32] | None]:
        """Return the scores of each text's predicted tokens."""
        if name == "influence":
            return list(self.influence)
        if name == "cross_entropy":
            return list(self.likelihoods(name))
        pool = TokenPool(self.bank.ranked, self.bank.contamination)
        settings = dict(plugin("selector", name).defaults)
        return plugin("selector", name).code.score_tokens(pool, settings, self.seed)

    def listed(self, arm: str) -> list[str]:
        """Return the ids of the texts that an arm such as ``texts-influence-0.50`` is without."""
        ids = self.bank.ranked.ids[self.bank.forget].astype(str)
        if arm in (BETA0, GOLD, WHOLE):
            return [] if arm == BETA0 else ids.tolist()
        unit, name, beta = arm.split("-")
        if unit == "retain":
            # As many random retain texts as half of the forget ones.
            retain = self.bank.ranked.ids[~self.bank.forget].astype(str)
            order = np.random.default_rng(self.seed).permutation(retain)
            return order[: budget_size(float(beta), len(ids))].tolist()
        scores = self.score_texts(name)[self.bank.forget]
        first = np.argsort(-scores, kind="stable")[: budget_size(float(beta), len(ids))]
        return ids[first].tolist()

    def foresee(self) -> None:
        """Write for each list by ``cross_entropy`` that has an arm the share that it has of the sum
        of all forget texts' scores: a forecast of what it recovers."""
        names = [path.stem for path in self.folder.glob("texts-cross_entropy-*.parquet")]
        forget, ids = self.bank.forget, self.bank.ranked.ids.astype(str)
        scores = self.score_texts("cross_entropy") if names else forget
        total = float(scores[forget].sum())
        of_lists = {name: float(scores[np.isin(ids, self.listed(name))].sum()) for name in names}
        shares = {name: gone / total for name, gone in of_lists.items()}
        write_json(self.folder / "foreseen.json", shares)

    def spans(self, arm: str) -> list[dict[str, Any]]:
        """Return what an arm such as ``tokens-influence-0.10`` masks, by the ids of the texts."""
        _, name, beta = arm.split("-")
        ids, forget = self.bank.ranked.ids[self.bank.forget].astype(str), self.bank.forget
        pairs = zip(self.score_tokens(name), forget, strict=True)
        scores = [values for values, here in pairs if here and values is not None]
        k = budget_size(float(beta), sum(map(len, scores)))
        return highest_spans(ids.tolist(), scores, k)

    def prepare(self, name: str) -> None:
        """Measure what a selector ranks by, unless it has a file: a training of its own."""
        bank, slopes = self.bank, self.folder / "slopes.safetensors"
        vectors = self.folder / "embeddings.safetensors"
        if name == "influence" and not slopes.is_file():
            meter = InfluenceMeter(
                bank.model,
                bank.ranked,
                bank.targets(self.seed),
                bank.accelerator,
                TRAINING,
                EXECUTION,
                points=points_of(bank.steps, POINTS),
                checkpoint=Checkpoint(slopes, ""),
            )
            bank.train(self.seed, bank.ranked, None, meter.updated)
            meter.path.replace(slopes)
        file = self.folder / f"{name}.safetensors"
        if name in JUDGES and not file.is_file():
            save_file({"difference": self.judged(name)}, file)
        elif name in FOLDS and not file.is_file():
            save_file({"difference": self.folded(FOLDS[name])}, file)
        elif name in (*EMBEDDED, *FILES, "cross_entropy") and not vectors.is_file():
            bank.train(self.seed, bank.contamination)
            save_file({"embeddings": bank.embeddings()}, vectors)
            file = self.folder / "cross_entropy.safetensors"
            save_file({"difference": self.difference(bank)}, file)

    def difference(
        self, bank: Bank, *, aligned: bool = False, read: Callable[[Bank], Doubles] | None = None
    ) -> Doubles:
        """Return the NLL of the ranked texts' tokens, or what else is ``read``, under the clean
        twin of a bank's model as it is, which was trained on the contamination section, less that
        under the latter. The twin reads as many texts, or, ``aligned``, each in the step in which
        the other read it."""
        read = read or self.nll
        seen, retain = read(bank), bank.contamination.domains == RETAIN
        texts = subset(bank.contamination, np.flatnonzero(retain))
        bank.train(self.seed, texts, retain if aligned else None)
        return read(bank) - seen

    def judged(self, name: str) -> Doubles:
        """Return the same by another model, another twin, or with word frequencies taken out."""
        if name == "ngram":
            texts = self.bank.contamination
            twin = subset(texts, np.flatnonzero(texts.domains == RETAIN))
            return ngram_nll(twin, self.bank.ranked) - ngram_nll(texts, self.bank.ranked)
        if name == "tiny":
            return tiny_difference(self.bank, self.seed)
        if name in ("aligned", "raked"):
            self.bank.train(self.seed, self.bank.contamination)
            read = self.raked_nll if name == "raked" else None
            return self.difference(self.bank, aligned=name == "aligned", read=read)
        judge = self.bank.judge(blocks=10)
        judge.draw(self.seed)
        judge.train(self.seed, judge.contamination)
        return self.difference(judge)

    def folded(self, folds: int) -> Doubles:
        """Return the same without a contamination section: each fold of the ranked texts is read
        by a model of the other folds' forget texts."""
        bank = self.bank
        fold = np.random.default_rng(self.seed).permutation(len(bank.ranked)) % folds
        bank.without(self.seed, bank.ranked.ids[bank.forget].astype(str).tolist())
        difference = self.nll(bank)
        for of in range(folds):
            bank.without(self.seed, bank.ranked.ids[bank.forget & (fold == of)].astype(str))
            inside = np.repeat(fold == of, bank.ranked.counted)
            difference[inside] -= self.nll(bank)[inside]
        return difference

    @staticmethod
    def nll(bank: Bank) -> Doubles:
        """Return the NLL of the ranked texts' predicted tokens under the model as it is."""
        return token_nll(bank.model, bank.ranked, BATCH_TOKENS, bank.accelerator)

    @staticmethod
    def raked_nll(bank: Bank) -> Doubles:
        """Return the NLL of each ranked text (n,) with word frequencies taken out."""
        rakings = plan_rakings(bank.ranked, bank.contamination, BATCH_TOKENS)
        reader = LogitTables(rakings, len(bank.ranked), bank.accelerator)
        nll = text_nll(bank.model, bank.ranked, BATCH_TOKENS, bank.accelerator, reader)
        return np.nan_to_num(nll.deep)

    def unlearned(self, listed: str) -> TokenSet:
        """Return the texts to unlearn, or those with a token to unlearn."""
        ranked = self.bank.ranked
        if listed.startswith("tokens"):
            return keep_spans(ranked, self.spans(listed))
        return subset(ranked, np.flatnonzero(np.isin(ranked.ids.astype(str), self.listed(listed))))

    def make(self, arm: str) -> None:
        """Train and measure an arm, unless it has a file."""
        path, bank = self.folder / f"{arm}.parquet", self.bank
        if path.is_file():
            return
        unlearner, _, of_list = arm.partition("-")
        listed = of_list if unlearner in UNLEARNERS else arm
        if is_edit := unlearner == "edit":
            unlearner, _, of_list = of_list.partition("-")
            listed = f"texts-{of_list}" if of_list else WHOLE
        if "-" in listed:
            self.prepare(listed.split("-")[1])
        began = time.process_time(), time.perf_counter()
        if unlearner in UNLEARNERS:
            bank.unlearning(self.seed, unlearner, self.unlearned(listed))
        elif arm.startswith("tokens"):
            bank.masking(self.seed, self.spans(arm))
        elif is_edit:
            bank.open_beta0(self.seed)
        else:
            bank.without(self.seed, self.listed(arm))
        trained = time.process_time()
        edited = partial(bank.edited, self.seed, unlearner)
        with edited(self.listed(listed)) if is_edit else nullcontext():
            columns = bank.measure(self.seed)
        with atomic(path) as part:
            pq.write_table(pa.table(columns), part)
        cpu = trained - began[0], time.process_time() - trained
        wall = time.perf_counter() - began[1]
        print(f"{path} trained {cpu[0]:.1f} measured {cpu[1]:.1f} CPU s, {wall:.1f} s", flush=True)


ARMS = {
    "judged": [
        BETA0,
        GOLD,
        "texts-random-0.50",
        "texts-stack-0.50",
        "texts-mamushi-0.50",
        "texts-influence-0.50",
        "texts-cross_entropy-0.50",
        "retain-random-0.50",
        "texts-longest-0.50",
        "texts-halves-0.50",
        "tokens-token_unigram-0.10",
        "tokens-influence-0.10",
        "tokens-cross_entropy-0.10",
    ],
    "variants": [
        f"texts-{variant}-0.50"
        for variant in ("cross_entropy_mean", "cross_entropy_stack", "greedy", "quarters")
    ],
    "judges": [f"texts-{judge}-0.50" for judge in JUDGES],
    "untrained": ["edit-logit_bias", "edit-tilt", "edit-tilt-stack-0.50"],
    "unlearned": [
        f"{unlearner}-{listed}"
        for unlearner in UNLEARNERS
        for listed in ("tokens-influence-0.10", "texts-influence-0.50", WHOLE)
    ],
    "budgets": [
        "texts-cross_entropy-0.25",
        "texts-random-0.25",
        "texts-cross_entropy-0.10",
        "tokens-cross_entropy-0.25",
        "tokens-cross_entropy-0.05",
    ],
}
"""What claims judge, other ways to read the models' likelihoods, edits of the logits, what is
unlearned and not retrained, and other budgets."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of results with texts and tokens")
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--arms", nargs="+", required=True, help="a set of arms, or arms")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    bank = Bank(args.results, args.dataset, args.out)
    arms = [arm for name in args.arms for arm in ARMS.get(name, [name])]
    for seed in args.seeds:
        cell = Cell(bank, seed)
        for arm in arms:
            cell.make(arm)
        cell.foresee()


if __name__ == "__main__":
    main()
