"""Five minutes on a GPU of one's own: are our kernels right there, and how fast is a fine-tune?

    make gpu-check

Parity: loss and gradients of 32 texts that share a row, against the same texts padded and read by
transformers' own attention, for two blocks of each family at full width, in fp32 and in bf16;
`*_parity_*` are relative differences (of gradients, of the norm over all). Where one is too large,
nothing else is done, and the exit status is 1.

Speed: the fine-tune of `benchmarks/finetune.py` for each family at full size with random weights:
the Trainer padded and flattened (with flash attention 2 where it is installed), and ours;
what five minutes have no room for is left out. All of it goes to benchmarks/results.
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from benchmarks.finetune import VARIANTS, measure
from benchmarks.texts import FULL, TRAINING, drawn, operations_per_token
from mamushi.errors import UserError
from mamushi.lm import loading
from mamushi.lm.batches import batch_of
from mamushi.lm.loss import TokenLoss
from mamushi.lm.parameters import freeze
from studies.lib.report import Report

SECONDS = 300.0
STEPS, WARM_UP = 25, 5
LOOSE = {"fp32": {"loss": 1e-5, "gradient": 1e-3}, "bf16": {"loss": 5e-3, "gradient": 5e-2}}
"""Largest relative differences. In bf16 a product has 8 bits, and sums have another order; these
bounds are set by what rounding may do, and have been tried on a CPU alone."""


def model_of(config: PreTrainedConfig, device: torch.device, precision: str) -> PreTrainedModel:
    """A model with random weights, placed as for a fine-tune."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    with device:
        model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    blocks = {"trained_blocks": min(3, config.num_hidden_layers)}
    freeze(model, TRAINING.model_copy(update=blocks))
    return loading.place_model(model, precision, device)


def parity(config: PreTrainedConfig, device: torch.device, precision: str) -> dict[str, float]:
    """Relative differences of ``loss`` and ``gradient`` of packed texts against padded ones."""
    short = copy.deepcopy(config)
    short.num_hidden_layers = min(2, config.num_hidden_layers)
    if getattr(short, "layer_types", None):
        short.layer_types = short.layer_types[: short.num_hidden_layers]
    model = model_of(short, device, precision)
    texts = drawn("posts", 32, config.vocab_size)
    every = (texts, np.arange(len(texts)), device)
    trained = [p for p in model.parameters() if p.requires_grad]

    def packed() -> torch.Tensor:
        loss: torch.Tensor = TokenLoss(model)(batch_of(*every, shared=True))
        return loss

    def padded() -> torch.Tensor:
        batch = batch_of(*every, shared=False)
        assert batch.mask is not None
        logits = model(input_ids=batch.ids, attention_mask=batch.mask).logits
        targets = batch.ids.masked_fill(batch.mask == 0, -100)[:, 1:].flatten()
        rows = logits[:, :-1].flatten(0, 1).float()
        return torch.nn.functional.cross_entropy(rows, targets, reduction="sum")

    def gradients(loss_of: Callable[[], torch.Tensor]) -> tuple[float, list[torch.Tensor]]:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of()
        partial = torch.autograd.grad(loss, trained)
        return float(loss.detach()), [part.double() for part in partial]

    mine, theirs = gradients(packed), gradients(padded)
    squares = sum(float((a - b).square().sum()) for a, b in zip(mine[1], theirs[1], strict=True))
    size = sum(float(b.square().sum()) for b in theirs[1])
    loss = abs(mine[0] - theirs[0]) / abs(theirs[0])
    return {"loss": loss, "gradient": (squares / size) ** 0.5}


def check(
    families: Mapping[str, PreTrainedConfig],
    device: torch.device,
    gpu: str,
    *,
    steps: int = STEPS,
    warm_up: int = WARM_UP,
    seconds: float = SECONDS,
    results: Path | None = None,
) -> None:
    """Do it all. Raises ``UserError`` where packed texts differ from padded ones too much."""
    began = time.monotonic()
    report = Report("gpu-check", gpu)
    for family, config in families.items():
        for precision, most in LOOSE.items():
            for quantity, apart in parity(config, device, precision).items():
                report.value(f"{family}_parity_{precision}_{quantity}", apart)
                if not apart <= most[quantity]:
                    raise UserError(
                        f"{family} in {precision}: the {quantity} of packed texts differs from "
                        f"that of padded ones by {apart:.2g}, more than {most[quantity]:g}",
                        do="do not train on this GPU with this PyTorch; please report it",
                    )
    for family, config in families.items():
        if time.monotonic() - began > seconds:
            report.value(f"{family}_left_out", ",".join(VARIANTS))
            continue
        model = model_of(config, device, "bf16")
        texts = drawn("posts", 4000, config.vocab_size)
        for variant in VARIANTS:
            run = measure(variant, model, texts, steps, warm_up, "bf16")
            report.value(f"{family}_tokens_per_second_{variant}", run.rate)
            report.value(f"{family}_warm_up_seconds_{variant}", run.warm_up)
            rate = run.rate * operations_per_token(model) / 1e12
            report.value(f"{family}_tflop_per_second_{variant}", rate)
        del model
        if device.type == "cuda":
            torch.cuda.empty_cache()
    print(report.write(results))


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    if not torch.cuda.is_available():
        print(
            "gpu-check: error: PyTorch finds no GPU with CUDA here; run it on a machine with one",
            file=sys.stderr,
        )
        return 2
    try:
        check(FULL, torch.device("cuda"), torch.cuda.get_device_name())
    except UserError as error:
        print(f"gpu-check: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
