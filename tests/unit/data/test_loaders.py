"""The loaders of files: what they make of good ones, and what they say about bad ones."""

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import _twenty_newsgroups, load_files

from mamushi.data.loaders import jigsaw, newsgroups
from mamushi.data.raw import Raw
from mamushi.io.files import sha256

UNUSED = Path("unused")


# Jigsaw ---------------------------------------------------------------------------------------

HEADER = "id,comment_text," + ",".join(jigsaw.TOXIC)
GOOD = {
    "train.csv": f'{HEADER}\na,"one\ntwo",0,0,0,0,0,0\nb,three,0,0,0,0,1,0\n',
    "test.csv": "id,comment_text\nx,four\ny,five\nz,six\n",
    # In another order than the comments.
    "test_labels.csv": f"id,{','.join(jigsaw.TOXIC)}\n"
    "z,1,0,0,0,0,1\ny,-1,-1,-1,-1,-1,-1\nx,0,0,0,0,0,0\n",
}


def load_jigsaw(folder: Path, train: str = GOOD["train.csv"], **settings: Any) -> Raw:
    for name, content in (GOOD | {"train.csv": train}).items():
        (folder / name).write_text(content, encoding="utf-8")
    return jigsaw.load({"path": str(folder), **settings}, UNUSED)


def test_jigsaw(tmp_path: Path) -> None:
    raw = load_jigsaw(tmp_path)
    assert raw.ids == ["a", "b", "x", "z"]
    assert raw.texts == ["one\ntwo", "three", "four", "six"]
    assert raw.forget.tolist() == [False, True, False, True]
    assert raw.section == [None, None, "evaluation", "evaluation"]
    assert raw.dropped == {"test comments without scores (-1)": 1}
    assert np.asarray(raw.labels["insult"]).tolist() == [0, 1, 0, 0]
    assert np.asarray(raw.labels["identity_hate"]).tolist() == [0, 0, 0, 1]
    assert raw.places[1] == "train.csv, row 2"
    assert raw.sources["train.csv"] == sha256(tmp_path / "train.csv")


GRADED = f"""{HEADER}
mild,one,1,0,0,0,0,0
worst,two,1,1,1,0,0,0
rude,three,0,0,1,0,0,0
threat,seven,1,0,0,1,0,0
fine,eight,0,0,0,0,0,0
"""


@pytest.mark.parametrize(
    ("forget", "ranked", "left_out"),
    [
        (["threat", "severe_toxic"], ["worst", "threat"], 3),
        (["toxic"], ["mild", "worst", "threat", "z"], 1),
    ],
)
def test_jigsaw_graded(tmp_path: Path, forget: list[str], ranked: list[str], left_out: int) -> None:
    """What is labelled, but in another way, is of neither domain and counted."""
    raw = load_jigsaw(tmp_path, GRADED, forget=forget)
    assert np.array(raw.ids)[raw.forget].tolist() == ranked
    assert np.array(raw.ids)[~raw.forget].tolist() == ["fine", "x"]
    # Comment y was never scored.
    why = f"labelled, but not {' or '.join(forget)}"
    assert raw.dropped == {"test comments without scores (-1)": 1, why: left_out}


# 20 Newsgroups --------------------------------------------------------------------------------


POST = "From: a@b.c\nSubject: x\n\nIn article <1> d writes:\n> quoted\nThe text.\n\n--\nsignature\n"
POSTS = {
    "20news-bydate-test/sci.space/7": POST,
    "20news-bydate-train/talk.politics.guns/12": POST.replace("text", "caf\xe9"),
    "20news-bydate-train/sci.space/9": POST,
    "20news-bydate-train/sci.space/10": POST,
}


def archive(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in POSTS.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode("latin-1"))
            tar.addfile(info, io.BytesIO(text.encode("latin-1")))
    return path


@pytest.mark.parametrize("downloads", [False, True])
def test_newsgroups(downloads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "20news-bydate.tar.gz")
    monkeypatch.setattr(_twenty_newsgroups, "_fetch_remote", lambda remote, folder: str(path))
    settings = {"path": None if downloads else str(path), "forget": ["talk.politics.guns"]}
    raw = newsgroups.load(settings, tmp_path / "cache")
    # Training subset first, then by group and number, whatever the order of the archive.
    names = ("train/sci.space/9", "train/sci.space/10", "train/talk.politics.guns/12")
    assert raw.ids == [*names, "test/sci.space/7"]
    assert raw.texts == ["The text.\n"] * 2 + ["The caf\xe9.\n", "The text.\n"]
    assert raw.forget.tolist() == [False, False, True, False]
    assert list(raw.stratum) == list(raw.labels["group"])
    assert list(raw.labels["subset"]) == ["train"] * 3 + ["test"]
    assert raw.section == [None] * 4
    assert raw.sources == {path.name: sha256(path)}


# Real files -----------------------------------------------------------------------------------


@pytest.mark.real_data
def test_real_archive_agrees_with_scikit_learns_loader(shared: Path, tmp_path: Path) -> None:
    """The posts of a group against ``load_files`` on the unpacked folder."""
    source = shared / "data/20ng/20news-bydate.tar.gz"
    raw = newsgroups.load({"path": str(source), "forget": ["talk.politics.guns"]}, UNUSED)
    assert len(raw.ids) == len(set(raw.ids)) == 18_846
    assert len(set(raw.labels["group"])) == 20
    assert list(raw.labels["subset"]).count("train") == 11_314
    with tarfile.open(source) as tar:
        groups = [m for m in tar if m.isreg() and m.name.split("/")[1] == "sci.space"]
        tar.extractall(tmp_path, groups, filter="data")
    ours = dict(zip(raw.ids, raw.texts, strict=True))
    for subset in ("train", "test"):
        bunch = load_files(str(tmp_path / f"20news-bydate-{subset}"), encoding="latin1")
        for file, text in zip(bunch.filenames, bunch.data, strict=True):
            name = f"{subset}/sci.space/{Path(file).name}"
            assert ours.pop(name) == newsgroups.strip_post(text)
    assert not any("/sci.space/" in name for name in ours)
