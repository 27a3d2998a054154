"""Partial fine-tuning: one engine for contaminated, gold, beta 0 and every retrained model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm import checkpoint
from mamushi.lm.attention import supports
from mamushi.lm.batches import collate, examples_of_step, steps
from mamushi.lm.compiled import compiled
from mamushi.lm.loss import TokenLoss
from mamushi.lm.tokens import TokenSet
from mamushi.running import interruption
from mamushi.running.progress import Progress


@dataclass
class TrainLog:
    """What happened in each step: parallel columns of the artifact ``train_log``."""

    columns: dict[str, list[float]] = field(
        default_factory=lambda: {
            name: []
            for name in (
                "step",
                "epoch",
                "loss",
                "tokens",
                "tokens_per_second",
                "learning_rate",
                "gradient_norm",
                "seconds",
            )
        }
    )

    def __len__(self) -> int:
        return len(self.columns["step"])

    def append(self, **values: float) -> None:
        for name, column in self.columns.items():
            column.append(values[name])


def learning_rate(step: int, total: int, settings: Mapping[str, Any]) -> float:
    """Learning rate of a step counted from 0: linear warm-up, then the schedule of the settings."""
    warmup = int(settings["warmup_steps"])
    peak = float(settings["learning_rate"])
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    left = (total - step) / max(1, total - warmup)
    if settings["schedule"] == "linear":
        return peak * left
    if settings["schedule"] == "cosine":
        return peak * 0.5 * (1 + math.cos(math.pi * (1 - left)))
    return peak


def finetune(
    model: PreTrainedModel,
    texts: TokenSet,
    settings: Mapping[str, Any],
    *,
    total: int | None = None,
    seed: int,
    accelerator: Accelerator,
    what: str = "fine-tune",
    state: Path | None = None,
    fingerprint: str = "",
) -> TrainLog:
    """Train the parameters that require a gradient, in place, on the texts.

    AdamW over batches of ``batch_size`` texts; the loss of a step is the NLL summed over its
    predicted tokens divided by their number, whatever the micro-batch size and number of processes.
    ``total`` is the number of steps, by default T = floor(epochs * n / batch) for these n texts.

    With ``state``, a file, everything is saved there each ``checkpoint_seconds``, and a run whose
    ``fingerprint`` equals the file's goes on from it: on the CPU bit for bit as if it had never
    stopped. It is also saved when the process is asked to end: see ``interruption``. Raises
    ``UserError`` when there is nothing to train on or the loss is not finite.
    """
    if len(texts) == 0 or int(np.maximum(texts.lengths - 1, 0).sum()) == 0:
        raise UserError(f"{what}: no text with a token to predict", do="check the data card")
    batch = int(settings["batch_size"])
    if total is None:
        total = steps(len(texts), batch, float(settings["epochs"]))
    loss_of = TokenLoss(model)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(
        trained.values(),
        lr=float(settings["learning_rate"]),
        betas=(float(settings["betas"][0]), float(settings["betas"][1])),
        eps=float(settings["epsilon"]),
        weight_decay=float(settings["weight_decay"]),
        fused=True,
    )
    log = TrainLog()
    if state is not None:
        checkpoint.restore(state, fingerprint, trained, optimizer, log.columns)
    prepared, optimizer = accelerator.prepare(loss_of, optimizer)
    model.train()
    start, began, saved = len(log), time.monotonic(), time.monotonic()
    before = log.columns["seconds"][-1] if start else 0.0
    waiting: list[tuple[dict[str, float], torch.Tensor, torch.Tensor]] = []

    def collect() -> None:
        # The one place that waits for the device: losses are fetched for many steps at once.
        for values, loss, norm in waiting:
            values["loss"], values["gradient_norm"] = float(loss), float(norm)
            if not math.isfinite(values["loss"]):
                raise UserError(
                    f"{what}: the loss is {values['loss']} at step {int(values['step'])}",
                    do="lower training.learning_rate or train in fp32",
                )
            log.append(**values)
        waiting.clear()

    with (
        compiled(model, bool(settings.get("compile", False))),
        interruption.noticed(state is not None) as notice,
        Progress(total, what, "step", start=start) as progress,
    ):
        for step in range(start, total):
            rows = examples_of_step(step, len(texts), batch, seed)
            tokens = int(np.maximum(texts.lengths[rows] - 1, 0).sum())
            rate = learning_rate(step, total, settings)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = _accumulate(prepared, texts, rows, tokens, settings, accelerator)
            norm = torch.nn.utils.get_total_norm([p.grad for p in trained.values()])
            if settings["gradient_clip"] is not None:
                torch.nn.utils.clip_grads_with_norm_(
                    trained.values(), float(settings["gradient_clip"]), norm
                )
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            seconds = before + time.monotonic() - began
            last = waiting[-1][0]["seconds"] if waiting else (_last(log) if len(log) else 0.0)
            waiting.append(
                (
                    {
                        "step": step + 1,
                        "epoch": (step + 1) * batch / len(texts),
                        "tokens": tokens,
                        "tokens_per_second": tokens / max(seconds - last, 1e-9),
                        "learning_rate": rate,
                        "seconds": seconds,
                    },
                    loss,
                    norm,
                )
            )
            stop = notice.at(step + 1, accelerator)
            due = state is not None and (
                stop is not None
                or time.monotonic() - saved >= float(settings["checkpoint_seconds"])
            )
            if progress.due() or due or len(waiting) >= 100:
                collect()
            if due and state is not None and accelerator.is_main_process:
                checkpoint.save(state, fingerprint, trained, optimizer, log.columns)
                saved = time.monotonic()
            if stop is not None:
                raise interruption.Stopped(stop, step + 1, total)
            progress.advance(1, _note(log))
        collect()
    # Adam's moments, twice the size of what is trained, are of no use to whoever evaluates next.
    accelerator.free_memory()
    return log


def _accumulate(
    prepared: torch.nn.Module,
    texts: TokenSet,
    rows: np.ndarray[Any, Any],
    tokens: int,
    settings: Mapping[str, Any],
    accelerator: Accelerator,
) -> torch.Tensor:
    """Add the gradient of the step's mean NLL, by micro-batches; return that mean, detached."""
    mine = rows[accelerator.process_index :: accelerator.num_processes]
    size = int(settings["micro_batch_size"])
    parts = [mine[i : i + size] for i in range(0, len(mine), size)]
    shared = supports(accelerator.unwrap_model(prepared).model)
    total = torch.zeros((), device=accelerator.device)
    for number, part in enumerate(parts):
        given = collate([texts[i] for i in part], accelerator.device, shared=shared)
        # Gradients are averaged over processes; multiplied back, they are the sum over the step.
        scale = accelerator.num_processes / max(tokens, 1)
        wait = number < len(parts) - 1
        with accelerator.no_sync(prepared) if wait else nullcontext():
            loss = prepared(given) * scale
            accelerator.backward(loss)
        total += loss.detach() / accelerator.num_processes
    return accelerator.reduce(total, "sum") if accelerator.num_processes > 1 else total


def _last(log: TrainLog) -> float:
    return log.columns["seconds"][-1]


def _note(log: TrainLog) -> str:
    if not len(log):
        return ""
    recent = slice(-20, None)
    tokens = sum(log.columns["tokens"][recent])
    seconds = sum(
        t / max(r, 1e-9)
        for t, r in zip(
            log.columns["tokens"][recent], log.columns["tokens_per_second"][recent], strict=True
        )
    )
    return f"loss {log.columns['loss'][-1]:.3f}, {tokens / max(seconds, 1e-9):,.0f} tokens/s"
