"""Embedding beside other programs: plain transformers and sentence-transformers, at equal pooling.

    python -m studies.real.fetch_smollm2 results/models     SmolLM2-135M, once
    python -m benchmarks embedding_peers                    on one thread, eight minutes
    python -m benchmarks embedding_peers --model FOLDER     another model

From texts to vectors: the time of a tokenizer counts. A vector is the mean of a text's final hidden
states, in fp32 or bf16. `transformers` pads texts to the longest of their batch as they come, and
`transformers_sorted` by their number of tokens. `sentence_transformers` is `encode` of that
program, which sorts by characters; it is measured where it can be imported. `mamushi` puts texts of
2,048 tokens in one row; others have `--batch-size` texts in a batch, by default that of `encode`.

Texts are `tweets` and `posts` as long as those of `embedding`, of words that the tokenizer knows.
The more texts, the less padding is left by sorting: each program gets the batches that it would
make of a corpus of 80,000, a few of them, evenly spaced. `padding_*` is the share of padding in all
of them. `difference_*` is the largest difference from a number of mamushi's vectors for the same
texts, and `scale_*` the largest number of those. `*_per_second_*` are real tokens and texts per CPU
second; programs take turns, medians count. `ratio_*` is mamushi's tokens per second over another's,
`low_*` and `high_*` that of the worst and the best turn.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from benchmarks.texts import KINDS, drawn
from mamushi.errors import UserError
from mamushi.lm import device as devices
from mamushi.lm import embed, folders
from mamushi.lm.dequantize import open_gguf
from mamushi.lm.tokens import TokenSet, encode, offsets_of
from studies.lib.report import Report, arguments

MODEL = Path("results/models/SmolLM2-135M-Instruct.Q4_1.gguf")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
CLOSE = {"fp32": 2e-3, "bf16": 0.02}
"""By how much vectors may differ, as a share of their largest number. Those of mamushi are rounded
to float16, and bf16 has 8 bits."""
CHECKED = 8
"""Of so many texts, the vectors of one are compared."""

Embedder = Callable[[Sequence[str]], np.ndarray]


def by_mamushi(folder: Path, precision: str, budget: int) -> Embedder:
    """Return what embeds texts by this program."""
    model = folders.read_model(folder, dtype=DTYPES[precision]).eval().requires_grad_(False)
    model.config.use_cache = False
    devices.place(model, precision, torch.device("cpu"))
    tokenizer = folders.read_tokenizer(folder)
    accelerator = devices.accelerator(precision)

    def vectors(texts: Sequence[str]) -> np.ndarray:
        rows = [np.array(ids, np.int32) for ids in encode(tokenizer, texts)]
        names = np.array([f"t{place}" for place in range(len(rows))], dtype=object)
        domains = np.full(len(rows), "retain", dtype=object)
        offsets = offsets_of(np.array([len(row) for row in rows]))
        return embed.embed(
            model,
            TokenSet(names, domains, np.concatenate(rows), offsets),
            pooling="mean",
            layers=[-1],
            skip_first=False,
            batch_tokens=budget,
            accelerator=accelerator,
        )[0]

    return vectors


def by_transformers(folder: Path, precision: str, size: int, *, ordered: bool) -> Embedder:
    """Return the loop that one writes around transformers."""
    model = AutoModel.from_pretrained(folder, dtype=DTYPES[precision], use_cache=False).eval()
    tokenizer = with_padding(AutoTokenizer.from_pretrained(folder))

    @torch.inference_mode()
    def vectors(texts: Sequence[str]) -> np.ndarray:
        encoded: Any = tokenizer(list(texts))["input_ids"]
        order = sorted(range(len(texts)), key=lambda row: -len(encoded[row]) if ordered else row)
        result = np.zeros((len(texts), model.config.hidden_size), np.float32)
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            chosen = {"input_ids": [encoded[row] for row in rows]}
            batch = tokenizer.pad(chosen, return_tensors="pt")
            hidden = model(**batch).last_hidden_state.float()
            mask = batch["attention_mask"][:, :, None].float()
            result[rows] = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
        return result

    return vectors


def by_sentence_transformers(folder: Path, precision: str, size: int) -> Embedder:
    """Return what embeds texts by sentence-transformers. Raises ``ImportError`` without it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    # Left alone, a model with a chat template reads each text as a message, with a system prompt.
    text = {"method": "forward", "method_output_name": "last_hidden_state"}
    transformer = Transformer(
        str(folder),
        model_kwargs={"dtype": DTYPES[precision]},
        modality_config={"text": text},
        module_output_name="token_embeddings",
    )
    with_padding(transformer.tokenizer)
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[transformer, pooling], device="cpu")

    def vectors(texts: Sequence[str]) -> np.ndarray:
        return np.float32(model.encode(list(texts), batch_size=size, show_progress_bar=False))

    return vectors


def with_padding(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a tokenizer after it has a token to pad with, on the right."""
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def programs(
    folder: Path, precision: str, size: int, budget: int
) -> Iterator[tuple[str, Embedder]]:
    """Yield what is measured."""
    yield "transformers", by_transformers(folder, precision, size, ordered=False)
    yield "transformers_sorted", by_transformers(folder, precision, size, ordered=True)
    with suppress(ImportError):
        yield "sentence_transformers", by_sentence_transformers(folder, precision, size)
    yield "mamushi", by_mamushi(folder, precision, budget)


def written(kind: str, count: int, tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return texts of words that are one token, the earlier in the vocabulary the more frequent."""
    plain = (tokenizer.decode([token]) for token in range(len(tokenizer)))
    words = [word for word in plain if re.fullmatch(" [A-Za-z]+", word)]
    ranks = drawn(kind, count, len(words))
    return ["".join(words[rank] for rank in ranks[row])[1:] for row in range(count)]


def sampled(
    texts: Sequence[str], tokens: np.ndarray, size: int, batches: int
) -> dict[str, np.ndarray]:
    """Return the rows, batch by batch, of some batches that each program makes of texts."""
    as_they_come, characters = np.arange(len(texts)), np.array([*map(len, texts)])
    orders = {
        "transformers": as_they_come,
        "transformers_sorted": np.argsort(-tokens, kind="stable"),
        "sentence_transformers": np.argsort(-characters, kind="stable"),
        # In one row there is no padding, whatever the texts.
        "mamushi": as_they_come,
    }
    whole = len(texts) // size
    places = ((np.arange(batches) + 0.5) / batches * whole).astype(np.int64)
    starts = (places[:, None] * size + np.arange(size)).ravel()
    return {name: order[starts] for name, order in orders.items()}


def compared(
    report: Report, label: str, texts: dict[str, list[str]], measured: dict[str, Embedder]
) -> None:
    """Report by how much the vectors of programs differ from those of mamushi. Raises ``UserError``
    where it is so much that they cannot be the same."""
    precision = label.rpartition("_")[2]
    for name in [*measured][:-1]:
        chosen = texts[name][::CHECKED]
        vectors, expected = measured[name](chosen), measured["mamushi"](chosen).astype(np.float32)
        difference, scale = float(np.abs(vectors - expected).max()), float(np.abs(expected).max())
        report.value(f"{label}_difference_{name}", difference)
        report.value(f"{label}_scale_{name}", scale)
        if not difference <= CLOSE[precision] * scale:
            problem = f"its vectors differ by {difference:.3g} from mamushi's, of up to {scale:.3g}"
            raise UserError(problem, where=name, do="compare their tokens: one may add a BOS")


def timed(
    report: Report,
    label: str,
    texts: dict[str, list[str]],
    tokens: dict[str, int],
    measured: dict[str, Embedder],
    turns: int,
) -> None:
    """Report how many tokens and texts programs embed in a second."""
    rates: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(turns):
        for name, embedder in measured.items():
            began = time.process_time()
            embedder(texts[name])
            rates[name].append(tokens[name] / (time.process_time() - began))
    for name, of_turns in rates.items():
        rate = statistics.median(of_turns)
        report.value(f"{label}_tokens_per_second_{name}", rate)
        report.value(f"{label}_texts_per_second_{name}", rate * len(texts[name]) / tokens[name])
    for name in [*rates][:-1]:
        pairs = zip(rates["mamushi"], rates[name], strict=True)
        ratios = [a / b for a, b in pairs]
        report.value(f"{label}_ratio_{name}", statistics.median(ratios))
        report.value(f"{label}_low_{name}", min(ratios))
        report.value(f"{label}_high_{name}", max(ratios))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", type=Path, default=MODEL, help="a folder, or a GGUF file")
    parser.add_argument("--texts", type=int, default=80_000, help="in the corpus")
    parser.add_argument("--batches", type=int, default=2, help="of it that are embedded")
    parser.add_argument("--batch-size", type=int, default=32, help="texts in a batch")
    parser.add_argument("--batch-tokens", type=int, default=2048, help="mamushi's")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    report = Report("embedding-peers", threads=1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.model
        if not folder.is_dir():
            folder = Path(temporary)
            model, tokenizer, _ = open_gguf(args.model)
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        measure(report, folder, args)
    print(report.write(args.results))


def measure(report: Report, folder: Path, args: argparse.Namespace) -> None:
    """Measure each kind of texts in each precision."""
    tokenizer = folders.read_tokenizer(folder)
    corpora = {}
    for kind in KINDS:
        texts = written(kind, args.texts, tokenizer)
        lengths = np.array([*map(len, encode(tokenizer, texts))])
        rows = sampled(texts, lengths, args.batch_size, args.batches)
        corpora[kind] = texts, lengths, rows
        report.value(f"{kind}_tokens_per_text", float(lengths.mean()))
        whole = len(texts) // args.batch_size
        for name, order in sampled(texts, lengths, args.batch_size, whole).items():
            of_batches = lengths[order].reshape(whole, args.batch_size)
            share = 1 - of_batches.mean() / of_batches.max(axis=1).mean()
            if name != "mamushi":
                report.value(f"{kind}_padding_{name}", float(share))
    for precision in DTYPES:
        measured = dict(programs(folder, precision, args.batch_size, args.batch_tokens))
        if precision == "fp32" and "sentence_transformers" in measured:
            report.value("sentence_transformers", metadata.version("sentence-transformers"))
        for kind, (texts, lengths, rows) in corpora.items():
            by_name = {name: [texts[row] for row in rows[name]] for name in measured}
            tokens = {name: int(lengths[rows[name]].sum()) for name in measured}
            # It warms caches up as well.
            compared(report, f"{kind}_{precision}", by_name, measured)
            timed(report, f"{kind}_{precision}", by_name, tokens, measured, args.turns)


if __name__ == "__main__":
    main()
