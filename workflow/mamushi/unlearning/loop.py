"""What all unlearners have in common: the steps that they take over forget and retain texts."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.lm.attention import can_share, to_device
from mamushi.lm.batches import batch_of, examples_of_step, micro_batches
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.perplexity import text_nll
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet, concat, subset
from mamushi.lm.training import ADAMW, Descent, Objective, Step, TrainingLoop, steps
from mamushi.registry import plugin
from mamushi.unlearning.objective import Nll, TextLoss, random_labels, require_predicted
from mamushi.unlearning.saliency import SaliencyMask


@dataclass(frozen=True)
class Outcome:
    """What an unlearner did to the model that it was given."""

    log: dict[str, list[float]]
    """Columns of the artifact ``unlearn_log``, a row per step that was begun."""
    stopped_at: int | None
    """Step, counted from 1, before whose update the forget loss ended the run; None if none did."""
    masked: int | None
    """Trained weights that a saliency mask kept as they were; None without a mask."""

    @property
    def steps(self) -> int:
        """Return the optimizer steps that were taken: the one that a run stopped at was not."""
        return len(self.log["step"]) - (self.stopped_at is not None)


def steps_of(selected: int, all_forget: int, training: Mapping[str, Any]) -> int:
    """Return the number of optimizer steps for ``selected`` of ``all_forget`` forget texts: T =
    floor(epochs * n / batch), at least 1, with a batch of at most the n texts, which are the whole
    forget set at every budget with ``steps: matched``."""
    n = all_forget if training["steps"] == "matched" else selected
    return steps(n, min(int(training["batch_size"]), n), float(training["epochs"]))


@dataclass
class Unlearning:
    """Unlearns ``forget`` while keeping ``retain``, in place, in the weights that take gradients.

    In each step of AdamW, ``batch_size`` forget texts (or all, where there are fewer) go with as
    many retain texts, each domain shuffled anew for every pass over it. An unlearner that stops
    does so before the update at which the mean of the forget loss over the last ``stop_window``
    steps is above its limit. Raises ``UserError`` when there is nothing to forget or to retain.
    """

    model: PreTrainedModel
    forget: TokenSet
    """Of texts with weights, 1 or 0, the tokens of 1 are unlearned."""
    retain: TokenSet
    unlearner: Mapping[str, Any]
    execution: Mapping[str, Any]
    seed: int
    accelerator: Accelerator
    special: frozenset[int] = frozenset()
    """Tokens that random labels do not replace."""
    vocabulary: Collection[int] | None = None
    """The tokens among which random labels are drawn, by default all rows of the head."""
    all_forget: TokenSet | None = None
    """The forget texts with all tokens that could be unlearned. The limit is one of texts: that of
    tokens is higher by as much as their mean NLL at the start is above that of their texts."""

    def __post_init__(self) -> None:
        require_predicted(self.forget, self.retain)
        self.name = str(self.unlearner.get("unlearner", self.unlearner["kind"]))
        self.method = plugin("unlearner", self.unlearner["kind"])
        self.settings, self.training = self.unlearner["settings"], self.unlearner["training"]
        rows = np.arange(self.model.get_output_embeddings().weight.shape[0])
        self.labels = rows if self.vocabulary is None else np.intersect1d(rows, [*self.vocabulary])
        batch, self.size = int(self.training["batch_size"]), int(self.execution["micro_batch_size"])
        self.batch, self.retain_batch = min(batch, len(self.forget)), min(batch, len(self.retain))
        # Streams that are independent of each other, so that both domains shuffle on their own.
        self.retain_seed = int(np.random.SeedSequence([self.seed, 1]).generate_state(1)[0])
        self.shared, self.loss_of = can_share(self.model), TextLoss(self.model)
        self.stopped_at: int | None = None
        # What follows is of the start model: it comes before anything is restored or trained.
        self.limit = self.settings[self.method.stops] if self.method.stops else None
        if self.limit is not None and self.all_forget is not None:
            listed = np.flatnonzero(np.isin(self.all_forget.ids, self.forget.ids))
            whole = subset(self.all_forget, listed)
            if not np.array_equal(whole.counted, self.forget.counted):
                self.limit += self._mean_nll(self.forget) - self._mean_nll(whole)
        self.mask: SaliencyMask | None = None
        if self.method.saliency is not None:
            sparsity = float(self.settings[self.method.saliency])
            how = (self.forget, sparsity, self.size, self.accelerator)
            self.mask = SaliencyMask(self.loss_of, *how)
        self.start_nll = self._text_nll(self.forget) if self.method.start_nll else None

    def run(self, total: int, checkpoint: Checkpoint | None = None) -> Outcome:
        """Take ``total`` steps, by ``TrainingLoop``, to which the ``checkpoint`` goes."""
        # Frozen blocks run without dropout.
        self.model.eval()
        for block in decoder_blocks(self.model):
            block.train(any(p.requires_grad for p in block.parameters()))
        names, mask = ("loss", "forget_loss", "retain_loss"), self.mask
        how: list[Any] = [self.name, self.model, self.loss_of, self.step, names, self.ends]
        how += [mask.mask_gradients, mask.restore] if mask else []
        descent = Descent(self.settings["learning_rate"], **{k: self.training[k] for k in ADAMW})
        columns = TrainingLoop(Objective(*how), descent, total, self.accelerator, checkpoint).run()
        columns["forget_mean"] = [self.mean(columns, s) for s in columns["step"]]
        return Outcome(columns, self.stopped_at, mask.masked if mask else None)

    def _text_nll(self, texts: TokenSet) -> NDArray[np.float64]:
        batch_tokens = int(self.execution["batch_tokens"])
        return text_nll(self.model, texts, batch_tokens, self.accelerator).nll

    def _mean_nll(self, texts: TokenSet) -> float:
        return float(self._text_nll(texts).sum() / int(texts.counted.sum()))

    def mean(self, log: Mapping[str, list[float]], step: int) -> float:
        """Average the forget loss over the window that ends with ``step``, counted from 1."""
        window = log["forget_loss"][max(0, step - int(self.training["stop_window"])) : step]
        return sum(window) / len(window)

    def ends(self, log: Mapping[str, list[float]]) -> bool:
        """Return whether the forget loss is above its limit, before the last step's update."""
        step = len(log["step"])
        if self.limit is None or (mean := self.mean(log, step)) <= self.limit:
            return False
        self.stopped_at = step
        if self.accelerator.is_main_process:
            words = f"at step {step}, before its update: the mean forget loss is {mean:.3f}"
            print(f"{self.name}: stopped {words}", file=sys.stderr, flush=True)
        return True

    def step(self, number: int) -> Step:
        """Return the step of this number, from 0: of texts of both domains, forget texts first."""
        rows = examples_of_step(number, len(self.forget), self.batch, self.seed)
        of_retain = (len(self.retain), self.retain_batch, self.retain_seed)
        retain = subset(self.retain, examples_of_step(number, *of_retain))
        texts = concat([subset(self.forget, rows), retain])
        labels = replace(texts, tokens=texts.tokens.copy())
        # By the text's place in the step and not by who computes it, so that neither micro-batches
        # nor processes nor a restart change them.
        for place in range(len(rows)) if self.method.random_labels else ():
            how = (self.labels, self.special, [self.seed, number, place])
            labels[place][:] = random_labels(texts[place], *how)
        starts = None if self.start_nll is None else self.start_nll[rows]
        predicted = texts.counted
        by_domain = np.split(predicted, [len(rows)])
        sizes = [(int(counts.sum()), int((counts > 0).sum())) for counts in by_domain]

        def losses(places: NDArray[np.int64], module: nn.Module) -> list[Tensor]:
            """Compute the losses by one forward pass over texts of both domains."""
            device = self.accelerator.device
            # A process without a text runs the model all the same, on one that does not count.
            read = places if len(places) else np.zeros(1, np.int64)
            batch = batch_of(texts, read, device, shared=self.shared, labels=labels)
            sums = module(batch)[: len(places)]
            counts = to_device(predicted[places].astype(np.float32), device)
            first = int((places < len(rows)).sum())
            before = None
            if starts is not None:
                before = to_device(starts[places[:first]], device).to(sums.dtype)
            of_forget = Nll(sums[:first], counts[:first], *sizes[0], before)
            of_retain = Nll(sums[first:], counts[first:], *sizes[1])
            loss = self.method.code.loss(of_forget, of_retain, self.settings)
            return [loss, of_forget.mean(), of_retain.mean()]

        pieces = micro_batches(np.flatnonzero(predicted > 0), self.size, self.accelerator)
        epoch = (number + 1) * self.batch / len(self.forget)
        shares = [partial(losses, piece) for piece in pieces]
        return Step(shares, sizes[0][0] + sizes[1][0], epoch)
