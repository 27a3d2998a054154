"""What all unlearners have in common: the steps that they take over forget and retain texts."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.attention import supports, to_device
from mamushi.lm.batches import Batch, collate, examples_of_step, steps
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.perplexity import text_nll
from mamushi.lm.sharding import all_gather, local
from mamushi.lm.tokens import TokenSet, subset
from mamushi.lm.training import Descent, Objective, Step, micro_batches, train
from mamushi.registry import load
from mamushi.unlearning.objective import (
    Nll,
    States,
    TextLoss,
    TextStates,
    random_labels,
    require_predicted,
)
from mamushi.unlearning.saliency import gradients, largest


@dataclass(frozen=True)
class Outcome:
    """What an unlearner did to the model that it was given."""

    log: dict[str, list[float]]
    """Columns of the artifact ``unlearn_log``, a row per step that was begun."""
    stopped_at: int | None
    """Step, counted from 1, before whose update the forget loss ended the run; None if none did."""
    masked: int | None
    """Trained weights that a saliency mask kept as they were; None without a mask."""

    @property
    def steps(self) -> int:
        """Return the optimizer steps that were taken: the one that a run stopped at was not."""
        return len(self.log["step"]) - (self.stopped_at is not None)


class _Text(NamedTuple):
    """A text of a step."""

    id: str
    forget: bool
    tokens: NDArray[np.int32]
    labels: NDArray[np.int32]
    weights: NDArray[np.float32]
    start_nll: float | None = None
    """Under the start model; of forget texts, where the unlearner needs it."""

    @property
    def predicted(self) -> int:
        """Return how many of its tokens are predicted: all but the first, or those unlearned."""
        return int(self.weights[1:].sum())


def steps_of(selected: int, whole: int, training: Mapping[str, Any]) -> int:
    """Return the number of optimizer steps for ``selected`` of ``whole`` forget texts.

    T = floor(epochs * n / batch), at least 1, where a batch is never larger than the n texts. With
    ``steps: matched`` n is the whole forget set at every budget, so that a smaller selection does
    not mean fewer updates.
    """
    n = whole if training["steps"] == "matched" else selected
    return steps(n, min(int(training["batch_size"]), n), float(training["epochs"]))


def unlearn(
    model: PreTrainedModel,
    forget: TokenSet,
    retain: TokenSet,
    unlearner: Mapping[str, Any],
    execution: Mapping[str, Any],
    *,
    total: int,
    seed: int,
    accelerator: Accelerator,
    special: frozenset[int] = frozenset(),
    vocabulary: Collection[int] | None = None,
    state: Path | None = None,
    fingerprint: str = "",
    whole: TokenSet | None = None,
) -> Outcome:
    """Unlearn ``forget`` while keeping ``retain``, in place, in the weights that take gradients.

    In each of ``total`` steps, ``batch_size`` forget texts (or all, where there are fewer) go with
    as many retain texts, each domain shuffled anew for every pass over it. AdamW with a constant
    learning rate. Of ``forget`` with weights, 1 or 0,
    the tokens of 1 are unlearned, by an unlearner that looks at no hidden states; ``whole`` has
    these texts with all that could be.

    An unlearner that stops does so before the update at which the mean of the forget loss over the
    last ``stop_window`` steps is above its limit, that of tokens by as much higher as their loss at
    the start is above that of their texts. A loss is 0 where none of the step's texts of
    that domain has a token to predict.

    ``state`` and ``fingerprint`` are those of ``train``. Random labels are drawn among the ids
    ``vocabulary``, by default all rows of the head, and do not replace ``special`` tokens. Raises
    ``UserError`` when there is nothing to forget or to retain, and for a loss or gradient that is
    not finite; ``state`` then has the weights before that step.
    """
    descent = Descent.of(float(unlearner["settings"]["learning_rate"]), unlearner["training"])
    arguments = (model, forget, retain, unlearner, execution, seed, accelerator)
    run = _Run(*arguments, special, vocabulary, whole)
    _drop_out_where_trained(model)
    log = train(
        run.objective(),
        descent,
        total,
        accelerator,
        state=state,
        fingerprint=fingerprint,
        checkpoint_seconds=float(execution["checkpoint_seconds"]),
    )
    columns = log.columns
    columns["forget_mean"] = [run.mean(columns, s + 1) for s in range(len(log))]
    return Outcome(columns, run.stopped_at, run.masked)


def _drop_out_where_trained(model: PreTrainedModel) -> None:
    # Frozen blocks run without dropout, as they do where a trunk stands for them.
    model.eval()
    for block in decoder_blocks(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))


@dataclass
class _Run:
    """What an unlearner minimizes, and what is known of the start model."""

    model: PreTrainedModel
    forget: TokenSet
    retain: TokenSet
    unlearner: Mapping[str, Any]
    execution: Mapping[str, Any]
    seed: int
    accelerator: Accelerator
    special: frozenset[int]
    vocabulary: Collection[int] | None
    whole: TokenSet | None

    def __post_init__(self) -> None:
        require_predicted(self.forget, self.retain)
        self.name = str(self.unlearner.get("unlearner", self.unlearner["kind"]))
        self.method = load("unlearner", self.unlearner["kind"])
        self.settings, self.training = self.unlearner["settings"], self.unlearner["training"]
        rows = np.arange(self.model.get_output_embeddings().weight.shape[0])
        vocabulary = self.vocabulary
        self.labels = rows if vocabulary is None else np.intersect1d(rows, [*vocabulary])
        batch, self.size = int(self.training["batch_size"]), int(self.execution["micro_batch_size"])
        self.batch, self.retain_batch = min(batch, len(self.forget)), min(batch, len(self.retain))
        # Streams that are independent of each other, so that both domains shuffle on their own.
        self.retain_seed = int(np.random.SeedSequence([self.seed, 1]).generate_state(1)[0])
        self.shared = supports(self.model)
        stops = getattr(self.method, "STOPS", None)
        self.limit: float | None = None if stops is None else self.settings[stops]
        if self.limit is not None and self.whole is not None:
            self.limit += self._above_texts(self.whole)
        self.stopped_at: int | None = None
        # Of the start model, so that it comes before anything is restored or trained.
        self.masked: int | None = None
        self.held: list[tuple[nn.Parameter, Tensor, Tensor]] = []
        if (key := getattr(self.method, "SALIENCY", None)) is not None:
            self._hold(float(self.settings[key]))
        self.start_nll: NDArray[np.float64] | None = None
        if getattr(self.method, "START_NLL", False):
            tokens = int(self.execution["batch_tokens"])
            self.start_nll = text_nll(self.model, self.forget, tokens, self.accelerator).nll
        self.states: TextStates | None = None
        if (key := getattr(self.method, "STATES", None)) is not None:
            self._look_into(int(self.settings[key]), f"unlearners.{self.name}.{key}")

    def _above_texts(self, whole: TokenSet) -> float:
        """Return how far the mean NLL of the tokens to unlearn is above that of their texts: the
        limit is one of texts, and such tokens may be above it from the start."""
        of_texts = subset(whole, np.flatnonzero(np.isin(whole.ids, self.forget.ids)))
        if np.array_equal(of_texts.counted, self.forget.counted):
            return 0.0
        tokens, means = int(self.execution["batch_tokens"]), []
        for texts in (self.forget, of_texts):
            start = text_nll(self.model, texts, tokens, self.accelerator)
            means.append(float(start.nll.sum() / start.tokens.sum()))
        return means[0] - means[1]

    def _hold(self, sparsity: float) -> None:
        """Keep of each trained tensor a mask of the weights that must stay as they are, and a copy
        of it as it is now."""
        gradients(TextLoss(self.model), self.forget, self.size, self.accelerator)
        trained = {n: p for n, p in self.model.named_parameters() if p.grad is not None}
        shards = {n: local(p.grad) for n, p in trained.items() if p.grad is not None}
        free = largest(shards, sparsity, self.accelerator)
        self.model.zero_grad(set_to_none=True)
        self.held = [(p, ~free[n], local(p.detach()).clone()) for n, p in trained.items()]
        masked = sum(int(mask.sum()) for _, mask, _ in self.held)
        self.masked = int(all_gather(np.array([masked]), self.accelerator).sum())

    def _look_into(self, layer: int, where: str) -> None:
        """Read the hidden states after block ``layer``; keep a copy of what is trained, and draw a
        direction. Raises ``UserError`` for a block that training does not reach."""
        blocks = list(decoder_blocks(self.model)[1])
        reached = blocks[: layer % len(blocks) + 1] if -len(blocks) <= layer < len(blocks) else []
        if not any(p.requires_grad for block in reached for p in block.parameters()):
            problem = f"there is no trained block {layer} in a model of {len(blocks)}"
            raise UserError(problem, where=where)
        self.states = TextStates(self.model, layer)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.start_weights = [(p, local(p.detach()).clone()) for p in trained]
        rng = np.random.default_rng([self.seed, 2])
        drawn = rng.random(self.model.config.get_text_config(decoder=True).hidden_size)
        unit = torch.from_numpy(drawn / np.linalg.norm(drawn))
        self.direction = unit.float().to(self.accelerator.device)

    @contextmanager
    def _back_at_start(self) -> Iterator[None]:
        """Within the block the model is the one that training started from, without dropout."""
        self._exchange()
        self.model.eval()
        try:
            yield
        finally:
            self._exchange()
            _drop_out_where_trained(self.model)

    @torch.no_grad()
    def _exchange(self) -> None:
        # In place: a model that is sharded is gathered from these tensors.
        for parameter, copy in self.start_weights:
            shard = local(parameter.detach())
            present = shard.clone()
            shard.copy_(copy)
            copy.copy_(present)

    def objective(self) -> Objective:
        return Objective(
            self.model,
            self.states or TextLoss(self.model),
            self.name,
            f"lower unlearners.{self.name}.learning_rate, or set training.precision to fp32",
            self.step,
            ("loss", "forget_loss", "retain_loss"),
            ends=self.ends,
            adjust=self.adjust,
            updated=self.restore,
        )

    def adjust(self) -> None:
        for parameter, mask, _ in self.held:
            if parameter.grad is not None:
                local(parameter.grad).masked_fill_(mask, 0.0)

    @torch.no_grad()
    def restore(self, step: int, optimizer: object) -> None:
        # Their gradient is 0, but weight decay moves them all the same.
        # One pass over each tensor, where a scatter would first count the places of its mask.
        for parameter, mask, start in self.held:
            shard = local(parameter.detach())
            torch.where(mask, start, shard, out=shard)

    def mean(self, log: Mapping[str, list[float]], step: int) -> float:
        """Average the forget loss over the window that ends with ``step``, counted from 1."""
        window = log["forget_loss"][max(0, step - int(self.training["stop_window"])) : step]
        return sum(window) / len(window)

    def ends(self, log: Mapping[str, list[float]]) -> bool:
        step = len(log["step"])
        if self.limit is None or (mean := self.mean(log, step)) <= self.limit:
            return False
        self.stopped_at = step
        if self.accelerator.is_main_process:
            message = (
                f"{self.name}: stopped at step {step}, before its update: the mean forget loss"
            )
            print(f"{message} is {mean:.3f}, above {self.limit:g}", file=sys.stderr, flush=True)
        return True

    def step(self, number: int) -> Step:
        texts = self.texts_of(number)
        lengths = [
            [text.predicted for text in texts if text.forget == domain] for domain in (True, False)
        ]
        # Predicted tokens and texts of forget, then of retain.
        whole = [(sum(micro), len(micro)) for micro in lengths]
        parts = micro_batches(texts, self.size, self.accelerator)
        starts = self._start_states(parts)
        return Step(
            [partial(self._losses, *pair, whole) for pair in zip(parts, starts, strict=True)],
            whole[0][0] + whole[1][0],
            (number + 1) * self.batch / len(self.forget),
        )

    def _start_states(self, parts: Sequence[Sequence[_Text]]) -> list[Tensor | None]:
        """Return the hidden states of each part under the start model, None where the unlearner
        looks at none. In the batches of the step, so that at its start nothing is away from it."""
        if self.states is None:
            return [None] * len(parts)
        states: list[Tensor | None] = []
        with self._back_at_start():
            for part in parts:
                # With gradients, since without them attention may round otherwise.
                with self.accelerator.autocast():
                    states.append(self.states.states(self._batch(part)).detach())
        return states

    def texts_of(self, number: int) -> list[_Text]:
        """Return the texts of step ``number`` that have a token to predict, forget texts first."""
        forget, retain = self.forget, self.retain
        texts = []
        rows = examples_of_step(number, len(forget), self.batch, self.seed)
        for place, row in enumerate(rows):
            tokens = labels = forget[row]
            if getattr(self.method, "RANDOM_LABELS", False):
                # By the text's place in the step and not by who computes it, so that neither
                # micro-batches nor processes nor a restart change them.
                where = [self.seed, number, place]
                labels = random_labels(tokens, self.labels, self.special, where)
            start = None if self.start_nll is None else float(self.start_nll[row])
            weights = forget.weights_of(row)
            texts.append(_Text(str(forget.ids[row]), True, tokens, labels, weights, start))
        for row in examples_of_step(number, len(retain), self.retain_batch, self.retain_seed):
            of_row = retain[row], retain[row], retain.weights_of(row)
            texts.append(_Text(str(retain.ids[row]), False, *of_row))
        return [text for text in texts if text.predicted]

    def _batch(self, part: Sequence[_Text]) -> Batch:
        # A process without a text runs the model all the same, on one that does not count.
        of_first = self.forget[0], self.forget[0], self.forget.weights_of(0)
        read = part or [_Text(str(self.forget.ids[0]), True, *of_first)]
        return collate(
            [text.tokens for text in read],
            self.accelerator.device,
            shared=self.shared,
            ids=[text.id for text in read],
            labels=[text.labels for text in read],
            weights=[text.weights for text in read],
        )

    def _losses(
        self,
        part: Sequence[_Text],
        start: Tensor | None,
        whole: Sequence[tuple[int, int]],
        module: nn.Module,
    ) -> list[Tensor]:
        """Compute the losses by one forward pass over texts of both domains."""
        device = self.accelerator.device
        batch = self._batch(part)
        read = module(batch)
        sums = (read if start is None else read[0])[: len(part)]
        counts = to_device(np.array([text.predicted for text in part], np.float32), device)
        first = sum(text.forget for text in part)
        start_sums = None
        if self.start_nll is not None:
            values = [text.start_nll for text in part[:first]]
            start_sums = to_device(np.array(values, dtype=np.float64), device).to(sums.dtype)
        states: Sequence[States | None] = (None, None)
        if start is not None:
            states = self._by_domain(read[1], start, batch.lengths[: len(part)], first)
        forget = Nll(sums[:first], counts[:first], *whole[0], start_sums, states[0])
        retain = Nll(sums[first:], counts[first:], *whole[1], None, states[1])
        return [self.method.loss(forget, retain, self.settings), forget.mean(), retain.mean()]

    def _by_domain(
        self, now: Tensor, start: Tensor, lengths: NDArray[np.int64], first: int
    ) -> list[States]:
        """Return the states of the ``first`` texts, those to forget, and of the others."""
        domains, end = [], 0
        for of_domain in (lengths[:first], lengths[first:]):
            begin, end = end, end + int(of_domain.sum())
            texts = to_device(np.repeat(np.arange(len(of_domain)), of_domain), now.device)
            counts = to_device(of_domain.astype(np.float32), now.device)
            both = now[begin:end], start[begin:end]
            domains.append(States(*both, texts, counts, self.direction))
        return domains
