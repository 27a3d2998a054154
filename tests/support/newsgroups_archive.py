"""A small archive of 20 Newsgroups."""

import io
import tarfile
from pathlib import Path

POST = "From: a@b.c\nSubject: x\n\nIn article <1> d writes:\n> quoted\nThe text.\n\n--\nsignature\n"
POSTS = {
    "20news-bydate-test/sci.space/7": POST,
    "20news-bydate-train/talk.politics.guns/12": POST.replace("text", "caf\xe9"),
    "20news-bydate-train/sci.space/9": POST,
    "20news-bydate-train/sci.space/10": POST,
}


def archive(path: Path, posts: dict[str, str] = POSTS, extra: tuple[tarfile.TarInfo, ...] = ()):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in posts.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode("latin-1"))
            tar.addfile(info, io.BytesIO(text.encode("latin-1")))
        for info in extra:
            tar.addfile(info)
    return path
