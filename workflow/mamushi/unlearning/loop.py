"""The one training loop of all unlearners."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm import checkpoint
from mamushi.lm.attention import supports, to_device
from mamushi.lm.batches import collate, examples_of_step, steps
from mamushi.lm.compiled import compiled
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.perplexity import text_nll
from mamushi.lm.tokens import TokenSet
from mamushi.registry import load
from mamushi.running import interruption
from mamushi.running.progress import Progress
from mamushi.unlearning.objective import Nll, TextLoss, random_labels
from mamushi.unlearning.saliency import gradients, largest
from mamushi.unlearning.trunk import States, Tail

COLUMNS = (
    "step",
    "epoch",
    "loss",
    "forget_loss",
    "retain_loss",
    "forget_mean",
    "tokens",
    "tokens_per_second",
    "learning_rate",
    "gradient_norm",
    "seconds",
)

Feed = Callable[[Sequence[str], NDArray[np.int64]], None]
"""Told the ids and lengths of texts before a forward pass over them."""


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
        """Optimizer steps that were taken: the one that a run stopped at was not."""
        return len(self.log["step"]) - (self.stopped_at is not None)


class _Text(NamedTuple):
    """A text of a step; ``reference`` is its NLL under the start model, where that is asked for."""

    id: str
    forget: bool
    tokens: NDArray[np.int32]
    labels: NDArray[np.int32]
    reference: float | None = None


class _Step(NamedTuple):
    """The texts of a step that have a token to predict, forget texts first, and how many predicted
    tokens and texts each domain has."""

    texts: list[_Text]
    forget_tokens: int
    forget_texts: int
    retain_tokens: int
    retain_texts: int


def steps_of(selected: int, whole: int, training: Mapping[str, Any]) -> int:
    """Optimizer steps for ``selected`` of ``whole`` forget texts.

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
    chosen: Mapping[str, Any],
    execution: Mapping[str, Any],
    *,
    total: int,
    seed: int,
    accelerator: Accelerator,
    special: frozenset[int] = frozenset(),
    trunk: States | None = None,
    state: Path | None = None,
    fingerprint: str = "",
) -> Outcome:
    """Unlearn ``forget`` while keeping ``retain``, in place, in the weights that take gradients.

    ``chosen`` has the unlearner's ``kind``, its ``settings`` and the ``training`` of the loop. In
    each of ``total`` steps, ``batch_size`` forget texts (or all, where there are fewer) go with as
    many retain texts, each domain shuffled anew for every pass over it, so that the shorter one is
    cycled. AdamW with a constant learning rate; gradients add up to those of the whole step,
    whatever the micro-batch size and number of processes. Frozen blocks run without dropout, and
    the start from the hidden states of ``trunk``, if it is given, changes nothing.

    Before each update the loss and the gradient's norm must be finite, and for an unlearner that
    stops, the mean of the forget loss over the last ``stop_window`` steps must not be above its
    limit; the step at which it is, is logged and not taken. The ``forget_loss`` of an unlearner
    with random labels is the NLL of those labels, the one that it trains on. A loss is 0 where none
    of the step's texts of that domain has a token to predict.

    With ``state``, a file, everything is saved there each ``checkpoint_seconds``, and a run whose
    ``fingerprint`` equals the file's goes on from it: on the CPU bit for bit as if it had never
    stopped. It is also saved when the process is asked to end: see ``interruption``. ``special``
    are the token ids that random labels do not replace.

    Raises ``UserError`` when there is nothing to forget or to retain, and for a loss or gradient
    that is not finite; ``state`` then has the weights before that step.
    """
    for texts, domain in ((forget, "forget"), (retain, "retain")):
        if not (texts.lengths > 1).any():
            raise UserError(
                f"unlearning: no {domain} text with a token to predict",
                do="check the removal list and the data card",
            )
    with _feeding(model, trunk) as feed:
        return _Run(
            model, forget, retain, chosen, execution, seed, accelerator, special, feed
        ).through(total, state, fingerprint)


@contextmanager
def _feeding(model: PreTrainedModel, trunk: States | None) -> Iterator[Feed]:
    """Within the block, a model that starts from the trunk, where there is one."""
    if trunk is None:
        yield lambda ids, lengths: None
        return
    with Tail(model, len(_trained_blocks(model)), trunk) as tail:
        yield tail.put


def _trained_blocks(model: PreTrainedModel) -> list[torch.nn.Module]:
    _, blocks = decoder_blocks(model)
    return [block for block in blocks if any(p.requires_grad for p in block.parameters())]


class _Run:
    """Everything that stays the same over the steps of a run."""

    def __init__(
        self,
        model: PreTrainedModel,
        forget: TokenSet,
        retain: TokenSet,
        chosen: Mapping[str, Any],
        execution: Mapping[str, Any],
        seed: int,
        accelerator: Accelerator,
        special: frozenset[int],
        feed: Feed,
    ) -> None:
        self.name = str(chosen.get("unlearner", chosen["kind"]))
        self.method: ModuleType = load("unlearner", chosen["kind"])
        self.settings, self.training = chosen["settings"], chosen["training"]
        self.execution, self.seed, self.accelerator = execution, seed, accelerator
        self.model, self.forget, self.retain = model, forget, retain
        self.special, self.feed = special, feed
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.batch = min(int(self.training["batch_size"]), len(forget))
        self.retain_batch = min(int(self.training["batch_size"]), len(retain))
        # Streams that are independent of each other, so that both domains shuffle on their own.
        self.retain_seed = int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])
        stops = getattr(self.method, "STOPS", None)
        self.limit: float | None = None if stops is None else self.settings[stops]
        self.shared = supports(model)
        loss_of = TextLoss(model)
        # Both belong to the start model, so they come before anything is restored or trained.
        self.reference = self._reference()
        self.fixed, self.held = self._saliency(loss_of)
        optimizer = torch.optim.AdamW(
            self.trained.values(),
            lr=float(self.settings["learning_rate"]),
            betas=(float(self.training["betas"][0]), float(self.training["betas"][1])),
            eps=float(self.training["epsilon"]),
            weight_decay=float(self.training["weight_decay"]),
            fused=True,
        )
        self.prepared, self.optimizer = accelerator.prepare(loss_of, optimizer)

    # --- what is known of the start model ---

    def _reference(self) -> NDArray[np.float64] | None:
        """NLL of each forget text under the start model, summed over its predicted tokens."""
        if not getattr(self.method, "REFERENCE", False):
            return None
        return text_nll(
            self.model,
            self.forget,
            int(self.execution["batch_tokens"]),
            self.accelerator,
            feed=self._feed_forget,
        ).nll

    def _feed_forget(self, rows: NDArray[np.int64]) -> None:
        self.feed(self.forget.ids[rows].tolist(), self.forget.lengths[rows])

    def _saliency(
        self, loss_of: TextLoss
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Of each trained tensor a mask of the weights that must stay as they are, and the values
        of these; both empty where the unlearner asks for no mask."""
        key = getattr(self.method, "SALIENCY", None)
        if key is None:
            return {}, {}
        size = int(self.execution["micro_batch_size"])
        gradients(loss_of, self.forget, size, self.accelerator, self._feed_forget)
        found = {n: p.grad for n, p in self.trained.items() if p.grad is not None}
        fixed = {n: ~mask for n, mask in largest(found, float(self.settings[key])).items()}
        self.model.zero_grad(set_to_none=True)
        return fixed, {n: self.trained[n].detach()[mask] for n, mask in fixed.items()}

    # --- the loop ---

    def through(self, total: int, state: Path | None, fingerprint: str) -> Outcome:
        """All steps from where the state left off."""
        log: dict[str, list[float]] = {name: [] for name in COLUMNS}
        if state is not None:
            checkpoint.restore(state, fingerprint, self.trained, self.optimizer, log)
        self.model.eval()
        for block in _trained_blocks(self.model):
            block.train()
        stopped_at = None
        start, began, saved = len(log["step"]), time.monotonic(), time.monotonic()
        before = log["seconds"][-1] if start else 0.0
        with (
            compiled(self.model, bool(self.execution.get("compile", False))),
            interruption.noticed(state is not None) as notice,
            Progress(total, self.name, "step", start=start) as progress,
        ):
            for number in range(start, total):
                step = self._step(number)
                measured = self._gradient(step)
                if not all(map(math.isfinite, measured.values())):
                    raise self._failure(number + 1, measured, state, fingerprint, log)
                self._append(log, number, step, measured, before + time.monotonic() - began)
                progress.advance(1, _note(log))
                if self.limit is not None and log["forget_mean"][-1] > self.limit:
                    stopped_at = number + 1
                    self._tell(stopped_at, log["forget_mean"][-1])
                    break
                self._update(measured["gradient_norm"])
                stop = notice.at(number + 1, self.accelerator)
                if state is not None and (
                    stop is not None
                    or time.monotonic() - saved >= float(self.execution["checkpoint_seconds"])
                ):
                    self._save(state, fingerprint, log)
                    saved = time.monotonic()
                if stop is not None:
                    raise interruption.Stopped(stop, number + 1, total)
        # Whoever measures the model next needs no gradients and no moments.
        self.optimizer.zero_grad(set_to_none=True)
        self.accelerator.free_memory()
        masked = sum(values.numel() for values in self.held.values()) if self.fixed else None
        return Outcome(log, stopped_at, masked)

    def _step(self, number: int) -> _Step:
        """Step ``number``, counted from 0."""
        forget, retain = self.forget, self.retain
        texts = []
        rows = examples_of_step(number, len(forget), self.batch, self.seed)
        for place, row in enumerate(rows):
            tokens = labels = forget[row]
            if getattr(self.method, "RANDOM_LABELS", False):
                # By the text's place in the step and not by who computes it, so that neither
                # micro-batches nor processes nor a restart change them.
                where = [self.seed, number, place]
                labels = random_labels(tokens, self.vocabulary, self.special, where)
            reference = None if self.reference is None else float(self.reference[row])
            texts.append(_Text(str(forget.ids[row]), True, tokens, labels, reference))
        rows = examples_of_step(number, len(retain), self.retain_batch, self.retain_seed)
        texts += [_Text(str(retain.ids[row]), False, retain[row], retain[row]) for row in rows]
        texts = [text for text in texts if len(text.tokens) > 1]
        counts = [
            [len(text.tokens) - 1 for text in texts if text.forget == domain]
            for domain in (True, False)
        ]
        return _Step(texts, sum(counts[0]), len(counts[0]), sum(counts[1]), len(counts[1]))

    def _gradient(self, step: _Step) -> dict[str, float]:
        """Leave the gradient of the step's loss; its losses, and its norm before clipping."""
        accelerator = self.accelerator
        mine = step.texts[accelerator.process_index :: accelerator.num_processes]
        size = int(self.execution["micro_batch_size"])
        # A process without a text takes part all the same: the others wait for its gradient.
        parts = [mine[i : i + size] for i in range(0, len(mine), size)] or [[]]
        sums = torch.zeros(3, device=accelerator.device)
        for place, part in enumerate(parts):
            wait = place < len(parts) - 1
            with accelerator.no_sync(self.prepared) if wait else nullcontext():
                forget, retain = self._forward(part, step)
                loss = self.method.loss(forget, retain, self.settings)
                # Gradients are averaged over processes; multiplied back, they are the sum.
                accelerator.backward(loss * accelerator.num_processes)
            sums += torch.stack([loss, forget.mean(), retain.mean()]).detach()
        if accelerator.num_processes > 1:
            sums = accelerator.reduce(sums, "sum")
        for name, mask in self.fixed.items():
            gradient = self.trained[name].grad
            if gradient is not None:
                gradient.masked_fill_(mask, 0.0)
        norm = torch.nn.utils.get_total_norm(
            [p.grad for p in self.trained.values() if p.grad is not None]
        )
        names = ("loss", "forget_loss", "retain_loss", "gradient_norm")
        # One transfer for all: each waits for the device.
        return dict(zip(names, torch.cat([sums, norm[None]]).tolist(), strict=True))

    def _forward(self, part: Sequence[_Text], step: _Step) -> tuple[Nll, Nll]:
        """The NLLs of forget and of retain texts of a part of the step, by one forward pass."""
        device = self.accelerator.device
        read = part or [_Text(str(self.forget.ids[0]), True, self.forget[0], self.forget[0])]
        batch = collate(
            [text.tokens for text in read],
            device,
            shared=self.shared,
            labels=[text.labels for text in read],
        )
        self.feed([text.id for text in read], batch.lengths)
        sums = self.prepared(batch)[: len(part)]
        tokens = to_device((batch.lengths[: len(part)] - 1).astype(np.float32), device)
        first = sum(text.forget for text in part)
        known = [text.reference for text in part if text.reference is not None]
        reference = None if self.reference is None else torch.tensor(known, device=device)
        return (
            Nll(sums[:first], tokens[:first], reference, step.forget_tokens, step.forget_texts),
            Nll(sums[first:], tokens[first:], None, step.retain_tokens, step.retain_texts),
        )

    def _update(self, norm: float) -> None:
        """One step of the optimizer along the gradient, whose norm is ``norm``."""
        if self.training["gradient_clip"] is not None:
            largest_norm = float(self.training["gradient_clip"])
            torch.nn.utils.clip_grads_with_norm_(
                self.trained.values(), largest_norm, torch.tensor(norm)
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            # Their gradient is 0, but weight decay moves them all the same.
            for name, values in self.held.items():
                self.trained[name].masked_scatter_(self.fixed[name], values)

    # --- records ---

    def _append(
        self,
        log: dict[str, list[float]],
        number: int,
        step: _Step,
        measured: Mapping[str, float],
        seconds: float,
    ) -> None:
        """Log step ``number``, counted from 0."""
        window = [*log["forget_loss"], measured["forget_loss"]][
            -int(self.training["stop_window"]) :
        ]
        tokens = step.forget_tokens + step.retain_tokens
        last = log["seconds"][-1] if number else 0.0
        row = {
            **measured,
            "step": number + 1,
            "epoch": (number + 1) * self.batch / len(self.forget),
            "forget_mean": sum(window) / len(window),
            "tokens": tokens,
            "tokens_per_second": tokens / max(seconds - last, 1e-9),
            "learning_rate": float(self.settings["learning_rate"]),
            "seconds": seconds,
        }
        for name, column in log.items():
            column.append(row[name])

    def _save(self, state: Path, fingerprint: str, log: dict[str, list[float]]) -> bool:
        """Whether the state has the weights of now: not before the first step, for which the start
        model stands, and never weights that are not finite."""
        finite = torch.stack([torch.isfinite(p).all() for p in self.trained.values()]).all()
        if not log["step"] or not bool(finite):
            return False
        if self.accelerator.is_main_process:
            checkpoint.save(state, fingerprint, self.trained, self.optimizer, log)
        return True

    def _failure(
        self,
        step: int,
        measured: Mapping[str, float],
        state: Path | None,
        fingerprint: str,
        log: dict[str, list[float]],
    ) -> UserError:
        """Keep the weights that no step since has moved, and say what is wrong with this one."""
        name, value = next((k, v) for k, v in measured.items() if not math.isfinite(v))
        kept = ""
        if state is not None and self._save(state, fingerprint, log):
            kept = f" and keep the weights before it in {state}"
        return UserError(
            f"{self.name}: the {name.replace('_', ' ')} is {value} at step {step}: "
            f"stop there{kept}",
            do=f"lower unlearners.{self.name}.learning_rate, or set training.precision to fp32",
        )

    def _tell(self, step: int, mean: float) -> None:
        if self.accelerator.is_main_process:
            said = (
                f"{self.name}: stopped at step {step}, before its update: the mean forget loss is"
            )
            print(f"{said} {mean:.3f}, above {self.limit}", file=sys.stderr, flush=True)


def _note(log: Mapping[str, list[float]]) -> str:
    return f"forget {log['forget_loss'][-1]:.3f}, retain {log['retain_loss'][-1]:.3f}"
