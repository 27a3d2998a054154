"""The NLL of every token under models that are trained for it: how much better one that has read
forget texts foresees a token than its *twin*, from which they were withheld. Score of a token:

    s = -log p_twin(token) + log p_mixed(token)

The two start from the same weights and read the same retain texts in the same steps. Neither has
seen the text that it scores: it is of another section, or of the fold that both were not shown.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from mamushi.config.sections import Execution, Training
from mamushi.errors import UserError
from mamushi.io.domains import FORGET
from mamushi.io.files import atomic, header, trained_metadata
from mamushi.lm import device
from mamushi.lm.loading import open_placed
from mamushi.lm.parameters import freeze
from mamushi.lm.perplexity import token_nll
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet, subset
from mamushi.lm.training import minimize_nll
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.folds import stratified_folds
from mamushi_extras.tokens.masks import TokenPool


def require_finite(nll: Doubles, name: str) -> Doubles:
    """Return the NLL (predicted,) under a model. Raises ``UserError`` if one is not finite."""
    if not np.isfinite(nll).all():
        problem = f"the NLL of a token under the model {name} is not finite: it has diverged"
        raise UserError(problem, do="lower training.learning_rate or train in fp32")
    return nll


@dataclass(frozen=True)
class Trainings:
    """Trains models from the one of a ``card``, by the settings of a training. Beside the
    ``checkpoint`` lies the NLL of the tokens under each that is done."""

    card: Path
    training: Training
    execution: Execution
    seed: int
    checkpoint: Checkpoint

    def nll(self, name: str, texts: TokenSet, learned: Mask, scored: TokenSet) -> Doubles:
        """Return the NLL in nats of the predicted tokens of ``scored``, (predicted,), under a model
        that is trained on those of the ``texts`` that are ``learned`` (texts,), each in the step in
        which a training on all would read it. Raises ``UserError`` as ``minimize_nll``, and as
        ``require_finite``."""
        training, path = self.training, self.checkpoint.path.with_suffix(f".{name}")
        with suppress(UserError):
            if trained_metadata(path)["fingerprint"] == self.checkpoint.fingerprint:
                return load_file(path)["nll"]
        device.seed_torch(self.seed)
        accelerator = device.accelerator(training.precision)
        model = open_placed(self.card, [], accelerator, partial(freeze, training=training))
        checkpoint = replace(self.checkpoint, path=path.with_suffix(f".{name}-state"))
        minimize_nll(
            model,
            subset(texts, np.flatnonzero(learned)),
            training,
            micro_batch_size=self.execution.micro_batch_size,
            examples=len(texts),
            seed=self.seed,
            accelerator=accelerator,
            name=f"cross-entropy, {name}",
            checkpoint=checkpoint,
            remaining=learned,
        )
        batch_tokens = self.execution.batch_tokens
        nll = require_finite(token_nll(model, scored, batch_tokens, accelerator), name)
        with atomic(path) as draft:
            metadata = header({"fingerprint": self.checkpoint.fingerprint})
            save_file({"nll": nll}, draft, metadata=metadata)
        accelerator.wait_for_everyone()
        checkpoint.path.unlink(missing_ok=True)
        return nll

    def cross_fit(self, pool: TokenPool, folds: int) -> tuple[Doubles, NDArray[np.int16]]:
        """Return the score of every predicted token of the pool, (predicted,), and the fold of each
        text, (texts,): of both domains, a group in one. Each fold has two models of its own, one
        that is trained on all texts of the other folds, and its twin, on their retain texts alone.
        So neither has read any text that it scores. If folds divided forget texts alone, both would
        know each retain text, and differ on it by less than on others of its domain. Raises
        ``UserError`` as ``nll`` and ``stratified_folds``."""
        texts = pool.texts
        fold = stratified_folds(texts.domains == FORGET, folds, self.seed, pool.groups)
        scores = np.zeros(int(texts.counted.sum()))
        for number in range(folds):
            inside, others = (
                subset(texts, np.flatnonzero(rows)) for rows in (fold == number, fold != number)
            )
            of_twin = others.domains != FORGET
            twin = self.nll(f"twin{number}", others, of_twin, inside)
            mixed = self.nll(f"mixed{number}", others, np.ones_like(of_twin), inside)
            scores[np.repeat(fold == number, texts.counted)] = twin - mixed
        return scores, fold
