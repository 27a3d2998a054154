"""The texts of a corpus, drawn by a seed, and a model that is trained on them, edited, unlearned
and measured, from the same start each time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from mamushi.config.sections import Execution, Training, UnlearnTraining
from mamushi.io import schemas
from mamushi.io.tables import CONTAMINATION, EVALUATION, FORGET, INFERENCE, RETAIN, read_table
from mamushi.lm import device
from mamushi.lm.embed import embed
from mamushi.lm.loading import open_placed, open_tokenizer
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll, token_nll
from mamushi.lm.tokens import TokenSet, concat, mask_spans, mass, read_tokens, subset
from mamushi.lm.training import Objective, Updated, minimize_nll, steps
from mamushi.registry import plugin
from mamushi.unlearning.loop import Unlearning, steps_of
from mamushi_extras.edits.head import lay_over
from mamushi_extras.effects.raking import LogitTables, plan_rakings
from mamushi_extras.influence.measuring import draw_targets
from mamushi_extras.left.relearning import relearn
from mamushi_extras.speed.trunk import use_states

Doubles = NDArray[np.float64]
MODEL, LENGTH, BATCH_TOKENS = "smollm2_frozen", 48, 16384
TRAINING = Training(
    epochs=1,
    batch_size=16,
    learning_rate=1e-4,
    max_length=LENGTH,
    train_input_embedding=False,
    train_output_head=False,
    steps="aligned",
)
EXECUTION = Execution(batch_tokens=BATCH_TOKENS, checkpoint_seconds=1e9)
RANKED, CONTAMINATING = {FORGET: 192, RETAIN: 384}, {FORGET: 350, RETAIN: 400}
HELD_OUT = {FORGET: 350, RETAIN: 350}
TARGETS, FEW = 200, 16
"""Texts of either domain whose NLL the directions are of, and other forget texts to relearn on."""
RELEARNING = {"steps": [8], "batch_size": 8, "learning_rate": 1e-4}
PASSES = 1
TINY = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": LENGTH,
}
PRETRAINING = Training(method="full", epochs=8, batch_size=16, learning_rate=2e-3)
TUNING = Training(method="full", epochs=2, batch_size=16, learning_rate=5e-4)
"""Of a tiny judge, on retain texts that no section has, and on a section."""


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


class Bank:
    """The texts of a corpus, of a seed those that are ranked and others of both domains, the
    held-out ones of all, and a model that can be put back to where it started."""

    def __init__(self, results: Path, dataset: str, out: Path, blocks: int | None = None) -> None:
        self.folder, data = out / dataset, results / "data" / dataset
        self.judge = partial(Bank, results, dataset, out)
        files = data / "tokens" / f"{MODEL}.parquet", data / "examples.parquet"
        inference, contamination, held_out = (
            read_tokens(*files, section, LENGTH)
            for section in (INFERENCE, CONTAMINATION, EVALUATION)
        )
        self.pool, (self.held_out,) = concat([inference, contamination]), draws(held_out, HELD_OUT)
        table = read_table(files[1], schemas.EXAMPLES, ["id", "text"])
        self.text_of = dict(zip(*(table[name].to_pylist() for name in ("id", "text")), strict=True))
        # One distribution for all draws of texts.
        self.rakings = plan_rakings(self.held_out, self.pool, BATCH_TOKENS)
        device.seed_torch(0)
        self.accelerator = device.accelerator("bf16")
        self.card = results / "base" / MODEL / "card.json"
        self.trunk = self.folder / f"trunk{blocks or ''}"

        def prepare(model: PreTrainedModel) -> None:
            if blocks is not None:
                model.model.layers = model.model.layers[:blocks]
                model.config.num_hidden_layers = blocks
            freeze(model, TRAINING)

        self.model = self.open_base(prepare)
        self.tokenizer = open_tokenizer(self.card)
        moved = [p for p in self.model.parameters() if p.requires_grad]
        self._start = [(p, p.detach().clone()) for p in moved]
        self._beta0: dict[int, list[torch.Tensor]] = {}

    def open_base(
        self, prepare: Callable[[PreTrainedModel], object] = lambda model: None
    ) -> PreTrainedModel:
        """Open the base model; what its blocks below the trained ones make of all texts is computed
        once."""
        model = open_placed(self.card, [], self.accelerator, prepare)
        texts, trained = concat([self.pool, self.held_out]), TRAINING.trained_blocks
        use_states(self.trunk, model, texts, trained, BATCH_TOKENS, self.accelerator)
        return model

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
        return steps(len(self.ranked), TRAINING.batch_size, TRAINING.epochs)

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
            TRAINING,
            micro_batch_size=EXECUTION.micro_batch_size,
            examples=len(self.ranked),
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

    @torch.no_grad()
    def open_beta0(self, seed: int) -> None:
        """Put beta 0's weights back, of a seed, which are trained when they are first asked for."""
        moved = [p for p, _ in self._start]
        if seed not in self._beta0:
            with torch.enable_grad():
                self.without(seed, [])
            self._beta0 = {seed: [p.detach().clone() for p in moved]}
        for p, value in zip(moved, self._beta0[seed], strict=True):
            p.copy_(value)

    def unlearning(self, seed: int, unlearner: str, forget: TokenSet) -> None:
        """Unlearn texts, or tokens of them, from beta 0 in one pass over the texts, by the defaults
        of an unlearner but at the rate of the training: theirs suits models 50 times as large."""
        self.open_beta0(seed)
        rate = {"learning_rate": TRAINING.learning_rate}
        settings = {**plugin("unlearner", unlearner).defaults, **rate}
        training = {**UnlearnTraining().model_dump(), "epochs": PASSES}
        unlearning = Unlearning(
            self.model,
            forget,
            subset(self.ranked, np.flatnonzero(~self.forget)),
            {"kind": unlearner, "settings": settings, "training": training},
            EXECUTION.model_dump(),
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
            ids, plug_in = self.ranked.ids.astype(str), plugin("unlearner", unlearner)
            selected, retain, forget = (
                subset(self.ranked, np.flatnonzero(of))
                for of in (np.isin(ids, listed), ~self.forget, self.forget)
            )
            options = {"seed": seed, "accelerator": self.accelerator}
            options |= {"batch_tokens": BATCH_TOKENS, "forget": forget, "base": self.open_base}
            is_forget = self.contamination.domains == FORGET
            options["unseen"] = subset(self.contamination, np.flatnonzero(is_forget))
            read = self.model, selected, retain, plug_in.defaults
            edited = plug_in.code.edit(*read, **options)
            print(unlearner, edited.counts, flush=True)
            lay_over(self.model, edited.edit)
            yield
        finally:
            self.model.set_submodule(name, head)

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


def tiny_difference(bank: Bank, seed: int) -> Doubles:
    """Return by how much the NLL of the ranked texts' tokens is lower under a tiny model that was
    trained on the contamination section than under one that was trained on its retain texts. Both
    are pretrained on the spot on other retain texts, in the tokens that occur."""
    vocabulary, accelerator = np.unique(bank.pool.tokens), bank.accelerator

    def coded(texts: TokenSet) -> TokenSet:
        codes = np.searchsorted(vocabulary, texts.tokens).astype(texts.tokens.dtype)
        return replace(texts, tokens=codes)

    drawn = np.concatenate([bank.ranked.ids, bank.contamination.ids])
    is_other = ~np.isin(bank.pool.ids.astype(str), drawn.astype(str))
    others = np.flatnonzero(is_other & (bank.pool.domains == RETAIN))
    device.seed_torch(seed)
    config = AutoConfig.for_model("llama", vocab_size=len(vocabulary), **TINY)
    model = accelerator.prepare(AutoModelForCausalLM.from_config(config))

    def train(texts: TokenSet, training: Training) -> None:
        options = {"micro_batch_size": EXECUTION.micro_batch_size, "examples": len(texts)}
        options |= {"seed": seed, "accelerator": accelerator, "name": "judge"}
        minimize_nll(model, coded(texts), training, **options)

    train(subset(bank.pool, others), PRETRAINING)
    start = {name: value.clone() for name, value in model.state_dict().items()}

    def nll(texts: TokenSet) -> Doubles:
        model.load_state_dict(start)
        train(texts, TUNING)
        return token_nll(model, coded(bank.ranked), BATCH_TOKENS, accelerator)

    seen = nll(bank.contamination)
    is_retain = bank.contamination.domains == RETAIN
    return nll(subset(bank.contamination, np.flatnonzero(is_retain))) - seen
