"""Jigsaw Toxic Comment Classification: Wikipedia talk-page comments with six toxicity labels.

Source: the competition's original ``train.csv``, ``test.csv`` and ``test_labels.csv``, each plain
or zipped. Forget: a comment with any of the labels in ``forget``, by default of all six. Retain: a
comment without any label; what is labelled in another way is left out. Test comments are the
evaluation section; those that were never scored (labelled -1) are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from mamushi.config.kinds import DISTINCT, SOME, PlaceOrNull, Section, key
from mamushi.errors import located
from mamushi.io.domains import EVALUATION

if TYPE_CHECKING:
    from mamushi.data.raw import Raw

Label = Literal["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
TOXIC: list[str] = [*get_args(Label)]
FILES = {"path": ["train.csv", "test.csv", "test_labels.csv"]}
EVALUATION_SECTION = True
UNSCORED = -1


class Settings(Section):
    """Settings of this dataset."""

    path: PlaceOrNull = key(None, "Folder with train.csv, test.csv, test_labels.csv (or .csv.zip).")
    forget: Annotated[list[Label], SOME, DISTINCT] | None = key(
        None, "Any of these labels is forget; with others alone, left out. Null: all six labels."
    )


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read the three files. Raises an error of pandas or ``ValueError`` for a damaged one, a label
    that is not 0, 1 or -1, an id that is there twice, and test comments without labels."""
    import pandas as pd

    from mamushi.data.raw import Raw
    from mamushi.io.files import sha256

    tables, sources = [], dict[str, str]()
    for name in FILES["path"]:
        path = Path(settings["path"], name)
        path = path if path.is_file() else path.with_name(f"{name}.zip")
        with located(path):
            table = pd.read_csv(path, dtype={"id": str}, keep_default_na=False)
        tables.append(table.assign(place=[f"{path.name}, row {i + 1}" for i in table.index]))
        sources[path.name] = sha256(path)
    train, test, scores = tables
    with located(path):
        test = test.merge(scores.drop(columns="place"), "left", on="id", validate="one_to_one")
        rows = pd.concat([train.assign(section=None), test.assign(section=EVALUATION)])
        if not rows[TOXIC].isin((UNSCORED, 0, 1)).all(axis=None):
            raise ValueError("labels are not all 0, 1 or -1")
    scored = (rows[TOXIC] != UNSCORED).all(axis=1)
    graded = settings.get("forget") or TOXIC
    rows["forget"] = (rows[graded] == 1).any(axis=1)
    is_other = scored & ~rows["forget"] & (rows[TOXIC] == 1).any(axis=1)
    dropped = {"test comments without scores (-1)": int((~scored).sum())}
    if set(graded) < set(TOXIC):
        dropped[f"labelled, but not {' or '.join(graded)}"] = int(is_other.sum())
    rows = rows[scored & ~is_other]
    return Raw(
        ids=rows["id"].tolist(),
        texts=rows["comment_text"].tolist(),
        forget=rows["forget"].to_numpy(),
        section=rows["section"].tolist(),
        stratum=rows["forget"].map({True: "toxic", False: "safe"}).tolist(),
        places=rows["place"].tolist(),
        labels={name: rows[name].to_numpy("int8") for name in TOXIC},
        sources=sources,
        dropped=dropped,
    )
