"""Each of five newsgroups as the domain of a corpus that nobody labelled, found by examples.

    python -m studies.unlabelled.groups 20news-bydate.tar.gz results/base/smollm2_frozen/card.json

The corpus is all posts of the training part in other groups, and those of the group that are no
examples: about a twentieth. A model without any training here embeds the first 64 tokens of each;
the vectors are kept in ``--vectors`` for the next time. What is reported is that of
``studies/unlabelled/positive.py``.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from mamushi.data.loaders import newsgroups
from mamushi.io.files import atomic
from mamushi.io.tables import FORGET, RETAIN
from mamushi.lm import device, embed
from mamushi.lm.loading import open_model, open_tokenizer
from mamushi.lm.tokens import TokenSet, encode, offsets_of
from mamushi.running.threads import one_for_arithmetic
from studies.lib.report import Report, arguments
from studies.unlabelled.positive import WANTED, Source, components, of_setting

GROUPS = ("rec.autos", "rec.sport.hockey", "sci.space", "talk.politics.guns", "comp.graphics")
SIZES = (50, 100, 300)
LENGTH, SHORTEST, BATCH_TOKENS = 64, 20, 4096
"""Tokens of a post that are read, characters of the shortest one, tokens of a batch."""


def posts(archive: str) -> tuple[list[str], list[str]]:
    """Return texts and groups of the training part; of texts that are equal, the first."""
    raw = newsgroups.load({"path": archive, "forget": list(GROUPS), "group": None}, Path("."))
    of = zip(raw.texts, raw.labels["group"], raw.labels["subset"], strict=True)
    group_of = {text: group for text, group, part in of if part == "train" and len(text) > SHORTEST}
    return [*group_of], [*group_of.values()]


def vectors(texts: list[str], base: Path, length: int = LENGTH) -> np.ndarray:
    """Return the mean-pooled embeddings of the first tokens of texts by the model of a card (n,
    width)."""
    rows = [np.array(row, np.int32) for row in encode(open_tokenizer(base), texts, length)]
    domains = np.full(len(rows), RETAIN, dtype=object)
    domains[:1] = FORGET
    offsets = offsets_of(np.array([len(row) for row in rows]))
    cut = TokenSet(np.arange(len(rows)).astype(str), domains, np.concatenate(rows), offsets)
    device.reproducible(0)
    accelerator = device.accelerator("bf16")
    model = device.place(open_model(base), "bf16", accelerator.device).eval()
    layers = embed.embed(
        model.requires_grad_(False),
        cut,
        pooling="mean",
        layers=[-1],
        skip_first=True,
        batch_tokens=BATCH_TOKENS,
        accelerator=accelerator,
    )
    return layers[0]


def embedder(parser: ArgumentParser, kept: str) -> None:
    """Add what ``read`` takes."""
    parser.add_argument("base", type=Path, help="the card of the model that embeds")
    parser.add_argument("--vectors", type=Path, default=Path(kept))


def read(texts: list[str], args: Namespace) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Return components of the texts, whose vectors are made once, and their words."""
    if not args.vectors.is_file():
        with atomic(args.vectors) as part, part.open("wb") as file:
            np.save(file, vectors(texts, args.base), allow_pickle=False)
    x = components(np.load(args.vectors, allow_pickle=False).astype(np.float64))
    return x, CountVectorizer(min_df=2).fit_transform(texts).tocsr()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("archive")
    embedder(parser, "posts.npy")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--compared", type=int, default=5, help="draws for the other rankings")
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("groups", threads=1)
    texts, groups = posts(args.archive)
    x, words = read(texts, args)
    report.value("posts", len(texts))
    for group in GROUPS:
        source = Source(x, np.array(groups) == group, words)
        for n1 in SIZES:
            # As many of the group as are left.
            here = int(source.forget.sum()) - n1
            a = here / (len(texts) - n1 - WANTED)
            of_setting(report, f"{group}_{n1}", source, n1, a, args)
    report.write(args.results)


if __name__ == "__main__":
    main()
