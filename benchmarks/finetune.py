"""Fine-tuning: Hugging Face's Trainer padded, Trainer flattened, and ours.

    python -m benchmarks finetune      SmolLM2-135M on one thread, minutes; gpu_check has full sizes

All train the same tensors (the last three blocks, input embedding, head) of the same random weights
by fused AdamW in batches of 32 texts, in bf16 by autocast: frozen weights in bf16, trained ones in
fp32, for the Trainer too. `padded` pads every text to the longest of its batch; `flattened`, on a
GPU alone, is the Trainer with `DataCollatorWithFlattening`, through flash attention 2 where that is
installed, else with the attention that transformers chooses. Texts are `tweets` of 25 tokens (at
most 64) and `posts` of 61 (at most 128) on average. `warm_up_seconds_*` are those of the steps
before the ones that count, compilation included.

`*_tokens_per_second_*` counts real tokens, and by CPU time where there is no GPU. The variants take
turns, and the median round counts; `*_ratio_*` is ours over the other.
"""

import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from accelerate.state import AcceleratorState, PartialState
from torch.optim.optimizer import register_optimizer_step_post_hook
from transformers import (
    AutoModelForCausalLM,
    DataCollatorWithFlattening,
    LlamaConfig,
    PreTrainedModel,
    Trainer,
    TrainingArguments,
)
from transformers.utils import is_flash_attn_2_available

from benchmarks.texts import KINDS, SMALL, TRAINING, drawn
from mamushi.lm import device as devices
from mamushi.lm import loading
from mamushi.lm.batches import examples_of_step
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet
from mamushi.lm.training import minimize_nll
from studies.lib.report import Report, arguments

BATCH, STEPS, WARM_UP, ROUNDS = TRAINING.batch_size, 2, 1, 2


class Measured(NamedTuple):
    """Real tokens per second, and the seconds until the steps began that count."""

    rate: float
    warm_up: float


def ours(model: PreTrainedModel, texts: TokenSet, steps: int, precision: str) -> list[int]:
    """Train as we do; return the real tokens of each step."""
    accelerator = devices.accelerator(precision)
    how: dict[str, Any] = {"micro_batch_size": BATCH, "examples": steps * BATCH, "seed": 0}
    minimize_nll(model, texts, TRAINING, **how, accelerator=accelerator)
    rows = (examples_of_step(step, len(texts), BATCH, 0) for step in range(steps))
    return [int(texts.lengths[r].sum()) for r in rows]


def theirs(
    flat: bool, model: PreTrainedModel, texts: TokenSet, steps: int, precision: str
) -> list[int]:
    """Train by the Trainer, with its batches padded or flattened; return the real tokens of each
    step."""
    AcceleratorState._reset_state(reset_partial_state=True)
    attention, counted = model.config._attn_implementation, list[int]()
    if flat and model.device.type == "cuda" and is_flash_attn_2_available():
        model.set_attn_implementation("flash_attention_2")
    flatten = DataCollatorWithFlattening(return_tensors="pt")

    def collate(examples: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        counted.append(sum(len(example["input_ids"]) for example in examples))
        if flat:
            return dict(flatten(list(examples)))
        rows = [torch.tensor(example["input_ids"]) for example in examples]
        pad = partial(torch.nn.utils.rnn.pad_sequence, batch_first=True)
        ids, mask = pad(rows), pad([torch.ones_like(row) for row in rows])
        labels = ids.masked_fill(mask == 0, -100)
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}

    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            max_steps=steps,
            learning_rate=TRAINING.learning_rate,
            weight_decay=TRAINING.weight_decay,
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
        dataset = [{"input_ids": texts[i].tolist()} for i in range(len(texts))]
        trainer = Trainer(model=model, args=settings, train_dataset=dataset, data_collator=collate)
        # It prints its own figures, which count padding.
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.train()
        trainer.accelerator.free_memory()
    AcceleratorState._reset_state(reset_partial_state=True)
    PartialState._reset_state()
    model.set_attn_implementation(attention)
    # The loader collates a batch ahead of the one that is trained on.
    return counted[:steps]


RUNS = {"padded": partial(theirs, False), "flattened": partial(theirs, True), "ours": ours}
VARIANTS = tuple(RUNS)


def measure(
    variant: str, model: PreTrainedModel, texts: TokenSet, steps: int, warm_up: int, precision: str
) -> Measured:
    """Measure the steps after the first ``warm_up``, on the GPU or in CPU time of this process."""
    on_gpu = model.device.type == "cuda"

    def now() -> float:
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() if on_gpu else time.process_time()

    times = [now()]
    handle = register_optimizer_step_post_hook(lambda *_: times.append(now()))
    try:
        tokens = RUNS[variant](model, texts, steps, precision)
    finally:
        handle.remove()
    model.zero_grad(set_to_none=True)
    rate = sum(tokens[warm_up:]) / (times[-1] - times[warm_up])
    return Measured(rate, times[warm_up] - times[0])


def main() -> None:
    args = arguments(__doc__).parse_args()
    torch.set_num_threads(1)
    report = Report("finetune", threads=1)
    torch.manual_seed(0)
    config = LlamaConfig(**SMALL)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    freeze(model, TRAINING)
    loading.place_model(model, "bf16", torch.device("cpu"))
    for kind in KINDS:
        texts = drawn(kind, 4000, model.config.vocab_size)
        report.value(f"{kind}_tokens_per_text", float(texts.lengths.mean()))
        runs: dict[str, list[Measured]] = {"padded": [], "ours": []}
        for _ in range(ROUNDS):
            for variant, of_variant in runs.items():
                of_variant.append(measure(variant, model, texts, STEPS, WARM_UP, "bf16"))
        for variant, of_variant in runs.items():
            rate = statistics.median(run.rate for run in of_variant)
            report.value(f"{kind}_tokens_per_second_{variant}", rate)
            warm_up = max(run.warm_up for run in of_variant)
            report.value(f"{kind}_warm_up_seconds_{variant}", warm_up)
        pairs = zip(runs["ours"], runs["padded"], strict=True)
        ratio = statistics.median(our.rate / their.rate for our, their in pairs)
        report.value(f"{kind}_ratio_padded", ratio)
    report.write(args.results)


if __name__ == "__main__":
    main()
