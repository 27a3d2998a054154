"""Processes that share a step, or a model, compute what one does."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from safetensors.torch import load_file
from transformers import PreTrainedModel

from mamushi.io.files import write_json
from mamushi.lm import device, loading, sharding
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import text_nll
from mamushi.lm.training import finetune
from mamushi.unlearning.relearning import relearn
from tests.support.families import tiny
from tests.support.gradients import step_gradients
from tests.support.models import ADAPTERS, FAMILIES, TRAINING, model, token_set
from tests.support.processes import in_two_processes
from tests.support.training import train
from tests.support.unlearning import weights


def trained_nll(folder: Path, accelerator: Accelerator) -> NDArray[np.float64]:
    """NLL of texts under the model of a folder after two steps of training, opened from its
    files."""
    settings = TRAINING | {"trained_blocks": 1, "learning_rate": 1e-3}
    card = folder / "card.json"
    opened = loading.open_placed(card, [], "bf16", accelerator, partial(freeze, settings=settings))
    finetune(opened, token_set(8), settings, total=2, seed=0, accelerator=accelerator)
    return text_nll(opened, token_set(9), 20, accelerator).nll


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
    curve = relearn(
        *(language_model, token_set(4), token_set(8), settings),
        seed=0,
        accelerator=device.accelerator("fp32"),
        batch_tokens=20,
    ).curve
    return [*curve["ppl_forget"], *curve["ppl_retain"]]


def spoken(language_model: PreTrainedModel) -> list[int]:
    """Four tokens, greedily."""
    given = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    ids = torch.tensor([[1, 2, 3]])
    passes = partial(language_model.generate, ids, attention_mask=torch.ones_like(ids), **given)
    found: list[int] = sharding.call_gathered(language_model, passes)[0].tolist()
    return found


GRADIENTS = """
import sys, torch
from safetensors.torch import save_file
from mamushi.lm import device
from tests.support.gradients import step_gradients
from tests.support.models import FAMILIES, token_set

accelerator = device.accelerator("fp32")
assert accelerator.num_processes == int(sys.argv[2])
for family in FAMILIES:
    for micro in (3, 32):
        # An odd number of texts: some process makes a pass with fewer, or with none.
        total, found = step_gradients(family, micro, accelerator, token_set(31))
        if accelerator.is_main_process:
            save_file(found | {"loss": torch.tensor([total])}, f"{sys.argv[1]}-{family}-{micro}")
"""
"""Leaves the gradients of a step of each family, in fp64, in files."""


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_have_the_loss_and_gradients_of_one(processes: int, tmp_path: Path) -> None:
    given = (tmp_path / "found", str(processes))
    in_two_processes(tmp_path, GRADIENTS, *given, count=processes)
    for family in FAMILIES:
        total, expected = step_gradients(family, 32, device.accelerator("fp32"), token_set(31))
        for micro in (3, 32):
            found = load_file(tmp_path / f"found-{family}-{micro}")
            # A sum of losses in fp32, of gradients in fp64.
            assert float(found.pop("loss")) == pytest.approx(total, rel=1e-6)
            assert found.keys() == expected.keys()
            for name, gradient in expected.items():
                torch.testing.assert_close(found[name], gradient, rtol=1e-10, atol=1e-12)


FROM_FILES = """
import sys
from pathlib import Path
import numpy as np
from mamushi.lm import device
from tests.unit.lm.test_sharding import trained_nll

folder = Path(sys.argv[1])
accelerator = device.accelerator("bf16")
for family in ("gpt2", "qwen2"):
    nll = trained_nll(folder / family, accelerator)
    if accelerator.is_main_process:
        np.save(folder / f"{family}.npy", nll)
"""
"""Two processes open models, each its rows of the files, train them and measure."""


def test_two_processes_open_a_tied_model_with_layer_norms_as_one(tmp_path: Path) -> None:
    for family in ("gpt2", "qwen2"):
        tiny(family).save_pretrained(tmp_path / family)
        card = {"source": ".", "revision": None, "digests": {}}
        write_json(tmp_path / family / "card.json", card)
    in_two_processes(tmp_path, FROM_FILES, tmp_path)
    for family in ("gpt2", "qwen2"):
        alone = trained_nll(tmp_path / family, device.accelerator("bf16"))
        np.testing.assert_allclose(np.load(tmp_path / f"{family}.npy"), alone, rtol=5e-3, atol=5e-3)


STOPPED = """
import signal, sys, time
from pathlib import Path
from mamushi.lm import storage, training
from mamushi.running.interruption import Stopped
from tests.support.models import model, token_set
from tests.support.training import train

state, write, gradient = Path(sys.argv[1]), storage.save_file, training.gradient

def slowly(*args, **options):
    time.sleep(2)
    write(*args, **options)

def warned(*args):
    training.gradient = gradient
    signal.raise_signal(signal.SIGTERM)
    return gradient(*args)

storage.save_file, training.gradient = slowly, warned
try:
    train(model("llama"), token_set(), state, "a", 40)
    raise AssertionError("was not stopped")
except Stopped:
    assert state.exists()
"""
"""A training that is told to stop in both processes, and whose state takes a while to write."""


@pytest.mark.slow
def test_no_process_ends_before_the_state_is_written(tmp_path: Path) -> None:
    """The first one to end would end the one that writes."""
    in_two_processes(tmp_path, STOPPED, tmp_path / "state")


TRAININGS = """
import sys
from pathlib import Path
import numpy as np
from accelerate import PartialState
from safetensors.torch import save_file
from mamushi.lm import storage
from tests.support.models import model, token_set
from tests.support.training import train
from tests.support.unlearning import weights
from tests.unit.lm.test_sharding import halves, relearned, spoken

folder = Path(sys.argv[1])
how = {"learning_rate": 1e-3, "gradient_clip": 0.5}
train(model("llama"), token_set(), folder / "two.state", "a", 10, **how)
trained, log = train(model("llama"), token_set(), folder / "one.state", "a", 14, **how)
assert log["step"] == list(range(1, 15))
storage.save_trained(folder / "trained", trained, {})
whole = weights(trained)
losses = halves()
curve, said = relearned(trained), spoken(trained)
if PartialState().is_main_process:
    save_file(whole, folder / "whole")
    np.savez(folder / "more", curve=curve, said=said, **losses)
"""
"""Two processes train, resume what one began, relearn and speak."""


@pytest.mark.slow
def test_two_processes_train_resume_and_relearn_as_one(tmp_path: Path) -> None:
    def trained(state: str | None, total: int) -> tuple[PreTrainedModel, dict[str, list[float]]]:
        path = None if state is None else tmp_path / state
        how = {"learning_rate": 1e-3, "gradient_clip": 0.5}
        return train(model("llama"), token_set(), path, "a", total, **how)

    trained("one.state", 10)
    in_two_processes(tmp_path, TRAININGS, tmp_path)
    alone, expected = trained(None, 14)
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
