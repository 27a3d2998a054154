"""Write the comments of Jigsaw that are as short as tweets, in the files of the competition:

python -m studies.influence.short FOLDER results/short
"""

import sys
from pathlib import Path

import pandas as pd

CHARACTERS = 200
FILES = ("train.csv", "test.csv", "test_labels.csv")


def write_short(folder: Path, out: Path) -> None:
    """Write the short comments of ``folder`` and their labels to the folder ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    train, test, labels = (pd.read_csv(folder / name, dtype=str) for name in FILES)
    train, test = (of[of["comment_text"].str.len() <= CHARACTERS] for of in (train, test))
    labels = labels[labels["id"].isin(test["id"])]
    for name, table in zip(FILES, (train, test, labels), strict=True):
        table.to_csv(out / name, index=False)


if __name__ == "__main__":
    write_short(*map(Path, sys.argv[1:]))
