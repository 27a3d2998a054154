"""Processes that share a step, or a model, compute what one does."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from transformers import PreTrainedModel

from mamushi.lm import device, sharding
from mamushi_extras.left.relearning import relearn
from tests.support.gradients import step_gradients
from tests.support.models import ADAPTERS, FAMILIES, model, token_set
from tests.support.processes import in_two_processes
from tests.support.training import train
from tests.support.unlearning import weights

HOW = {"learning_rate": 1e-3, "gradient_clip": 0.5}


def halves() -> dict[str, list[float]]:
    """Losses in bf16, where frozen and trained tensors of one unit differ in their dtype."""
    _, lora = train(
        *(model("llama"), token_set()), total=3, precision="bf16", method="lora", lora=ADAPTERS
    )
    _, last = train(model("gemma2"), token_set(), total=3, precision="bf16")
    return {"lora": lora["loss"], "partial": last["loss"]}


def relearned(language_model: PreTrainedModel) -> list[float]:
    """Perplexities while it is tuned on a few texts, by each process for itself."""
    settings = {"learning_rate": 1e-3, "batch_size": 2, "steps": [1, 3]}
    curve, _ = relearn(
        *(language_model, token_set(4), token_set(8), settings),
        seed=0,
        accelerator=device.accelerator("fp32"),
        batch_tokens=20,
    )
    return [*curve["ppl_forget"], *curve["ppl_retain"]]


def spoken(language_model: PreTrainedModel) -> list[int]:
    """Four tokens, greedily."""
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    ids = torch.tensor([[1, 2, 3]])
    passes = partial(language_model.generate, ids, attention_mask=torch.ones_like(ids), **options)
    said: NDArray[np.int64] = sharding.call_gathered(language_model, passes)
    return said[0].tolist()


GRADIENTS = """
import sys, torch
from safetensors.torch import save_file
from mamushi.lm import device
from tests.support.gradients import step_gradients
from tests.support.models import FAMILIES, token_set

accelerator = device.accelerator("fp32")
assert accelerator.num_processes == 2
for family in FAMILIES:
    for micro in (3, 32):
        # An odd number of texts: some process makes a pass with fewer, or with none.
        total, gradients = step_gradients(family, micro, accelerator, token_set(31))
        if accelerator.is_main_process:
            stored = gradients | {"loss": torch.tensor([total])}
            save_file(stored, f"{sys.argv[1]}-{family}-{micro}")
"""
"""Leaves the gradients of a step of each family, in fp64, in files."""


def test_processes_have_the_loss_and_gradients_of_one(tmp_path: Path) -> None:
    in_two_processes(tmp_path, GRADIENTS, tmp_path / "of")
    for family in FAMILIES:
        total, expected = step_gradients(family, 32, device.accelerator("fp32"), token_set(31))
        for micro in (3, 32):
            gradients = load_file(tmp_path / f"of-{family}-{micro}")
            # A sum of losses in fp32, of gradients in fp64.
            assert float(gradients.pop("loss")) == pytest.approx(total, rel=1e-6)
            assert gradients.keys() == expected.keys()
            for name, gradient in expected.items():
                torch.testing.assert_close(gradients[name], gradient, rtol=1e-10, atol=1e-12)


TRAININGS = """
import signal, sys
from pathlib import Path
import numpy as np
from accelerate import PartialState
from safetensors.torch import save_file
from mamushi.lm import storage, training
from mamushi.running.interruption import Stopped
from tests.support.models import model, token_set
from tests.support.training import train
from tests.support.unlearning import weights
from tests.unit.lm.test_sharding import HOW, halves, relearned, spoken

folder, gradient = Path(sys.argv[1]), training.gradient

def warned(*args):
    training.gradient = gradient
    signal.raise_signal(signal.SIGTERM)
    return gradient(*args)

training.gradient = warned
try:
    train(model("llama"), token_set(), folder / "two.state", "a", 40, **HOW)
    raise AssertionError("was not stopped")
except Stopped:
    assert (folder / "two.state").exists()
trained, log = train(model("llama"), token_set(), folder / "one.state", "a", 14, **HOW)
assert log["step"] == list(range(1, 15))
storage.save_trained(folder / "trained", trained, {})
whole = weights(trained)
losses = halves()
curve, said = relearned(trained), spoken(trained)
if PartialState().is_main_process:
    save_file(whole, folder / "whole")
    np.savez(folder / "more", curve=curve, said=said, **losses)
"""
"""Two processes train and are told to stop, resume what one began, relearn and speak."""


@pytest.mark.slow
def test_two_processes_train_resume_and_relearn_as_one(tmp_path: Path) -> None:
    def trained(state: str, total: int) -> tuple[PreTrainedModel, dict[str, list[float]]]:
        return train(model("llama"), token_set(), tmp_path / state, "a", total, **HOW)

    trained("one.state", 10)
    in_two_processes(tmp_path, TRAININGS, tmp_path)
    alone, expected = trained("none.state", 14)
    resumed, log = trained("two.state", 14)
    assert log["step"] == expected["step"]
    np.testing.assert_allclose(log["loss"], expected["loss"], rtol=1e-4)
    np.testing.assert_allclose(log["gradient_norm"], expected["gradient_norm"], rtol=1e-3)
    cut, stored = load_file(tmp_path / "whole"), load_file(tmp_path / "trained")
    for name, value in weights(alone).items():
        for other in (weights(resumed)[name], cut[name], stored.get(name, value)):
            torch.testing.assert_close(other, value, rtol=1e-3, atol=2e-4)
    assert stored.keys() == {name for name, p in alone.named_parameters() if p.requires_grad}

    more = np.load(tmp_path / "more.npz")
    for name, losses in halves().items():
        np.testing.assert_allclose(more[name], losses, rtol=2e-2)
    np.testing.assert_allclose(more["curve"], relearned(alone), rtol=1e-2)
    assert len(more["said"]) == 7
