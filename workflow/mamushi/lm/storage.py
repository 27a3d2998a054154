"""Tensors in safetensors files: those that were trained, to be put into a model again, and the
state of a training to go on from."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers import PreTrainedModel

from mamushi.config.sections import Lora
from mamushi.errors import UserError
from mamushi.io.files import IS_SECONDARY, atomic, header, trained_metadata
from mamushi.lm import parameters, sharding
from mamushi.registry import plugin

# How safetensors, written in Rust, reports a full disk.
OS_ERROR = re.compile(r"os error (\d+)")
MOMENTS = ("exp_avg", "exp_avg_sq")
Trained = Mapping[str, torch.nn.Parameter]


def save_trained(path: str | Path, model: PreTrainedModel, metadata: Mapping[str, Any]) -> None:
    """Store the tensors that take gradients, in fp32, whole or not at all, with ``metadata``
    (JSON), from the first process; where the model is sharded, all have to call."""
    trained = ((name, p) for name, p in model.named_parameters() if p.requires_grad)
    write(path, gather_tensors(trained, torch.float32), metadata)


def gather_tensors(
    named: Iterable[tuple[str, torch.Tensor]], dtype: torch.dtype | None = None
) -> dict[str, torch.Tensor]:
    """Return whole tensors, on the CPU, in the first process of a job; all have to call."""
    # One at a time: no GPU holds all of them.
    gathered = ((name, sharding.full_tensor(tensor.detach())) for name, tensor in named)
    return {name: t.to("cpu", dtype) for name, t in gathered if not IS_SECONDARY}


def write(
    path: str | Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, Any]
) -> None:
    """Write a safetensors file whole or not at all."""
    with atomic(path) as draft, writing_safetensors():
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, draft, metadata=header(metadata))


@contextmanager
def writing_safetensors() -> Iterator[None]:
    """Turn a system error that safetensors wraps (a full disk, above all) back into ``OSError``."""
    try:
        yield
    except SafetensorError as error:
        if code := OS_ERROR.search(str(error)):
            raise OSError(int(code[1]), str(error)) from error
        raise


def overlay(path: str | Path, model: PreTrainedModel) -> Callable[[PreTrainedModel], None] | None:
    """Put the tensors of a file into ``model``, in fp32, with gradients; of an unlearner that edits
    logits change nothing, and return what does so in the model, once that is on its device.
    Adapters stay beside the weights until ``parameters.merge_adapters``. Raises ``UserError`` where
    the model has no such tensor."""
    settings = trained_metadata(path).get("settings", {})
    if "unlearner" in settings:
        unlearner = plugin("unlearner", settings["kind"])
        if not unlearner.trains:
            return partial(unlearner.code.lay_over, path)
    with safe_open(path, framework="pt") as stored:
        names = sorted(stored.keys())
        if any(map(parameters.is_adapter, names)):
            # Of a fine-tune, or of unlearning, whose own training says nothing of adapters.
            lora = settings.get("lora") or settings["training"]["lora"]
            parameters.add_adapters(model, Lora.model_validate(lora))
        named = dict(model.named_parameters())
        for name in names:
            tensor = stored.get_tensor(name).float()
            if name not in named or tensor.shape != named[name].shape:
                problem = f"{name} is {tuple(tensor.shape)}, and the model has no such tensor"
                raise UserError(problem, where=path)
            named[name].data = tensor
            named[name].requires_grad_(True)
    return None


@dataclass(frozen=True)
class Checkpoint:
    """Where the state of a training is kept, every so many ``seconds``; its ``fingerprint`` names
    all that the run depends on. A job has ``stages._models.checkpoint_of``: CARD.state."""

    path: Path
    fingerprint: str
    seconds: float = 0.0

    def save(
        self, trained: Trained, optimizer: torch.optim.Optimizer, log: Mapping[str, list[Any]]
    ) -> None:
        """Write trained parameters, Adam's moments, the random state and the log, as
        ``save_trained`` does."""

        def named() -> Iterator[tuple[str, torch.Tensor]]:
            for name, parameter in trained.items():
                yield f"parameter.{name}", parameter
                for moment in MOMENTS:
                    state = optimizer.state[parameter].get(moment)
                    # What no gradient has reached has none.
                    value = torch.zeros_like(parameter) if state is None else state
                    yield f"{moment}.{name}", value

        tensors = {"random": torch.get_rng_state(), **gather_tensors(named())}
        write(self.path, tensors, {"fingerprint": self.fingerprint, "log": dict(log)})

    def restore(
        self, trained: Trained, optimizer: torch.optim.Optimizer, log: dict[str, list[Any]]
    ) -> None:
        """Load what ``save`` wrote into parameters, optimizer and log. A file of another run or a
        damaged one is passed over: a checkpoint is never a source of truth."""
        # A killed save of another host, which no one else will sweep; this path has one writer.
        for earlier in self.path.parent.glob(f".{self.path.name}.*.part"):
            earlier.unlink(missing_ok=True)
        with suppress(FileNotFoundError, SafetensorError), safe_open(self.path, "pt") as file:
            metadata = json.loads((file.metadata() or {}).get("mamushi", "{}"))
            if metadata.get("fingerprint") != self.fingerprint:
                return
            steps = float(len(metadata["log"]["step"]))
            for name, parameter in trained.items():
                moments = {moment: torch.zeros_like(parameter) for moment in MOMENTS}
                for key, value in {"parameter": parameter, **moments}.items():
                    sharding.fill_tensor(value, file.get_tensor(f"{key}.{name}"))
                step = torch.tensor(steps, device=parameter.device)
                optimizer.state[parameter] = {"step": step, **moments}
            log.update(metadata["log"])
            torch.set_rng_state(file.get_tensor("random"))
