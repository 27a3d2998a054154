"""The state of a fine-tune in one safetensors file: whole or absent, and free of pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from mamushi.artifacts.files import atomic
from mamushi.lm.loading import writing_safetensors

MOMENTS = ("exp_avg", "exp_avg_sq")


def save(
    path: Path,
    fingerprint: str,
    trained: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    log: Mapping[str, list[float]],
) -> None:
    """Write trained parameters, Adam's moments, the random state and the log of the steps so far.

    ``fingerprint`` names everything that the run depends on; ``restore`` compares it.
    """
    tensors: dict[str, torch.Tensor] = {"random": torch.get_rng_state()}
    for name, parameter in trained.items():
        tensors[f"parameter.{name}"] = parameter.detach()
        for moment in MOMENTS:
            tensors[f"{moment}.{name}"] = optimizer.state[parameter][moment]
    for name, column in log.items():
        tensors[f"log.{name}"] = torch.tensor(column, dtype=torch.float64)
    about = {"mamushi": json.dumps({"fingerprint": fingerprint, "step": len(log["step"])})}
    with atomic(path) as part, writing_safetensors():
        save_file({k: v.contiguous().cpu() for k, v in tensors.items()}, part, metadata=about)


def restore(
    path: Path,
    fingerprint: str,
    trained: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    log: dict[str, list[float]],
) -> int:
    """Load what ``save`` wrote into parameters, optimizer and log; return the number of steps done.

    A file of another run (other settings, other data) or a damaged one is passed over, and the run
    starts from its beginning: a checkpoint saves time and is never a source of truth.
    """
    # A killed save of another host, which no one else will sweep; this path has one writer.
    for part in path.parent.glob(f".{path.name}.*.part"):
        part.unlink(missing_ok=True)
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {}).get("mamushi", "{}"))
            if about.get("fingerprint") != fingerprint:
                return 0
            with torch.no_grad():
                for name, parameter in trained.items():
                    parameter.copy_(file.get_tensor(f"parameter.{name}"))
                    moments = {m: file.get_tensor(f"{m}.{name}") for m in MOMENTS}
                    optimizer.state[parameter] = {
                        "step": torch.tensor(float(about["step"]), device=parameter.device),
                        **{m: value.to(parameter.device) for m, value in moments.items()},
                    }
            for name in log:
                log[name] = file.get_tensor(f"log.{name}").tolist()
            torch.set_rng_state(file.get_tensor("random"))
            return int(about["step"])
    except (FileNotFoundError, SafetensorError):
        return 0
