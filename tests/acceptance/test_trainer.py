"""Fine-tuning of SmolLM2 against the Trainer of Hugging Face: the same losses and gradients.

Both train the same parameters, the last block and the embedding that is the head as well, by
AdamW of the same settings, on the same texts in the same order, in fp32. The Trainer pads; here
texts share rows.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    DataCollatorForLanguageModeling,
    PreTrainedModel,
    Trainer,
    TrainingArguments,
)

from mamushi.lm import loading
from mamushi.lm.batches import examples_of_step
from mamushi.lm.tokens import TokenSet
from tests.support.models import TRAINING, training_of
from tests.support.real_texts import made_up, token_set
from tests.support.training import train

pytestmark = pytest.mark.slow

STEPS, BATCH, SEED = 20, 4, 1
SETTINGS: dict[str, Any] = TRAINING | {
    "learning_rate": 5e-5,
    "batch_size": BATCH,
    "micro_batch_size": BATCH,
    "trained_blocks": 1,
}
TUNED = training_of(SETTINGS)
LOSS, NORM = 1e-4, 1e-4
"""Relative to the Trainer's."""


def theirs(model: PreTrainedModel, texts: TokenSet, card: Path, out: Path) -> dict[str, np.ndarray]:
    """Loss and gradient norm of each step of the Trainer's."""
    order = [
        row for step in range(STEPS) for row in examples_of_step(step, len(texts), BATCH, SEED)
    ]
    tokenizer = loading.open_tokenizer(card)
    arguments = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=BATCH,
        max_steps=STEPS,
        learning_rate=TUNED.learning_rate,
        adam_beta1=TUNED.betas[0],
        adam_beta2=TUNED.betas[1],
        adam_epsilon=TUNED.epsilon,
        weight_decay=TUNED.weight_decay,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        train_sampling_strategy="sequential",
        use_cpu=True,
        save_strategy="no",
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=[{"input_ids": texts[row].tolist()} for row in order],
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    trainer.train()
    steps = [row for row in trainer.state.log_history if "grad_norm" in row]
    return {name: np.array([row[name] for row in steps]) for name in ("loss", "grad_norm")}


def test_twenty_steps_are_those_of_the_trainer(smollm2: Path, tmp_path: Path) -> None:
    # Of 3 to 20 words, so that most rows of the Trainer are padded.
    texts = token_set(
        smollm2,
        [" ".join(text.split()[: 3 + place % 18]) for place, text in enumerate(made_up(40)[0])],
    )
    plain = AutoModelForCausalLM.from_pretrained(smollm2.parent, dtype=torch.float32)
    for name, parameter in plain.named_parameters():
        parameter.requires_grad_(name.startswith(("model.layers.29.", "model.embed_tokens.")))
    expected = theirs(plain, texts, smollm2, tmp_path)
    _, log = train(loading.open_model(smollm2), texts, total=STEPS, **SETTINGS)
    np.testing.assert_allclose(log["loss"], expected["loss"], rtol=LOSS)
    # Nothing is clipped, so that the norm is that of the first step and of the last.
    norms = [norm for norm in log["gradient_norm"] if norm is not None]
    np.testing.assert_allclose(norms, expected["grad_norm"][[0, -1]], rtol=NORM)
