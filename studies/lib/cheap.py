"""Real texts with vectors that cost seconds: the leading components of their tf-idf (Deerwester et
al., 1990)."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from mamushi.config.sections import Data, Limit
from mamushi.data.examples import build_examples
from mamushi.io.tables import FORGET
from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool

LEAST = 3
"""Texts that have a word before it counts."""


def texts_option(parser: argparse.ArgumentParser) -> None:
    """Add what ``corpus`` takes to a command line."""
    parser.add_argument("kind", help="the loader of the dataset: jigsaw, newsgroups or table")
    parser.add_argument("path", type=Path, help="its raw files")
    parser.add_argument("--settings", type=json.loads, default={}, help="of the loader, as JSON")
    parser.add_argument("--width", type=int, default=128, help="components of a vector")


def corpus(args: argparse.Namespace) -> Pool:
    """Return the cleaned texts of a dataset; of a group, such as a thread, one at random, since
    the texts of a group are not independent."""
    settings = {**plugin("dataset", args.kind).defaults, "path": str(args.path), **args.settings}
    raw = load("dataset", args.kind).load(settings, Path("unused"))
    table, _, _ = build_examples(raw, {"inference": 1.0}, vars(Limit()), vars(Data()))
    frame = table.to_pandas().sample(frac=1, random_state=0)
    alone = frame["group"].where(frame["group"].notna(), frame["id"])
    frame = frame[~alone.duplicated()].sort_values("id")
    counted = TfidfVectorizer(sublinear_tf=True, min_df=LEAST).fit_transform(frame["text"])
    vectors = TruncatedSVD(args.width, random_state=0).fit_transform(counted)
    # As large as a language model's, since half precision is coarse near 0.
    vectors = (vectors / vectors.std()).astype(np.float16)
    return Pool(
        frame["id"].to_numpy(dtype=object),
        (frame["domain"] == FORGET).to_numpy(),
        vectors,
        texts=frame["text"].to_numpy(dtype=object),
    )
