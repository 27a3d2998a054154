"""The state of a training in one safetensors file: gathered or absent, and free of pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from mamushi.io.tensors import header
from mamushi.lm import sharding, storage
from mamushi.running import launch

MOMENTS = ("exp_avg", "exp_avg_sq")
Trained = Mapping[str, torch.nn.Parameter]


def save(
    path: Path,
    fingerprint: str,
    trained: Trained,
    optimizer: torch.optim.Optimizer,
    log: Mapping[str, list[Any]],
) -> None:
    """Write trained parameters, Adam's moments, the random state and the log; the ``fingerprint``
    names everything that the run depends on. Where the model is sharded, all processes have to
    call, and the first one writes. Raises ``UserError`` when the disk is full."""
    tensors: dict[str, torch.Tensor] = {"random": torch.get_rng_state()}
    for name, parameter in trained.items():
        # What no gradient has reached has none.
        state = optimizer.state[parameter] or dict.fromkeys(MOMENTS, torch.zeros_like(parameter))
        for key, value in {"parameter": parameter.detach(), **state}.items():
            if key != "step":
                gathered = sharding.full_tensor(value)
                # One at a time: no GPU holds all of them.
                tensors |= {} if launch.is_secondary() else {f"{key}.{name}": gathered.cpu()}
    for name, column in log.items():
        numbers = [math.nan if value is None else value for value in column]
        tensors[f"log.{name}"] = torch.tensor(numbers, dtype=torch.float64)
    about = {"fingerprint": fingerprint, "step": len(log["step"])}
    storage.write(path, tensors, header(about))


def restore(
    path: Path,
    fingerprint: str,
    trained: Trained,
    optimizer: torch.optim.Optimizer,
    log: dict[str, list[Any]],
) -> None:
    """Load what ``save`` wrote into parameters, optimizer and log. A file of another run or a
    damaged one is passed over: a checkpoint is never a source of truth."""
    # A killed save of another host, which no one else will sweep; this path has one writer.
    for earlier in path.parent.glob(f".{path.name}.*.part"):
        earlier.unlink(missing_ok=True)
    try:
        with safe_open(path, "pt") as file:
            metadata = json.loads((file.metadata() or {}).get("mamushi", "{}"))
            if metadata.get("fingerprint") != fingerprint:
                return
            for name, parameter in trained.items():
                moments = {moment: torch.zeros_like(parameter) for moment in MOMENTS}
                for key, value in {"parameter": parameter, **moments}.items():
                    sharding.fill(value, file.get_tensor(f"{key}.{name}"))
                step = torch.tensor(float(metadata["step"]), device=parameter.device)
                optimizer.state[parameter] = {"step": step, **moments}
            for name in log:
                numbers = file.get_tensor(f"log.{name}").tolist()
                log[name] = [None if math.isnan(value) else value for value in numbers]
            torch.set_rng_state(file.get_tensor("random"))
    except (FileNotFoundError, SafetensorError):
        return
