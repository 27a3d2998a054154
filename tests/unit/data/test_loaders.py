"""The loaders of files: what they make of good ones, and what they say about bad ones."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import _twenty_newsgroups, load_files

from mamushi.data.loaders import jigsaw, newsgroups
from mamushi.io.files import sha256

UNUSED = Path("unused")


# Jigsaw ---------------------------------------------------------------------------------------

HEADER = "id,comment_text," + ",".join(jigsaw.TOXIC)
FILES = {
    "train.csv": f"""{HEADER}
mild,"one
two",1,0,0,0,0,0
worst,two,1,1,1,0,0,0
rude,three,0,0,1,0,0,0
threat,seven,1,0,0,1,0,0
fine,eight,0,0,0,0,0,0
""",
    "test.csv": "id,comment_text\nx,four\ny,five\nz,six\n",
    # In another order than the comments; y was never scored.
    "test_labels.csv": f"id,{','.join(jigsaw.TOXIC)}\n"
    "z,1,0,0,0,0,1\ny,-1,-1,-1,-1,-1,-1\nx,0,0,0,0,0,0\n",
}


@pytest.mark.parametrize(
    ("forget", "ranked", "left_out"),
    [
        (None, ["mild", "worst", "rude", "threat", "z"], None),
        (["threat", "severe_toxic"], ["worst", "threat"], 3),
        (["toxic"], ["mild", "worst", "threat", "z"], 1),
    ],
)
def test_jigsaw(
    tmp_path: Path, forget: list[str] | None, ranked: list[str], left_out: int | None
) -> None:
    """What is labelled, but in another way, is of neither domain and counted."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    raw = jigsaw.load({"path": str(tmp_path), "forget": forget}, UNUSED)
    assert np.array(raw.ids)[raw.forget].tolist() == ranked
    assert np.array(raw.ids)[~raw.forget].tolist() == ["fine", "x"]
    why = {f"labelled, but not {' or '.join(forget)}": left_out} if forget else {}
    assert raw.dropped == {"test comments without scores (-1)": 1, **why}
    texts = dict(zip(raw.ids, zip(raw.texts, raw.section, strict=True), strict=True))
    assert texts["worst"] == ("two", None) and texts["x"] == ("four", "evaluation")
    assert raw.places[-1] == f"test.csv, row {3 if 'z' in ranked else 1}"
    assert np.asarray(raw.labels["severe_toxic"]).tolist() == [name == "worst" for name in raw.ids]
    assert raw.sources["train.csv"] == sha256(tmp_path / "train.csv")


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


@pytest.mark.parametrize(
    ("subject", "thread"),
    [
        ("RE: re^2: Re[3]: Fwd: The  Title", "the title"),
        ("Re: The Title (was Re: Another)", "the title"),
        ("The Title (fwd)", "the title"),
        ("Re:", None),
    ],
)
def test_the_thread_of_a_post(subject: str, thread: str | None) -> None:
    post = f"From: a@b.c\nSubject: {subject}\nLines: 1\n\nSubject: of the text\n"
    assert newsgroups.thread(post) == thread


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
