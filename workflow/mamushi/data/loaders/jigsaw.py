"""Jigsaw Toxic Comment Classification: Wikipedia talk-page comments with six toxicity labels.

Source: the competition's original ``train.csv``, ``test.csv`` and ``test_labels.csv``, each plain
or zipped. Forget: a comment with any of the labels in ``forget``, by default of all six. Retain: a
comment without any label; what is labelled in another way is left out. Test comments are the
evaluation section; those that were never scored (labelled -1) are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from mamushi.config.kinds import DISTINCT, SOME, PlaceOrNull, Section
from mamushi.errors import UserError, located
from mamushi.io.domains import EVALUATION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.data.raw import Raw
    from mamushi.data.readers import FileTable

Label = Literal["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
LABELS: list[str] = [*get_args(Label)]
FILES = {"path": ["train.csv", "test.csv", "test_labels.csv"]}
EVALUATION_SECTION = True
UNSCORED = -1


class Settings(Section):
    """Settings of this dataset."""

    #: Folder with train.csv, test.csv and test_labels.csv, plain or as .csv.zip.
    path: PlaceOrNull = None
    #: Labels any of which puts a comment into the forget domain; one with other labels alone is
    #: left out, and counted in the card. Null: all six labels.
    forget: Annotated[list[Label], SOME, DISTINCT] | None = None


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read the three files. Raises ``UserError`` for a missing or damaged file, a missing column, a
    label that is not 0 or 1 (or -1 in the test labels), and test comments without labels or labels
    without a comment."""
    import numpy as np

    from mamushi.data import readers
    from mamushi.data.raw import Raw
    from mamushi.io.files import sha256

    if settings["path"] is None:
        raise UserError("no path to the Jigsaw files", do="set 'path' to the folder that has them")
    paths = [find_file(Path(settings["path"]), name) for name in FILES["path"]]
    train = readers.read_file_columns(paths[0], ["id", "comment_text", *LABELS])
    test = readers.read_file_columns(paths[1], ["id", "comment_text"])
    scores = readers.read_file_columns(paths[2], ["id", *LABELS])
    train_labels = _labels(train, (0, 1))
    test_labels = _labels(scores, (-1, 0, 1))[_match(test, scores)]
    scored = np.flatnonzero((test_labels != UNSCORED).all(axis=1))
    ids, texts = test.columns["id"], test.columns["comment_text"]
    labels = np.concatenate([train_labels, test_labels[scored]])
    graded = settings.get("forget") or LABELS
    forget = (labels[:, [LABELS.index(name) for name in graded]] == 1).any(axis=1)
    kept = np.flatnonzero(forget | (labels != 1).all(axis=1))
    dropped = {"test comments without scores (-1)": len(test_labels) - len(scored)}
    if set(graded) < set(LABELS):
        dropped[f"labelled, but not {' or '.join(graded)}"] = len(labels) - len(kept)

    def of(train_rows: Sequence[Any], test_rows: Sequence[Any]) -> list[Any]:
        held_out = [*test_rows]
        column = [*train_rows, *(held_out[row] for row in scored)]
        return [column[row] for row in kept]

    return Raw(
        ids=of(train.columns["id"], ids),
        texts=of(train.columns["comment_text"], texts),
        forget=forget[kept],
        section=of([None] * len(train_labels), [EVALUATION] * len(test_labels)),
        stratum=["toxic" if toxic else "safe" for toxic in forget[kept]],
        places=of(train.places, test.places),
        labels={name: labels[kept, column] for column, name in enumerate(LABELS)},
        sources={path.name: sha256(path) for path in paths},
        dropped=dropped,
    )


def find_file(folder: Path, name: str) -> Path:
    """Return ``folder/name``, or ``folder/name.zip`` where only that exists."""
    for path in (folder / name, folder / f"{name}.zip"):
        if path.is_file():
            return path
    error = f"neither {name} nor {name}.zip" if folder.is_dir() else "no such folder"
    raise UserError(error, where=folder, do="give the folder that holds the original files")


def _labels(table: FileTable, allowed: tuple[int, ...]) -> NDArray[np.int8]:
    """Return the six labels of each row, shape (rows, 6)."""
    import numpy as np

    with located(table.file):
        labels = np.array([[*table.columns[name]] for name in LABELS]).astype(np.int8).T
        if not np.isin(labels, allowed).all():
            raise ValueError(f"labels are not all of {allowed}")
    return labels


def _match(test: FileTable, scores: FileTable) -> list[int]:
    """Return, for each test comment, the row of its labels."""
    from mamushi.data.raw import check_unique

    check_unique(scores.columns["id"], scores.places)
    rows = {name: row for row, name in enumerate(scores.columns["id"])}
    with located(f"{scores.file} has no labels for a comment of {test.file}"):
        return [rows[name] for name in test.columns["id"]]
