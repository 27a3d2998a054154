"""Embedding and perplexity: padded as they come, sorted and padded, and ours.

    python -m benchmarks embedding                          SmolLM2-135M on one thread, minutes
    python -m benchmarks embedding --full                   Llama 3.1 8B on a GPU
    python -m benchmarks embedding --full --family gemma2   Gemma 2 2B; or qwen2, Qwen 2.5 7B

`padded` takes texts as they come, each padded to the longest of its batch; `sorted` takes them by
length; `ours` puts them in one row. All have the same budget of tokens in a batch, weights in bf16,
mean-pooling, and the head and loss of Mamushi. Texts are `tweets` of 25 tokens (at most 64) and
`posts` of 61 (at most 128) on average; with `--full`, posts alone. Real tokens per second, by CPU
time where there is no GPU; variants take turns, medians count; `*_ratio_*` is ours over the other.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from benchmarks.texts import KINDS, drawn, make
from mamushi.lm import batches as grouping
from mamushi.lm import device as devices
from mamushi.lm import embed, perplexity
from mamushi.lm.tokens import TokenSet
from studies.lib.report import Report

VARIANTS = ("padded", "sorted", "ours")


@contextmanager
def as_variant(variant: str, longest: int) -> Iterator[None]:
    """Within the block, batches are those of the variant."""

    def as_they_come(
        lengths: NDArray[np.int64], batch_tokens: int, *, shared: bool
    ) -> Iterator[NDArray[np.int64]]:
        size = max(1, batch_tokens // longest)
        for start in range(0, len(lengths), size):
            yield np.arange(start, min(start + size, len(lengths)))

    with ExitStack() as stack:
        if variant != "ours":
            stack.enter_context(mock.patch.object(grouping, "supports", lambda _: False))
        if variant == "padded":
            stack.enter_context(mock.patch.object(grouping, "batches", as_they_come))
        yield


def seconds(work: str, model: PreTrainedModel, texts: TokenSet, budget: int) -> float:
    """Of one pass over the texts."""
    accelerator = devices.accelerator("bf16")
    gpu = model.device.type == "cuda"
    if gpu:
        torch.cuda.synchronize()
    clock = time.perf_counter if gpu else time.process_time
    begin = clock()
    if work == "embed":
        embed.embed(
            model,
            texts,
            pooling="mean",
            layers=[-1],
            skip_first=True,
            batch_tokens=budget,
            accelerator=accelerator,
        )
    else:
        perplexity.text_nll(model, texts, budget, accelerator)
    # Both have fetched their results when they return.
    return clock() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="full size, on a GPU")
    parser.add_argument("--family", choices=("llama", "qwen2", "gemma2"), default="llama")
    parser.add_argument("--batch-tokens", type=int, help="16384 on a GPU, else 2048")
    args = parser.parse_args()
    budget = args.batch_tokens or (16384 if args.full else 2048)
    if args.full and not torch.cuda.is_available():
        parser.error("--full needs a GPU")
    if args.family != "llama" and not args.full:
        parser.error("--family is for --full")
    device = torch.device("cuda" if args.full else "cpu")
    if not args.full:
        torch.set_num_threads(1)
    report = Report(
        "embedding",
        torch.cuda.get_device_name() if args.full else None,
        None if args.full else 1,
    )
    model = make(args.family, args.full, device).requires_grad_(False)
    report.value("family", args.family if args.full else "llama (SmolLM2-135M)")
    report.value("parameters", sum(p.numel() for p in model.parameters()))
    report.value("batch_tokens", budget)
    for kind in ["posts"] if args.full else KINDS:
        longest = KINDS[kind][2]
        count = 8000 if args.full else 4096 // longest
        texts = drawn(kind, count, model.config.vocab_size)
        tokens = int(texts.lengths.sum())
        report.value(f"{kind}_tokens_per_text", float(texts.lengths.mean()))
        for work in ("embed", "perplexity"):
            taken: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
            for _ in range(2 if args.full else 3):
                for variant in VARIANTS:
                    with as_variant(variant, longest):
                        taken[variant].append(seconds(work, model, texts, budget))
            # The first round warms caches up.
            for variant in VARIANTS:
                rate = tokens / statistics.median(taken[variant][1:])
                report.value(f"{kind}_{work}_tokens_per_second_{variant}", rate)
            for variant in VARIANTS[:-1]:
                ratios = [a / b for a, b in zip(taken[variant], taken["ours"], strict=True)]
                report.value(f"{kind}_{work}_ratio_{variant}", statistics.median(ratios[1:]))
            report.value(
                f"{kind}_{work}_seconds_for_80000_texts",
                statistics.median(taken["ours"][1:]) * 80_000 / len(texts),
            )
    report.write()


if __name__ == "__main__":
    main()
