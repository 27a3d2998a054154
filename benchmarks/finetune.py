"""Fine-tuning: Hugging Face's Trainer padded, Trainer flattened, and ours.

    python -m benchmarks finetune                          SmolLM2-135M on one thread, minutes
    python -m benchmarks finetune --full                   Llama 3.1 8B on a GPU
    python -m benchmarks finetune --full --family gemma2   Gemma 2 2B; or qwen2, Qwen 2.5 7B

All train the same tensors (the last three blocks, input embedding, head) of the same random weights
by fused AdamW in batches of 32 texts, in bf16 by autocast: frozen weights in bf16, trained ones in
fp32, for the Trainer too. `padded` pads every text to the longest of its batch; `flattened`, with
`--full`, is the Trainer with `DataCollatorWithFlattening`, through flash attention 2 where that is
installed, else with the attention that transformers chooses. Texts are `tweets` of 25 tokens (at
most 64) and `posts` of 61 (at most 128) on average; with `--full`, posts alone. `warm_up_seconds_*`
are those of the steps before the ones that count, compilation included.

`*_tokens_per_second_*` counts real tokens, and by CPU time where there is no GPU. The variants take
turns, and the median round counts; `*_ratio_*` is ours over the other. `*_optimizer_share_*` is the
share of the step in AdamW. `*_peak_gib_*`, on a GPU, is memory beyond the weights, for one step.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from accelerate.state import AcceleratorState, PartialState
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from transformers import (
    DataCollatorWithFlattening,
    PreTrainedModel,
    Trainer,
    TrainingArguments,
)
from transformers.utils import is_flash_attn_2_available

from benchmarks.texts import KINDS, TRAINED, drawn, make, operations_per_token, trained
from mamushi.lm import device as devices
from mamushi.lm.batches import examples_of_step
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import finetune
from studies.lib.report import Report

BATCH = 32
SETTINGS: dict[str, Any] = {
    "epochs": 1.0,
    "batch_size": BATCH,
    "micro_batch_size": BATCH,
    "learning_rate": 5e-5,
    "betas": [0.9, 0.999],
    "epsilon": 1e-8,
    "weight_decay": 0.01,
    "schedule": "constant",
    "warmup_steps": 0,
    "gradient_clip": None,
    "checkpoint_seconds": 1e9,
}


@dataclass
class Clock:
    """When each optimizer step began and ended, on the GPU or in CPU time of this process."""

    gpu: bool
    begins: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)

    def now(self) -> Any:
        if not self.gpu:
            return time.process_time()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        """Seconds."""
        return float(begin.elapsed_time(end)) / 1e3 if self.gpu else float(end - begin)

    def __enter__(self) -> Clock:
        self.start = self.now()
        self._handles = [
            register_optimizer_step_pre_hook(lambda *_: self.begins.append(self.now())),
            register_optimizer_step_post_hook(lambda *_: self.ends.append(self.now())),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        if self.gpu:
            torch.cuda.synchronize()


@dataclass
class Measured:
    """Of one run: real tokens per second, the optimizer's share of the time, and the seconds until
    the steps began that count."""

    rate: float
    optimizer: float
    warm_up: float


def ours(model: PreTrainedModel, texts: TokenSet, steps: int, precision: str) -> list[int]:
    """Train as we do; return the real tokens of each step."""
    accelerator = devices.accelerator(precision)
    finetune(model, texts, SETTINGS, total=steps, seed=0, accelerator=accelerator)
    rows = (examples_of_step(step, len(texts), BATCH, 0) for step in range(steps))
    return [int(texts.lengths[r].sum()) for r in rows]


def theirs(flat: bool) -> Callable[[PreTrainedModel, TokenSet, int, str], list[int]]:
    """The Trainer's run, with its batches padded or flattened.

    Flattened texts go through flash attention 2 where that is installed."""

    def run(model: PreTrainedModel, texts: TokenSet, steps: int, precision: str) -> list[int]:
        attention = model.config._attn_implementation
        if flat and model.device.type == "cuda" and is_flash_attn_2_available():
            model.set_attn_implementation("flash_attention_2")
        try:
            return trained_by_it(model, texts, steps, precision)
        finally:
            model.set_attn_implementation(attention)

    def trained_by_it(
        model: PreTrainedModel, texts: TokenSet, steps: int, precision: str
    ) -> list[int]:
        AcceleratorState._reset_state(reset_partial_state=True)
        counted: list[int] = []
        flatten = DataCollatorWithFlattening(return_tensors="pt")

        def collate(examples: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
            counted.append(sum(len(example["input_ids"]) for example in examples))
            if flat:
                return dict(flatten(list(examples)))
            longest = max(len(example["input_ids"]) for example in examples)
            ids = torch.zeros(len(examples), longest, dtype=torch.int64)
            mask = torch.zeros_like(ids)
            for row, example in enumerate(examples):
                row_ids = torch.tensor(example["input_ids"])
                ids[row, : len(row_ids)], mask[row, : len(row_ids)] = row_ids, 1
            labels = ids.masked_fill(mask == 0, -100)
            return {"input_ids": ids, "attention_mask": mask, "labels": labels}

        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=BATCH,
                max_steps=steps,
                learning_rate=SETTINGS["learning_rate"],
                weight_decay=SETTINGS["weight_decay"],
                lr_scheduler_type="constant",
                max_grad_norm=0.0,
                optim="adamw_torch_fused",
                bf16=precision == "bf16",
                use_cpu=model.device.type == "cpu",
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
                remove_unused_columns=False,
                seed=0,
            )
            trainer = Trainer(
                model=model,
                args=arguments,
                train_dataset=[{"input_ids": texts[i].tolist()} for i in range(len(texts))],
                data_collator=collate,
            )
            # It prints its own figures, which count padding.
            with contextlib.redirect_stdout(io.StringIO()):
                trainer.train()
            trainer.accelerator.free_memory()
        AcceleratorState._reset_state(reset_partial_state=True)
        PartialState._reset_state()
        # The loader collates a batch ahead of the one that is trained on.
        return counted[:steps]

    return run


RUNS = {
    "padded": theirs(False),
    "flattened": theirs(True),
    "ours": ours,
}
VARIANTS = tuple(RUNS)


def measure(
    variant: str, model: PreTrainedModel, texts: TokenSet, steps: int, warm_up: int, precision: str
) -> Measured:
    """The steps after the first ``warm_up``."""
    with Clock(model.device.type == "cuda") as clock:
        tokens = RUNS[variant](model, texts, steps, precision)
    total = clock.between(clock.ends[warm_up - 1], clock.ends[-1])
    pairs = list(zip(clock.begins, clock.ends, strict=True))[warm_up:]
    optimizer = sum(clock.between(*pair) for pair in pairs)
    model.zero_grad(set_to_none=True)
    before = clock.between(clock.start, clock.ends[warm_up - 1])
    return Measured(sum(tokens[warm_up:]) / total, optimizer / total, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="full size, on a GPU")
    parser.add_argument("--family", choices=("llama", "qwen2", "gemma2"), default="llama")
    parser.add_argument("--peak-tflops", type=float, default=790.0, help="of the GPU in bf16")
    args = parser.parse_args()
    variants = ["padded", *(["flattened"] if args.full else []), "ours"]
    if args.full and not torch.cuda.is_available():
        parser.error("--full needs a GPU")
    if args.family != "llama" and not args.full:
        parser.error("--family is for --full")
    device = torch.device("cuda" if args.full else "cpu")
    steps, warm_up, rounds = (120, 20, 1) if args.full else (2, 1, 2)
    if not args.full:
        torch.set_num_threads(1)
    gpu = torch.cuda.get_device_name() if args.full else None
    report = Report("finetune", gpu, None if args.full else 1)

    model = make(args.family, args.full, device)
    freeze(model, TRAINED)
    devices.place(model, "bf16", device)
    report.value("family", args.family if args.full else "llama (SmolLM2-135M)")
    report.value("parameters", sum(p.numel() for p in model.parameters()))
    report.value("trained_parameters", trained(model))
    report.value("gflop_per_token", operations_per_token(model) / 1e9)
    if args.full:
        report.value("weights_gib", torch.cuda.memory_allocated() / 2**30)
    for kind in ["posts"] if args.full else KINDS:
        texts = drawn(kind, 4000, model.config.vocab_size)
        report.value(f"{kind}_tokens_per_text", float(texts.lengths.mean()))
        runs_of: dict[str, list[Measured]] = {variant: [] for variant in variants}
        for _ in range(rounds):
            for variant in variants:
                runs_of[variant].append(measure(variant, model, texts, steps, warm_up, "bf16"))
        for variant, runs in runs_of.items():
            rate = statistics.median(m.rate for m in runs)
            report.value(f"{kind}_tokens_per_second_{variant}", rate)
            share = statistics.median(m.optimizer for m in runs)
            report.value(f"{kind}_optimizer_share_{variant}", share)
            report.value(f"{kind}_warm_up_seconds_{variant}", max(m.warm_up for m in runs))
            if args.full:
                peak = rate * operations_per_token(model) / args.peak_tflops / 1e12
                report.value(f"{kind}_fraction_of_peak_{variant}", peak)
        for variant in variants:
            if variant == "ours":
                continue
            pairs = zip(runs_of["ours"], runs_of[variant], strict=True)
            ratio = statistics.median(our.rate / their.rate for our, their in pairs)
            report.value(f"{kind}_ratio_{variant}", ratio)
        for variant in variants if args.full else ():
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            RUNS[variant](model, texts, 2, "bf16")
            model.zero_grad(set_to_none=True)
            most = torch.cuda.max_memory_allocated() - before
            report.value(f"{kind}_peak_gib_{variant}", most / 2**30)
    report.write()


if __name__ == "__main__":
    main()
