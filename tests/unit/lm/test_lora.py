"""Low-rank adapters and training of all parameters, by the engine that trains the last blocks."""

import pytest
import torch
from torch.nn import functional
from transformers import PreTrainedModel

from mamushi.lm import device
from mamushi.lm.batches import batch_of, examples_of_step
from mamushi.lm.loss import TokenLoss
from mamushi.lm.parameters import freeze
from mamushi.lm.training import mean_nll_objective
from tests.support.models import ADAPTERS, FAMILIES, TRAINING, model, token_set, training_of


def with_adapters(family: str, **changes: object) -> PreTrainedModel:
    found = model(family)
    freeze(found, training_of({"method": "lora", "lora": ADAPTERS | changes}))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients_are_those_of_peft_on_a_padded_batch(family: str) -> None:
    peft = pytest.importorskip("peft")
    ours, texts = with_adapters(family), token_set()
    theirs = peft.get_peft_model(
        model(family),
        peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    generator = torch.Generator().manual_seed(1)
    adapters = {f"base_model.model.{n}": p for n, p in ours.named_parameters() if p.requires_grad}
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if parameter.requires_grad:
                # B too, since the gradient of A is 0 as long as B is.
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
                adapters.pop(name).copy_(parameter)
    assert not adapters

    how = training_of(TRAINING), 4, 1, device.accelerator("fp32")
    step = mean_nll_objective(ours, texts, *how).step(0)
    found = step.shares[0]
    rows = examples_of_step(0, len(texts), 4, seed=1)
    batch = batch_of(texts, rows, torch.device("cpu"), shared=False)
    ids, mask = batch.ids, batch.mask
    assert mask is not None
    logits = theirs(input_ids=ids, attention_mask=mask).logits[:, :-1]
    labels = ids[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
    expected = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    expected.backward()

    (loss,) = found(TokenLoss(ours))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    gradients = {f"base_model.model.{n}": p.grad for n, p in ours.named_parameters()}
    for name, parameter in theirs.named_parameters():
        if parameter.grad is None:
            assert gradients[name] is None
        else:
            torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-3, atol=1e-6)
