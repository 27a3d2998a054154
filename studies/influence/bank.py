"""Train what a family of claims compares, on one corpus, and measure it: all in one process.

    python -m studies.influence.bank results jigsaw --seeds 3 4 5 6 7 --arms judged --out bank

The workflow has made the texts and tokens of families.yaml. A seed draws its texts from both
training sections; held-out texts are the same for all. Blocks below the trained ones never move, so
that their output is computed once for all seeds and models. Each model becomes a Parquet file
``{out}/{dataset}/seed{n}/{arm}.parquet`` with a row for every held-out text: its predicted tokens,
its NLL, the deep one, and that after relearning. A file that is there is kept.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from transformers import PreTrainedModel

from mamushi.config.sections import UnlearnTraining
from mamushi.io import schemas
from mamushi.io.files import atomic, write_json
from mamushi.io.tables import CONTAMINATION, EVALUATION, FORGET, INFERENCE, RETAIN, read_table
from mamushi.lm import device
from mamushi.lm.batches import steps
from mamushi.lm.embed import embed
from mamushi.lm.loading import open_placed, open_tokenizer
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll, token_nll
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet, concat, keep_spans, mask_spans, mass, read_tokens, subset
from mamushi.lm.training import Objective, Updated, minimize_nll
from mamushi.registry import plugin
from mamushi.selection.pool import Pool
from mamushi.selection.removals import budget_size
from mamushi.selection.scores import score_pool
from mamushi.unlearning.loop import Unlearning, steps_of
from mamushi_extras.edits.head import HeadEdit, lay_over
from mamushi_extras.effects.raking import LogitTables, plan_rakings
from mamushi_extras.influence.measuring import (
    InfluenceMeter,
    draw_targets,
    points_of,
)
from mamushi_extras.left.relearning import relearn
from mamushi_extras.speed.trunk import use_states
from mamushi_extras.tokens.masks import TokenPool, highest_spans, split_by_text

Doubles = NDArray[np.float64]
MODEL, LENGTH, BATCH_TOKENS = "smollm2_frozen", 48, 16384
TRAINING: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 16,
    "learning_rate": 1e-4,
    "betas": (0.9, 0.999),
    "epsilon": 1e-8,
    "weight_decay": 0.01,
    "schedule": "constant",
    "warmup_steps": 0,
    "gradient_clip": None,
    "max_length": LENGTH,
    "method": "partial",
    "trained_blocks": 3,
    "train_input_embedding": False,
    "train_output_head": False,
    "precision": "bf16",
    "steps": "aligned",
    "micro_batch_size": 32,
    "batch_tokens": BATCH_TOKENS,
    "checkpoint_seconds": 1e9,
}
RANKED, CONTAMINATING = {FORGET: 192, RETAIN: 384}, {FORGET: 350, RETAIN: 400}
HELD_OUT, POINTS = {FORGET: 350, RETAIN: 350}, 3
TARGETS, FEW = 200, 16
"""Texts of either domain whose NLL the directions are of, and other forget texts to relearn on."""
RELEARNING = {"steps": [8], "batch_size": 8, "learning_rate": 1e-4}
MAMUSHI = {"batch_size": 256, "seeds_averaged": 10}
BETA0, GOLD, WHOLE = "beta0", "gold", "whole"
UNLEARNERS, PASSES = ("neggrad_plus", "salun"), 1
EMBEDDED = ("mamushi", "lr_cos", "stack", "cross_entropy_stack")
"""Selectors that read vectors."""
JUDGES = ("ngram", "ten_blocks", "aligned")
"""What scores texts in the place of the model: counts of words and pairs of words; its first ten
blocks below its norm and head; and the model with a twin that reads each text in its step."""
LIKELIHOODS = ("cross_entropy", "cross_entropy_mean", "cross_entropy_stack", "halves", *JUDGES)
"""Selectors that read models' own likelihoods."""
FILES = {"cross_entropy_mean": "cross_entropy", "cross_entropy_stack": "cross_entropy"}
"""Whose file of likelihoods a selector reads."""
HARM, HOTTER = 0.005, 1.02
"""Nats a token that a temperature may cost retain texts that no model saw, and its steps."""


def draws(texts: TokenSet, *counts: Mapping[str, int], seed: int = 0) -> list[TokenSet]:
    """Draw sets of so many texts of each domain by the seed alone, none of them twice."""
    orders = {
        domain: np.random.default_rng(seed).permutation(np.flatnonzero(texts.domains == domain))
        for domain in counts[0]
    }
    sets = []
    for of_set in counts:
        rows = [orders[domain][:count] for domain, count in of_set.items()]
        orders = {domain: orders[domain][count:] for domain, count in of_set.items()}
        sets.append(subset(texts, np.sort(np.concatenate(rows))))
    return sets


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


class Bank:
    """The texts of a corpus, of a seed those that are ranked and others of both domains, the
    held-out ones of all, and a model that can be put back to where it started."""

    def __init__(
        self, results: Path, dataset: str, out: Path, epochs: int, blocks: int | None = None
    ) -> None:
        self.folder, data = out / dataset, results / "data" / dataset
        self.judge = partial(Bank, results, dataset, out, epochs)
        files = data / "tokens" / f"{MODEL}.parquet", data / "examples.parquet"
        inference, contamination, held_out = (
            read_tokens(*files, section, LENGTH)
            for section in (INFERENCE, CONTAMINATION, EVALUATION)
        )
        self.pool, (self.held_out,) = concat([inference, contamination]), draws(held_out, HELD_OUT)
        table = read_table(files[1], schemas.EXAMPLES, ["id", "text"])
        self.text_of = dict(zip(*(table[name].to_pylist() for name in ("id", "text")), strict=True))
        self.training = {**TRAINING, "epochs": epochs}
        # One distribution for all draws of texts.
        self.rakings = plan_rakings(self.held_out, self.pool, BATCH_TOKENS)
        device.seed_torch(0)
        self.accelerator = device.accelerator("bf16")
        card = results / "base" / MODEL / "card.json"

        def prepare(model: PreTrainedModel) -> None:
            if blocks is not None:
                model.model.layers = model.model.layers[:blocks]
                model.config.num_hidden_layers = blocks
            freeze(model, self.training)

        self.open_base = partial(open_placed, card, [], "bf16", self.accelerator)
        self.model = self.open_base(prepare)
        self.tokenizer = open_tokenizer(card)
        # What the blocks below the trained ones make of all texts, computed once.
        texts = concat([self.pool, self.held_out])
        trunk = self.folder / f"trunk{blocks or ''}"
        trained = self.training["trained_blocks"]
        use_states(trunk, self.model, texts, trained, BATCH_TOKENS, self.accelerator)
        moved = [p for p in self.model.parameters() if p.requires_grad]
        self._start = [(p, p.detach().clone()) for p in moved]
        self._beta0: dict[int, list[torch.Tensor]] = {}

    def draw(self, seed: int) -> None:
        """Draw the texts of a seed."""
        self.ranked, self.contamination = draws(self.pool, RANKED, CONTAMINATING, seed=seed)
        self.forget = self.ranked.domains == FORGET

    @torch.no_grad()
    def reset(self) -> None:
        """Put the base model's weights back."""
        for parameter, value in self._start:
            parameter.copy_(value)
            parameter.grad = None

    @property
    def steps(self) -> int:
        """Steps of every training: those of beta 0."""
        return steps(len(self.ranked), self.training["batch_size"], self.training["epochs"])

    def embeddings(self) -> NDArray[np.float16]:
        """Return the vectors of the ranked texts in the model as it is, (n, width)."""
        vectors: NDArray[np.float16] = embed(
            self.model,
            self.ranked,
            pooling="mean",
            layer=-1,
            skip_first=False,
            batch_tokens=BATCH_TOKENS,
            accelerator=self.accelerator,
        )
        return vectors

    def train(
        self,
        seed: int,
        texts: TokenSet,
        kept: NDArray[np.bool_] | None = None,
        updated: Updated = Objective.updated,
    ) -> None:
        """Train the base model on texts; ``kept`` says which of the ranked ones they are."""
        self.reset()
        device.seed_torch(seed)
        minimize_nll(
            self.model,
            texts,
            self.training,
            micro_batch_size=self.training["micro_batch_size"],
            total=self.steps,
            seed=seed,
            accelerator=self.accelerator,
            remaining=kept,
            updated=updated,
        )

    def without(self, seed: int, removed: Sequence[str]) -> None:
        """Retrain without the texts of these ids."""
        kept = ~np.isin(self.ranked.ids.astype(str), list(removed))
        self.train(seed, subset(self.ranked, np.flatnonzero(kept)), kept)

    def masking(self, seed: int, spans: list[dict[str, Any]]) -> None:
        """Retrain with these tokens left out of the loss."""
        texts = mask_spans(self.ranked, spans)
        kept = mass(texts, self.ranked) > 0
        self.train(seed, subset(texts, np.flatnonzero(kept)), kept)

    def unlearning(self, seed: int, unlearner: str, forget: TokenSet) -> None:
        """Unlearn texts, or tokens of them, from beta 0 in one pass over the texts, by the defaults
        of an unlearner but at the rate of the training: theirs suits models 50 times as large."""
        moved = [p for p, _ in self._start]
        if seed not in self._beta0:
            self.train(seed, self.ranked)
            self._beta0 = {seed: [p.detach().clone() for p in moved]}
        with torch.no_grad():
            for p, value in zip(moved, self._beta0[seed], strict=True):
                p.copy_(value)
        rate = {"learning_rate": self.training["learning_rate"]}
        settings = {**plugin("unlearner", unlearner).defaults, **rate}
        training = {**UnlearnTraining().model_dump(), "epochs": PASSES}
        unlearning = Unlearning(
            self.model,
            forget,
            subset(self.ranked, np.flatnonzero(~self.forget)),
            {"kind": unlearner, "settings": settings, "training": training},
            self.training,
            seed,
            self.accelerator,
            frozenset(self.tokenizer.all_special_ids),
            self.tokenizer.get_vocab().values(),
            self.ranked,
        )
        outcome = unlearning.run(steps_of(len(forget), int(self.forget.sum()), training))
        print(f"{unlearner}: {outcome.steps} steps, stopped at {outcome.stopped_at}", flush=True)

    @contextmanager
    def edited(self, seed: int, unlearner: str, listed: Sequence[str]) -> Iterator[None]:
        """Within the block, the logits of the model as it is are edited to unlearn the texts of
        these ids."""
        head = self.model.get_output_embeddings()
        name = next(name for name, module in self.model.named_modules() if module is head)
        try:
            if unlearner == "temperature":
                self.heat(head, name)
            else:
                ids, plug_in = self.ranked.ids.astype(str), plugin("unlearner", unlearner)
                selected, retain, forget = (
                    subset(self.ranked, np.flatnonzero(of))
                    for of in (np.isin(ids, listed), ~self.forget, self.forget)
                )
                options = {"seed": seed, "accelerator": self.accelerator}
                options |= {"batch_tokens": BATCH_TOKENS, "forget": forget, "base": self.open_base}
                read = self.model, selected, retain, plug_in.defaults
                edited = plug_in.code.edit(*read, **options)
                print(unlearner, edited.counts, flush=True)
                lay_over(self.model, edited.edit)
            yield
        finally:
            self.model.set_submodule(name, head)

    def heat(self, head: torch.nn.Module, name: str) -> None:
        """Divide the logits by the largest temperature that costs retain texts that the model has
        not seen at most ``HARM`` nats a token."""
        texts = subset(self.contamination, np.flatnonzero(self.contamination.domains == RETAIN))

        def nll(temperature: float) -> float:
            self.model.set_submodule(name, head)
            if temperature > 1:
                lay_over(self.model, HeadEdit({}, 1.0, temperature))
            return float(token_nll(self.model, texts, BATCH_TOKENS, self.accelerator).mean())

        least, temperature = nll(1.0), 1.0
        while nll(temperature * HOTTER) < least + HARM:
            temperature *= HOTTER
        print(f"temperature {temperature:.3f}, retain {nll(temperature) - least:+.4f}", flush=True)

    def targets(self, seed: int, most: int = TARGETS) -> dict[str, TokenSet]:
        """Draw the texts of which the directions are."""
        return draw_targets(self.contamination, most, seed)

    def measure(self, seed: int) -> dict[str, Any]:
        """Return the columns of a model's file; relearning changes the model."""
        reader = LogitTables(self.rakings, len(self.held_out), self.accelerator)
        nll = text_nll(self.model, self.held_out, BATCH_TOKENS, self.accelerator, reader)
        taken = set(self.targets(seed)[FORGET].ids.tolist())
        free = [
            row
            for row in np.flatnonzero(self.contamination.domains == FORGET)
            if self.contamination.ids[row] not in taken
        ]
        few = subset(self.contamination, np.random.default_rng(seed).permutation(free)[:FEW])
        (two,) = draws(self.held_out, {FORGET: 1, RETAIN: 1})
        relearn(
            self.model,
            few,
            two,
            RELEARNING,
            seed=seed,
            accelerator=self.accelerator,
            batch_tokens=BATCH_TOKENS,
        )
        after = text_nll(self.model, self.held_out, BATCH_TOKENS, self.accelerator).nll
        return {
            "id": self.held_out.ids,
            "forget": self.held_out.domains == FORGET,
            "tokens": nll.tokens,
            "nll": nll.nll,
            "deep": nll.deep,
            "relearned": after,
        }


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
        if name in LIKELIHOODS:
            of_texts = self.likelihoods(FILES.get(name, name))
            sums = np.array([values.sum() for values in of_texts])
            tokens = np.maximum(self.bank.ranked.counted, 1)
            return sums / tokens if name == "cross_entropy_mean" else sums
        settings = {**plugin("selector", name).defaults, **(MAMUSHI if name == "mamushi" else {})}
        return np.asarray(score_pool(name, self.pool(name), settings, self.seed).scores)

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
                bank.training,
                points=points_of(bank.steps, POINTS),
                checkpoint=Checkpoint(slopes, ""),
            )
            bank.train(self.seed, bank.ranked, None, meter.updated)
            meter.path.replace(slopes)
        file = self.folder / f"{name}.safetensors"
        if name in JUDGES and not file.is_file():
            save_file({"difference": self.judged(name)}, file)
        elif name == "halves" and not file.is_file():
            save_file({"difference": self.halves()}, file)
        elif name in (*EMBEDDED, *FILES, "cross_entropy") and not vectors.is_file():
            bank.train(self.seed, bank.contamination)
            save_file({"embeddings": bank.embeddings()}, vectors)
            file = self.folder / "cross_entropy.safetensors"
            save_file({"difference": self.difference(bank)}, file)

    def difference(self, bank: "Bank", *, aligned: bool = False) -> Doubles:
        """Return the NLL of the ranked texts' tokens under the clean twin of a bank's model as it
        is, which was trained on the contamination section, less that under the latter. The twin
        reads as many texts, or, ``aligned``, each in the step in which the other read it."""
        seen, retain = self.nll(bank), bank.contamination.domains == RETAIN
        texts = subset(bank.contamination, np.flatnonzero(retain))
        bank.train(self.seed, texts, retain if aligned else None)
        return self.nll(bank) - seen

    def judged(self, name: str) -> Doubles:
        """Return the same by another model, or by a twin that reads each text in its step."""
        if name == "ngram":
            texts = self.bank.contamination
            twin = subset(texts, np.flatnonzero(texts.domains == RETAIN))
            return ngram_nll(twin, self.bank.ranked) - ngram_nll(texts, self.bank.ranked)
        if name == "aligned":
            self.bank.train(self.seed, self.bank.contamination)
            return self.difference(self.bank, aligned=True)
        judge = self.bank.judge(blocks=10)
        judge.draw(self.seed)
        judge.train(self.seed, judge.contamination)
        return self.difference(judge)

    def halves(self) -> Doubles:
        """Return the same without a contamination section: each half of the ranked texts is read
        by a model of the other half of the forget texts."""
        bank = self.bank
        half = np.random.default_rng(self.seed).permutation(len(bank.ranked)) % 2
        bank.without(self.seed, bank.ranked.ids[bank.forget].astype(str).tolist())
        difference = self.nll(bank)
        for of in (0, 1):
            bank.without(self.seed, bank.ranked.ids[bank.forget & (half == of)].astype(str))
            inside = np.repeat(half == of, bank.ranked.counted)
            difference[inside] -= self.nll(bank)[inside]
        return difference

    @staticmethod
    def nll(bank: "Bank") -> Doubles:
        """Return the NLL of the ranked texts' predicted tokens under the model as it is."""
        return token_nll(bank.model, bank.ranked, BATCH_TOKENS, bank.accelerator)

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
        else:
            bank.without(self.seed, [] if is_edit else self.listed(arm))
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
    "variants": ["texts-cross_entropy_mean-0.50", "texts-cross_entropy_stack-0.50"],
    "judges": [f"texts-{judge}-0.50" for judge in JUDGES],
    "untrained": ["edit-temperature", "edit-logit_bias", "edit-tilt", "edit-tilt-stack-0.50"],
    "unlearned": [
        f"{unlearner}-{listed}"
        for unlearner in UNLEARNERS
        for listed in ("tokens-influence-0.10", "texts-influence-0.50", WHOLE)
    ],
    "further": [
        "texts-cross_entropy-0.25",
        "tokens-cross_entropy-0.25",
        "tokens-influence-0.25",
        "texts-cross_entropy-0.10",
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
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    bank = Bank(args.results, args.dataset, args.out, args.epochs)
    arms = [arm for name in args.arms for arm in ARMS.get(name, [name])]
    for seed in args.seeds:
        cell = Cell(bank, seed)
        for arm in arms:
            cell.make(arm)
        cell.foresee()


if __name__ == "__main__":
    main()
