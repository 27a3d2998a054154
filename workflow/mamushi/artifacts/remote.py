"""A raw file in an S3 bucket, ``s3://bucket/key``: which content it is, and a copy of it here.

Endpoint and credentials come from where Amazon's own tools take them: ``AWS_ENDPOINT_URL`` (of a
server of one's own), ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_DEFAULT_REGION``, or
the profile that they name. pyarrow speaks S3; it is loaded only where such a path is given.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mamushi.artifacts.files import atomic
from mamushi.errors import UserError

SCHEME = "s3://"
IDENTITY = ("ETag", "Content-Length", "VersionId")
"""What tells one content of an object from another."""


def is_remote(path: str | os.PathLike[str]) -> bool:
    return str(path).startswith(SCHEME)


@cache
def identity(url: str) -> str:
    """Return an object's content in words: its ETag and size, and its version where it has one.

    Asked for once by each process. Raises ``UserError`` when it is not there or out of reach.
    """
    with _opened(url) as stream:
        found = stream.metadata()
    return ", ".join(f"{key} {found[key].decode()}" for key in IDENTITY if key in found)


def fetch(url: str, folder: Path) -> Path:
    """Copy an object into ``folder``, under the last part of its key, whole or not at all.

    Raises ``UserError`` as ``identity`` does.
    """
    target = folder / url.rpartition("/")[2]
    with _opened(url) as stream, atomic(target) as part, part.open("wb") as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)
    return target


@contextlib.contextmanager
def _opened(url: str) -> Iterator[Any]:
    from pyarrow import fs

    place = urlsplit(
        os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    )
    server = {"endpoint_override": place.netloc, "scheme": place.scheme} if place.netloc else {}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    try:
        system = fs.S3FileSystem(
            **server,
            region=region,
            connect_timeout=10,
            request_timeout=60,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=3),
        )
        with system.open_input_stream(url.removeprefix(SCHEME)) as stream:
            yield stream
    except FileNotFoundError:
        raise UserError("no such object", where=url, do="check the bucket and the key") from None
    except OSError as error:
        if error.errno is not None:
            raise  # The file system's, into which the copy goes.
        raise UserError(
            f"cannot be read ({error})",
            where=url,
            do="check AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ) from None
