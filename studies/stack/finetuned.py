"""A language model that is fine-tuned to tell the domains apart, on the corpora of `run.py`.

    python -m studies.stack.finetuned results results/base/smollm2/card.json \\
        --archive 20news-bydate.tar.gz

In each of five folds a linear layer on the mean of the last hidden states and SmolLM2's last three
blocks are trained on the other folds: AdamW, batches of 16, three epochs of a rate that falls from
1e-4 to 0 (of the linear layer ten times that). Blocks below are computed once. Of the held-out
logits the AUC, and `stack`'s and `plain`'s less it on the same folds, as in `run.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils.rnn import pad_sequence

from mamushi.lm import device
from mamushi.lm.loading import open_model, open_tokenizer
from mamushi.lm.tokens import encode
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.metrics import auc, auc_difference
from mamushi.selection.pool import Pool, read_pool
from studies.lib.report import Report, arguments
from studies.rankings.run import scores
from studies.stack.further import comments, long_posts, pool_of
from studies.stack.run import CORPORA, PLAIN, sklearn

LENGTH, BLOCKS, BATCH, EPOCHS, RATE = 128, 3, 16, 3, 1e-4
FINETUNED = "finetuned"
Doubles = NDArray[np.float64]


class Classifier(nn.Module):
    """The last blocks of a model and a linear layer on the mean of their states."""

    def __init__(self, base: nn.Module, width: int) -> None:
        super().__init__()
        self.base, self.linear = base, nn.Linear(width, 1)

    def forward(self, states: list[Tensor]) -> Tensor:
        """Return the logits of texts (n,), of which what enters the blocks is given."""
        lengths = torch.tensor([len(state) for state in states])
        inside = torch.arange(int(lengths.max())) < lengths[:, None]
        padded = pad_sequence(states, batch_first=True)
        outputs = self.base(inputs_embeds=padded, attention_mask=inside.long(), use_cache=False)
        last = outputs.last_hidden_state * inside[..., None]
        logits: Tensor = self.linear((last.sum(1) / lengths[:, None]).float())[:, 0]
        return logits


class Model:
    """A model cut into the blocks that stay and those that are trained, and the texts between."""

    def __init__(self, base: Path) -> None:
        self.tokenizer = open_tokenizer(base)
        model = open_model(base).float().base_model
        self.width = int(model.config.hidden_size)
        self.lower, self.upper = model.layers[:-BLOCKS], model.layers[-BLOCKS:]
        self.model, self.norm = model, model.norm
        self.start = {name: value.clone() for name, value in self.upper.state_dict().items()}
        self.of_norm = {name: value.clone() for name, value in self.norm.state_dict().items()}

    @torch.no_grad()
    def states(self, texts: list[str]) -> list[Tensor]:
        """Return what enters the trained blocks, of each text (tokens, width)."""
        self.model.layers, self.model.norm = self.lower, nn.Identity()
        rows = encode(self.tokenizer, texts, LENGTH)
        with torch.autocast("cpu", torch.bfloat16):
            return [
                self.model(torch.tensor([list(row)])).last_hidden_state[0].float() for row in rows
            ]

    def classifier(self) -> Classifier:
        """Return the trained blocks as they start, and a new linear layer."""
        self.model.layers, self.model.norm = self.upper, self.norm
        self.upper.load_state_dict(self.start)
        self.norm.load_state_dict(self.of_norm)
        return Classifier(self.model, self.width)


def batches(rows: NDArray[np.int64], seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the batches of all epochs."""
    rng = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        order = rng.permutation(rows)
        yield from (order[i : i + BATCH] for i in range(0, len(order), BATCH))


def train(model: Model, states: list[Tensor], y: Tensor, rows: NDArray[np.int64]) -> Classifier:
    """Return a classifier that is trained on rows."""
    device.reproducible(0)
    classifier = model.classifier()
    blocks = [*model.upper.parameters(), *model.norm.parameters()]
    groups = [{"params": blocks}, {"params": classifier.linear.parameters(), "lr": 10 * RATE}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    plan = list(batches(rows, 0))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, len(plan))
    for batch in plan:
        with torch.autocast("cpu", torch.bfloat16):
            logits = classifier([states[row] for row in batch])
        binary_cross_entropy_with_logits(logits.float(), y[batch]).backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return classifier


def finetuned(pool: Pool, model: Model) -> Doubles:
    """Return held-out logits of the fine-tuned model (n,)."""
    states = model.states(np.asarray(pool.texts).tolist())
    y = torch.tensor(pool.forget, dtype=torch.float32)
    groups = np.arange(len(y)) if pool.groups is None else pool.groups
    results = np.empty(len(y))
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    for rows, held in folds.split(results, pool.forget, groups):
        classifier = train(model, states, y, rows)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            for i in range(0, len(held), BATCH):
                part = held[i : i + BATCH]
                results[part] = classifier([states[row] for row in part]).float().numpy()
    return results


def pools(root: Path, base: Path, archive: str) -> Iterator[tuple[str, Pool]]:
    """Yield the corpora of `run.py` and `further.py`."""
    for corpus in CORPORA:
        cell = root / "runs" / corpus / "smollm2" / "seed0" / "embeddings.parquet"
        examples = root / "data" / corpus / "examples.parquet"
        yield corpus, read_pool(cell, examples, texts=True)
    yield "comments", pool_of(comments(), base)
    yield "long", pool_of(long_posts(archive), base)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("root", type=Path, help="the folder with the results of the configuration")
    parser.add_argument("base", type=Path, help="the card of the model that is trained")
    parser.add_argument("--archive", required=True, help="20news-bydate.tar.gz")
    args = parser.parse_args()
    one_for_arithmetic()
    report, model = Report(FINETUNED, threads=1), Model(args.base)
    for corpus, pool in pools(args.root, args.base, args.archive):
        start = time.process_time()
        reference = finetuned(pool, model)
        report.value(f"{corpus}_{FINETUNED}_cpu_seconds", time.process_time() - start)
        report.value(f"{corpus}_{FINETUNED}_auc", auc(reference, pool.forget))
        rivals = {
            PLAIN: sklearn(pool, 0, vectors=True),
            "stack": scores(pool, "stack", {}, 0),
        }
        for name, scored in rivals.items():
            report.value(f"{corpus}_{name}_auc", auc(scored, pool.forget))
            less = auc_difference(scored, reference, pool.forget, pool.groups)
            for end, value in zip(("", "_low", "_high"), less, strict=True):
                report.value(f"{corpus}_{name}_less_{FINETUNED}{end}", value)
        report.write(args.results)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
