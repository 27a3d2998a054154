"""What is left of the domain in models of which tokens were masked, or texts removed.

    python -m studies.tokens.masks results jigsaw smollm2_frozen --seeds 1 2 3

Of a run that has the models of beta 0 and gold, the spans of ``token_unigram`` and the list of
``stack``. Trained in beta 0's steps and order: ``mask`` leaves the tokens of the spans out of the
loss, ``remove`` the texts of the list.

Each, and both ends, is asked: held-out NLL, as a share of the gap from beta 0 to gold; the same
after fine-tuning on 16 of the forget or retain texts; membership, the AUC by which the loss tells
the ranked forget texts from held-out ones; and generations after the first tokens of held-out
forget texts, the mean log ratio of their tokens by counts of the contamination section, between
that of beta 0's and of gold's. Reported are means over seeds with 95% t intervals.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.io import schemas
from mamushi.io.tables import EVALUATION, FORGET, RETAIN, read_table
from mamushi.lm import loading, tokens
from mamushi.lm.generate import end_tokens, generate
from mamushi.lm.loading import open_model, open_tokenizer
from mamushi.lm.perplexity import text_nll
from mamushi.lm.storage import overlay
from mamushi.lm.tokens import TokenSet, subset
from mamushi.registry import plugin
from mamushi.running.machine import limit_threads
from mamushi.running.progress import Progress
from mamushi_extras.effects.contrasts import interval
from mamushi_extras.evidence.unigram import log_ratio, token_counts, vocabulary_size
from mamushi_extras.left.relearning import choose_texts, relearn
from studies.lib.cells import EXECUTION, Cell, arguments, tuned
from studies.lib.report import Report

Doubles = NDArray[np.float64]
Row = dict[str, float | str]

ENDS = ("beta0", "gold")
KINDS = ("mask", "remove")
RELEARNING = {"examples": 16, "steps": [16], "batch_size": 8, "learning_rate": 1e-4}
PROMPTS, PROMPT, NEW = 48, 8, 24
"""Generations: texts, tokens of each that are given and that are drawn."""
EVERY = 3
"""Of so many held-out texts one is read after relearning."""
QUESTIONS = ("forget", "relearn_forget_16", "relearn_retain_16", "said")
"""What is reported as a share of the way from beta 0 to gold."""


def texts_of(cell: Cell, kind: str, beta: str) -> TokenSet:
    """The ranked texts as a kind trains on them; a text without any weight is left out."""
    if kind == "mask":
        path = cell.folder / "spans" / "token_unigram" / f"beta{beta}.parquet"
        return tokens.mask_spans(cell.ranked, read_table(path, schemas.SPANS).to_pylist())
    path = cell.folder / "removals" / "stack" / f"beta{beta}.parquet"
    listed = set(read_table(path, schemas.REMOVALS)["id"].to_pylist())
    weights = np.ones(len(cell.ranked.tokens), np.float32)
    weights[np.repeat([name in listed for name in cell.ranked.ids], cell.ranked.lengths)] = 0
    return replace(cell.ranked, weights=weights)


def model_of(cell: Cell, kind: str, beta: str, accelerator: Accelerator) -> PreTrainedModel:
    """The model of an end, or trained with ``texts_of`` a kind in the steps of beta 0."""
    if kind in ENDS:
        trained = cell.folder / "arms" / kind / "trained.safetensors"
        model = open_model(cell.base)
        overlay(trained, model)
        return loading.place_model(model, cell.training.precision, accelerator.device)
    texts = texts_of(cell, kind, beta)
    return tuned(cell, texts, cell.seed, accelerator, tokens.mass(texts, cell.ranked) > 0)


class Questions:
    """What the models of a cell are asked with: its texts and its counts."""

    def __init__(self, cell: Cell) -> None:
        self.cell, self.held = cell, cell.texts(EVALUATION)
        self.tokenizer = open_tokenizer(cell.base)
        apart = cell.texts("contamination")
        both = token_counts(apart, vocabulary_size(cell.ranked, apart))
        self.ratio = log_ratio(both, plugin("selector", "token_unigram").defaults["prior"])

    def __call__(self, model: PreTrainedModel, accelerator: Accelerator) -> Row:
        model.eval()
        ranked = subset(self.cell.ranked, np.flatnonzero(self.cell.forget))
        answers: Row = {}
        per_token = {}
        for name, texts in (("held", self.held), ("ranked", ranked)):
            nll = text_nll(model, texts, EXECUTION["batch_tokens"], accelerator)
            per_token[name] = nll.nll / np.maximum(nll.tokens, 1)
            if name == "held":
                for domain in (FORGET, RETAIN):
                    inside = texts.domains == domain
                    answers[domain] = float(nll.nll[inside].sum() / nll.tokens[inside].sum())
        unseen = per_token["held"][self.held.domains == FORGET]
        above = per_token["ranked"][:, None] < unseen
        answers["membership"] = float(
            (above + 0.5 * (per_token["ranked"][:, None] == unseen)).mean()
        )
        answers["said"] = self.mean_ratio(model, accelerator)
        return answers | self.relearned(model, accelerator)

    def mean_ratio(self, model: PreTrainedModel, accelerator: Accelerator) -> float:
        """The mean log ratio of the tokens that a model says."""
        forget = np.flatnonzero((self.held.domains == FORGET) & (self.held.lengths > PROMPT))
        begin = np.stack([self.held[place][:PROMPT] for place in forget[:PROMPTS]])
        torch.manual_seed(0)
        drawing = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
        every = generate(model, self.tokenizer, begin, NEW, accelerator, **drawing)
        end = {*end_tokens(model, self.tokenizer)}
        drawn = [token for text in every for token in text if token not in end]
        counted = np.array(drawn)[np.array(drawn) < len(self.ratio)]
        return float(self.ratio[counted].mean())

    def relearned(self, model: PreTrainedModel, accelerator: Accelerator) -> Row:
        """The held-out forget NLL after fine-tuning on a few texts of each domain."""
        cell = self.cell
        answers: Row = {}
        start = [
            (parameter, parameter.detach().clone())
            for parameter in model.parameters()
            if parameter.requires_grad
        ]
        held = subset(self.held, np.arange(0, len(self.held), EVERY))
        for name in (FORGET, RETAIN):
            texts = cell.texts("inference", name)
            few = subset(texts, choose_texts(texts, int(RELEARNING["examples"]), cell.seed))
            curve, _ = relearn(
                model,
                few,
                held,
                RELEARNING,
                seed=cell.seed,
                accelerator=accelerator,
                batch_tokens=EXECUTION["batch_tokens"],
            )
            for step, perplexity in zip(curve["step"], curve["ppl_forget"], strict=True):
                answers[f"relearn_{name}_{step}"] = math.log(perplexity)
            with torch.no_grad():
                for parameter, value in start:
                    parameter.copy_(value)
        return answers


def summary(
    report: Report, rows: list[Row], dataset: str, seeds: list[int], columns: list[str]
) -> None:
    """Report every number of a dataset."""
    by_model = {(row["kind"], int(row["seed"])): row for row in rows}

    def of(kind: str, name: str) -> Doubles:
        return np.array([by_model[kind, seed][name] for seed in seeds], dtype=np.float64)

    def shares(name: str) -> Callable[[str], Doubles]:
        start, gold = of("beta0", name), of("gold", name)
        return lambda kind: (of(kind, name) - start) / (gold - start)

    def shown(name: str, values: Doubles) -> None:
        low, high = interval(values)
        report.value(f"{dataset}_{name}", f"{values.mean():+.3f} [{low:+.3f}, {high:+.3f}]")

    for name in QUESTIONS:
        by = shares(name)
        for kind in KINDS:
            shown(f"{kind}_{name}", by(kind))
    for kind in (*ENDS, *KINDS):
        for name in ("membership", *(["retain"] if kind != "gold" else [])):
            shown(f"{kind}_{name}_less_gold", of(kind, name) - of("gold", name))
        for name in columns:
            report.value(f"{dataset}_{kind}_{name}_mean", float(of(kind, name).mean()))
    for kind in KINDS:
        report.value(f"{dataset}_{kind}_mass_removed", float(of(kind, "mass_removed").mean()))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--budget", default="0.25", help="of the spans and of the list")
    args = parser.parse_args()
    limit_threads()
    report = Report("masks", threads=1)
    rows: list[Row] = []
    with Progress(len(args.seeds) * (len(ENDS) + len(KINDS)), "masks", "model") as progress:
        for seed in args.seeds:
            cell = Cell(args.run, args.dataset, args.model, seed)
            questions = Questions(cell)
            for kind in (*ENDS, *KINDS):
                began, accelerator = time.process_time(), cell.accelerator()
                removed = 0.0
                if kind in KINDS:
                    texts = texts_of(cell, kind, args.budget)
                    left = tokens.mass(texts, cell.ranked)[np.flatnonzero(cell.forget)]
                    removed = 1 - float(left.mean())
                model = model_of(cell, kind, args.budget, accelerator)
                row: Row = {"seed": seed, "kind": kind, "mass_removed": removed}
                row |= questions(model, accelerator)
                rows.append(row | {"cpu_seconds": time.process_time() - began})
                progress.advance()
    summary(report, rows, args.dataset, args.seeds, ["forget", "retain", "membership", "said"])
    report.write(args.results)


if __name__ == "__main__":
    main()
