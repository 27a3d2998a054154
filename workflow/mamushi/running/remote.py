"""Files on the hub, in a bucket or on a web server: copied once into ``results``, and sent whole.

All that reads works on the copy, by its content. What is asked of a server is asked when a
configuration is written or checked, and where there is no copy yet: no job asks. Names and
passwords are the libraries' own business, and none of them stands in a message or a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mamushi.errors import UserError, extra
from mamushi.io import digests, tabular
from mamushi.io.files import DISK_FULL, read_json, write_json
from mamushi.running.locks import exclusive

COPIES = Path("results/remote")
OUTGOING = COPIES / "outgoing"
CLIENTS = {"s3": "s3fs", "gs": "gcsfs"}
"""The package that each of these needs beside fsspec."""
SIGNATURE = re.compile(
    r"x-(amz|goog)-.+|(.*[-_])?(sig|signature|token|secret|password|key|api-?key)|awsaccesskeyid|"
    r"googleaccessid|key-pair-id|policy|expires|s[eprtv]|sk[a-z]+",
    re.IGNORECASE,
)
"""Names in a query that let whoever has the URL in, for a while: no part of what is named."""
HUB = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@([^/]+))?(/.*)?")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
TRANSFER = 1 << 20
TIMEOUT = 60
"""Seconds in which a web server has to say something."""
AGAIN = "run the same command again: it goes on where it stopped"


class RemoteFile(NamedTuple):
    """A file elsewhere: its name below what the URL names, which content it has, as its server
    tells, its bytes where they are told, and what opens it from a byte on."""

    name: str
    revision: str
    size: int | None
    opened: Callable[[int], Any]


def display_url(url: str) -> str:
    """Return a URL for messages: without a name, a password, a query and a fragment."""
    if not tabular.is_remote(url):
        return url
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def unsigned(url: str) -> str:
    """Return a URL as a configuration names it: without a signature.

    Raises ``UserError`` for a URL with a password, and for one that is not encrypted.
    """
    parts = urlsplit(url)
    if parts.scheme == "hf":
        if not HUB.fullmatch(url):
            do = "hf://datasets/ORG/NAME/PATH names its files"
            raise UserError("is no data set of the hub", where=url, do=do)
        return url
    if "@" in parts.netloc:
        do = "leave it out; ~/.netrc, or what the library of the server reads, may have it"
        raise UserError("has a name or a password in it", where=display_url(url), do=do)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise UserError("is not encrypted", where=display_url(url), do="give https://")
    query = [pair for pair in parse_qsl(parts.query, True) if not SIGNATURE.fullmatch(pair[0])]
    return urlunsplit((*parts[:3], urlencode(query), ""))


def pinned(url: str) -> str:
    """Return a URL as ``unsigned`` and, on the hub, with the commit that its branch has now. Raises
    ``UserError`` as that, and where the hub does not answer."""
    match = HUB.fullmatch(unsigned(url))
    if match is None or re.fullmatch("[0-9a-f]{40}", match[2] or ""):
        return unsigned(url)
    with _explained(url):
        from huggingface_hub import HfApi

        commit = HfApi().dataset_info(match[1], revision=match[2]).sha
    return f"hf://datasets/{match[1]}@{commit}{match[3] or ''}"


def copy_path(url: str) -> Path:
    """Return where the copy of a URL lies, which ``unsigned`` has returned: what it names keeps its
    name, and of a pattern every file."""
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    key = hashlib.sha256(url.encode()).hexdigest()[:16]
    return COPIES / key / (re.sub(r"[{}$]", "_", last) or "data")


def fetch_copy(url: str, *, refresh: bool = False, table: bool = True) -> Path:
    """Return the copy of what a URL names: a file, a folder, or the files of a pattern.

    It is fetched where there is none or it was changed and, with ``refresh``, where its original
    was; what came already of a fetch that broke off stays. Only what is read as a whole ``table``
    is fetched. Raises ``UserError`` as ``unsigned`` and ``tabular.find``, for what is not there or
    not allowed, and for a server that does not answer.
    """
    target = copy_path(unsigned(url))
    receipt = target.parent.with_suffix(".json")
    if not refresh and _recorded(receipt, target.parent):
        return target
    with (
        exclusive(target.parent.with_suffix(".lock"), f"fetches {display_url(url)}"),
        _explained(url),
    ):
        source = pinned(url) if url.startswith("hf:") else url
        files = _listed(source, target.name)
        revisions = {file.name: file.revision for file in files}
        if _recorded(receipt, target.parent) == revisions:
            return target
        if table:
            _check_table(url, target, files)
        part = _download(url, target, files)
        if {file.name: file.revision for file in _listed(source, target.name)} != revisions:
            raise UserError("has changed while it was fetched", where=display_url(url), do=AGAIN)
        receipt.unlink(missing_ok=True)
        shutil.rmtree(target.parent, ignore_errors=True)
        part.rename(target.parent)
        content = {
            name: {"revision": revision, "sha256": digests.of(target.parent / name)}
            for name, revision in revisions.items()
        }
        write_json(receipt, {"url": display_url(url), "files": content})
    return target


def _recorded(receipt: Path, folder: Path) -> dict[str, str] | None:
    """Return what revision each file of a copy has; None without one, or of one that changed."""
    with contextlib.suppress(UserError):
        files = read_json(receipt)["files"] if receipt.is_file() else {}
        if all(digests.of(folder / name) == file["sha256"] for name, file in files.items()):
            return {name: file["revision"] for name, file in files.items()} or None
    return None


def _listed(url: str, last: str) -> list[RemoteFile]:
    """Return the files that a URL names, by their names from the ``last`` part of it on."""
    if url.startswith("http"):
        return [_of_web(url, last)]
    files, path = _filesystem(url)
    entries, above = {}, path.rpartition("/")[0]
    if "*" in above:
        do = "put * in the names of files alone"
        raise UserError("has a pattern of folders in it", where=display_url(url), do=do)
    if "*" in path:
        entries = files.glob(path, detail=True)
    elif files.info(path)["type"] == "file":
        entries = {path: files.info(path)}
    else:
        entries = files.find(path, detail=True)
    if not entries:
        raise FileNotFoundError

    def opened(name: str, size: int) -> Callable[[int], Any]:
        def from_byte(start: int) -> Any:
            handle = files.open(name, "rb", block_size=1 << 24)
            handle.seek(min(start, size))
            return handle

        return from_byte

    return [
        RemoteFile(
            local_name(last + name[len(path) :] if "*" not in path else Path(name).name, url),
            _revision(info),
            info["size"],
            opened(name, info["size"]),
        )
        for name, info in sorted(entries.items())
        if info["type"] == "file"
    ]


def local_name(name: str, url: str) -> str:
    """Return the name that a file of a server has here. Raises ``UserError`` for one that would lie
    outside of its copy: a bucket may call a file anything."""
    if ".." in name.split("/") or "\0" in name:
        do = "copy what you need of it yourself"
        raise UserError(f"has a file that is called {name!r}", where=display_url(url), do=do)
    return name


def _revision(info: dict[str, Any]) -> str:
    """Return what a server says by which content is told from another one."""
    keys = ("ETag", "etag", "generation", "md5Hash", "VersionId", "blob_id", "LastModified", "size")
    return " ".join(str(info[key]) for key in keys if info.get(key) is not None)


def _of_web(url: str, last: str) -> RemoteFile:
    """Return a file on a web server, of which it may tell neither size nor revision."""
    with _answer(url, {}) as answer:
        headers = answer.headers
    size = headers.get("Content-Length")
    revision = headers.get("ETag") or headers.get("Last-Modified") or ""

    def opened(start: int) -> Any:
        since = {"Range": f"bytes={start}-", "If-Range": revision} if start and revision else {}
        answer = _answer(url, since)
        if start and answer.status_code != 206:
            # Everything, once more.
            _skip(answer.raw, start)
        return contextlib.closing(answer.raw)

    return RemoteFile(last, f"{revision} {size}", size and int(size), opened)


def _answer(url: str, headers: dict[str, str]) -> Any:
    import requests

    headers = {"Accept-Encoding": "identity", **headers}
    answer = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    answer.raise_for_status()
    return answer


def _skip(source: Any, size: int) -> None:
    while size and (block := source.read(min(size, TRANSFER))):
        size -= len(block)


def _check_table(url: str, target: Path, files: list[RemoteFile]) -> None:
    """Raise ``UserError`` where the files are no whole table by their names, as of local ones."""
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder, file.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            if path.name == tabular.STATE:
                path.write_bytes(file.opened(0).read())
        try:
            tabular.find(Path(folder, target.name))
        except UserError as error:
            raise UserError(error.problem, where=display_url(url), do=error.do) from None


def _download(url: str, target: Path, files: list[RemoteFile]) -> Path:
    """Return the folder with the files, all of them whole. It goes by what they hold: what is there
    of others is of no use."""
    content = repr([(file.name, file.revision) for file in files])
    state = hashlib.sha256(content.encode()).hexdigest()[:8]
    part = target.parent.with_name(f"{target.parent.name}.{state}.part")
    for stale in part.parent.glob(f"{target.parent.name}.*.part"):
        if stale != part:
            shutil.rmtree(stale)
    print(
        f"{display_url(url)}: fetching {sum(file.size or 0 for file in files):,} bytes",
        file=sys.stderr,
    )
    for file in files:
        path = part / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.size is None:
            path.unlink(missing_ok=True)
        start = path.stat().st_size if path.exists() else 0
        if start == file.size:
            continue
        with file.opened(start) as source, path.open("ab") as handle:
            while block := source.read(TRANSFER):
                handle.write(block)
        if file.size is not None and path.stat().st_size != file.size:
            raise ConnectionError
    return part


# Writing ------------------------------------------------------------------------------------------


def outgoing(url: str) -> Path:
    """Return where a file or folder is made that goes to a URL. Raises ``UserError`` as
    ``unsigned``, and for a web server, which takes none."""
    if url.startswith("http"):
        do = "give a local path, s3://, gs:// or hf://datasets/"
        raise UserError("cannot be written to", where=display_url(url), do=do)
    return OUTGOING / copy_path(url.rstrip("/")).relative_to(COPIES)


def exists_at(url: str) -> bool:
    """Return whether anything is at a URL."""
    with _explained(url):
        files, path = _filesystem(url)
        return bool(files.exists(path))


def text_at(url: str) -> str | None:
    """Return the text of a small file, None where there is none."""
    with _explained(url):
        files, path = _filesystem(url)
        return files.cat_file(path).decode() if files.exists(path) else None


def upload(local: Path, url: str) -> None:
    """Send a file, or each file of a folder, to a URL. Each is there whole or not at all."""
    with _explained(url):
        files, path = _filesystem(url)
        for file in sorted(local.rglob("*")) if local.is_dir() else [local]:
            if file.is_file():
                to = path if file == local else f"{path}/{file.relative_to(local).as_posix()}"
                files.put_file(str(file), to)


# Both ---------------------------------------------------------------------------------------------


def _filesystem(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL and the path in it."""
    import fsspec

    client = CLIENTS.get(url.partition(":")[0])
    if client and not importlib.util.find_spec(client):
        raise UserError(f"needs the package {client}", where=display_url(url), do=extra("remote"))
    files, path = fsspec.url_to_fs(url.rstrip("/"), skip_instance_cache=True)
    return files, str(path)


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn what libraries say into a line of ours: theirs may have the whole URL in them."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        answer = getattr(error, "response", None)
        status = getattr(answer, "status_code", None) or getattr(error, "code", None)
        name, number = type(error).__name__, getattr(error, "errno", None)
        if str(getattr(error, "filename", "")).startswith(str(COPIES)):
            raise
        problem, do = f"did not answer, or broke off ({name})", AGAIN
        if number in DISK_FULL:
            problem, do = "no space left for it", "free some, and run the same command again"
        elif status in (401, 403) or isinstance(error, PermissionError) or "Credential" in name:
            problem, do = "no access", "log in as its library does, or ask for access"
            problem += f" ({status or name})"
        elif status in (404, 410) or isinstance(error, FileNotFoundError):
            problem, do = "no such file there", "check the path"
        raise UserError(problem, where=display_url(url), do=do) from None
