"""Rankings by what models say of the texts, in place of a classifier on their embeddings.

    python benchmarks/likelihoods.py results newsgroups smollm2 --seed 0

Of a run whose contaminated model and scores of `mamushi` are kept, for the texts that are ranked:

- `memorized`: log p(contaminated) - log p(base) per token;
- `lm_ratio`: log p(forget model) - log p(retain model) per token, of two models tuned on the
  contamination section's forget texts and on its retain texts, as the contaminated one was;
- `less`: cosine of a text's gradient with the mean direction of the held-out forget texts'
  gradients (Xia et al., 2024, without Adam's moments);
- `trak`: the same product in the metric of the ranked texts' gradients (Park et al., 2023), with a
  ridge of their mean eigenvalue.

Gradients are those of the mean NLL with respect to the matrices of the last block, each between two
random projections to 16 dimensions. Per ranking: its AUC; what a logistic regression on it and the
scores of `mamushi`, cross-fitted, has more in AUC than `mamushi` alone, with its 95% interval for
the sample of texts; and the CPU seconds of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from accelerate import Accelerator
from cells import Cell, arguments, tuned
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.io.tables import EVALUATION, FORGET, RETAIN
from mamushi.lm import device
from mamushi.lm.batches import collate
from mamushi.lm.loading import open_model
from mamushi.lm.loss import batch_nll
from mamushi.lm.parameters import decoder_blocks
from mamushi.lm.tokens import TokenSet
from mamushi.running.progress import Progress
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.folds import stratified_folds
from mamushi.selection.linear import logistic
from mamushi.selection.metrics import auc, auc_difference
from report import Report

Doubles = NDArray[np.float64]

PROJECTED = 16


def memorized(cell: Cell) -> dict[str, Doubles]:
    accelerator = cell.accelerator()
    learned = cell.per_token(cell.contaminated(accelerator), accelerator)
    base = device.place(open_model(cell.base), cell.training["precision"], accelerator.device)
    return {"memorized": learned - cell.per_token(base, accelerator)}


def lm_ratio(cell: Cell) -> dict[str, Doubles]:
    found = []
    for domain in (FORGET, RETAIN):
        accelerator = cell.accelerator()
        model = tuned(cell, cell.texts("contamination", domain), cell.seed, accelerator)
        found.append(cell.per_token(model, accelerator))
    return {"lm_ratio": found[0] - found[1]}


def attributed(cell: Cell) -> dict[str, Doubles]:
    accelerator = cell.accelerator()
    model = cell.contaminated(accelerator)
    held_out = gradients(model, cell.texts(EVALUATION, FORGET), accelerator)
    ranked = gradients(model, cell.ranked, accelerator)
    target = unit(held_out).mean(axis=0)
    gram = ranked.T @ ranked
    ridge = np.trace(gram) / len(gram) * np.eye(len(gram))
    return {"less": unit(ranked) @ target, "trak": ranked @ np.linalg.solve(gram + ridge, target)}


def unit(rows: Doubles) -> Doubles:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def gradients(model: PreTrainedModel, texts: TokenSet, accelerator: Accelerator) -> Doubles:
    """Projected gradients (texts, dimensions) of each text's mean NLL; 0 without a prediction."""
    model.eval()
    model.requires_grad_(False)
    draw = torch.Generator().manual_seed(0)
    matrices = [p for p in decoder_blocks(model)[1][-1].parameters() if p.ndim == 2]
    sides = [
        [torch.randn(n, PROJECTED, generator=draw) / PROJECTED**0.5 for n in p.shape]
        for p in matrices
    ]
    rows = np.zeros((len(texts), len(matrices) * PROJECTED**2))
    for p in matrices:
        p.requires_grad_(True)
    with Progress(len(texts), "gradients", "text") as progress:
        for i in np.flatnonzero(texts.lengths > 1):
            with accelerator.autocast():
                loss = batch_nll(model, collate([texts[i]], accelerator.device, shared=False))
            found = torch.autograd.grad(loss.mean(), matrices)
            small = [a.T @ g.float().cpu() @ b for g, (a, b) in zip(found, sides, strict=True)]
            rows[i] = torch.stack(small).flatten().numpy()
            progress.advance(1)
    return rows


def beside(ours: Doubles, other: Doubles, forget: NDArray[np.bool_]) -> Doubles:
    """Cross-fitted logits (n,) of both scores together."""
    x = np.stack([ours, other], axis=1)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    fold = stratified_folds(forget, 5, 0)
    logits = np.empty(len(forget))
    for k in range(5):
        logits[fold == k] = logistic(x[fold != k], forget[fold != k], 1.0)(x[fold == k])
    return logits


@contextmanager
def timed(report: Report, name: str) -> Iterator[None]:
    start = time.process_time()
    yield
    report.value(f"{name}_cpu_seconds", time.process_time() - start)


SCORES: Mapping[str, Callable[[Cell], dict[str, Doubles]]] = {
    "memorized": memorized,
    "lm_ratio": lm_ratio,
    "attributed": attributed,
}


def main() -> None:
    args = arguments(__doc__).parse_args()
    one_for_arithmetic()
    cell = Cell(args.run, args.dataset, args.model, args.seed)
    report = Report("likelihoods", threads=1)
    report.value("forget_texts", int(cell.forget.sum()))
    report.value("retain_texts", int((~cell.forget).sum()))
    ours = cell.scores("mamushi")
    report.value("mamushi_auc", auc(ours, cell.forget))
    for name, score in SCORES.items():
        with timed(report, name):
            found = score(cell)
        for each, scores in found.items():
            report.value(f"{each}_auc", auc(scores, cell.forget))
            gain = auc_difference(beside(ours, scores, cell.forget), ours, cell.forget)
            for end, value in zip(("", "_low", "_high"), gain, strict=True):
                report.value(f"{each}_beside_mamushi{end}", value)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
