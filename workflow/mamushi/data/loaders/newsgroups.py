"""20 Newsgroups, "bydate" version: Usenet posts in twenty groups.

Source: the original archive ``20news-bydate.tar.gz`` (Latin-1, one file a post), which scikit-learn
downloads where no path is given. Forget: the groups listed in ``forget``. Retain: all others.
Headers, footers and quotes are stripped with scikit-learn's own helpers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mamushi.config.kinds import SOME, PlaceOrNull, Section, key
from mamushi.errors import UserError, choices, located

if TYPE_CHECKING:
    from mamushi.data.raw import Raw

FILES: dict[str, list[str]] = {"path": []}
DOWNLOADS = True

POST = re.compile(r"(?:^|/)20news-bydate-(train|test)/([a-z][a-z.-]*)/(\d+)$")
"""Subset, group and number of a post, from its path."""
SUBJECT = re.compile(r"^subject:(.*)$", re.IGNORECASE | re.MULTILINE)
REPLY = re.compile(r"^(?:(?:re|fwd?)(?:[\[(^]?\d+[\])]?)?:\s*)+")
"""What a reply or a forward puts before the subject: ``re:``, ``re^2:``, ``fwd:``."""
WAS = re.compile(r"\s*(?:[(\[{<]\s*was\b|[,;-]*\s*\bwas(?::|\s+re:)|\(fwd\)$).*$")
"""A note of what the subject was before: ``(was re: this)``."""


class Settings(Section):
    """Settings of this dataset."""

    path: PlaceOrNull = key(None, "The archive 20news-bydate.tar.gz; null downloads it.")
    forget: Annotated[list[str], SOME] = key(
        ["talk.politics.guns", "talk.politics.misc", "talk.politics.mideast"],
        "Groups that make up the forget domain.",
    )
    group: Literal["thread"] | None = key(
        "thread", "Posts of one subject line stay in one section and fold; null: as in the paper."
    )


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Read all posts, training subset first, by group and number. Raises ``UserError`` for an
    unknown group, and an error of tarfile or scikit-learn for a bad archive or download."""
    import gzip
    import io
    import tarfile

    import numpy as np
    from sklearn.datasets import _twenty_newsgroups as helpers

    from mamushi.data.raw import Raw
    from mamushi.io.files import sha256

    if not settings["path"]:
        cache.mkdir(parents=True, exist_ok=True)
    source = Path(settings["path"] or helpers._fetch_remote(helpers.ARCHIVE, cache))
    posts = []
    with located(f"posts of {source}"):
        # All of it, so that gzip compares its checksum.
        content = io.BytesIO(gzip.decompress(source.read_bytes()))
        with tarfile.open(fileobj=content) as tar:
            for member in tar:
                if (match := POST.search(member.name)) and (file := tar.extractfile(member)):
                    posts.append((match[1], match[2], int(match[3]), file.read().decode("latin-1")))
        posts.sort(key=lambda post: (post[0] != "train", *post[1:3]))
        subsets, groups, _, texts = zip(*posts, strict=True)
    for group in settings["forget"]:
        if group not in groups:
            raise UserError(f"unknown group {group!r}", do=choices(group, set(groups)))
    ids = ["/".join(map(str, post[:3])) for post in posts]
    return Raw(
        ids=ids,
        texts=[*map(strip_post, texts)],
        forget=np.isin(groups, settings["forget"]),
        section=[None] * len(posts),
        stratum=groups,
        places=[f"{source.name}, post {name}" for name in ids],
        labels={"group": groups, "subset": subsets},
        group=[*map(thread, texts)] if settings.get("group") else None,
        sources={source.name: sha256(source)},
    )


def strip_post(post: str) -> str:
    """Return a post without its header, footer and quotes, in scikit-learn's order."""
    from sklearn.datasets import _twenty_newsgroups as helpers

    text = helpers.strip_newsgroup_footer(helpers.strip_newsgroup_header(post))
    return str(helpers.strip_newsgroup_quoting(text))


def thread(post: str) -> str | None:
    """Return the subject without marks of replies and notes of what it was, in lower case; None
    for a post without one."""
    match = SUBJECT.search(post.partition("\n\n")[0])
    subject = " ".join(match[1].lower().split()) if match else ""
    subject = WAS.sub("", REPLY.sub("", subject))
    return None if subject.strip("<()> ") in ("", "none", "no subject") else subject
