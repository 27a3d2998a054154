"""Files on the hub, in a bucket or on a web server: copied once into ``results``, and sent whole.

All that reads works on the copy, by its content: no job asks a server but that of the rule
``fetch``. Names and passwords are the libraries' own business, and none of them stands in a message
or a result.
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
from urllib.parse import parse_qs

from mamushi.errors import COPY_RECEIPT, UserError, extra
from mamushi.io import digests, tabular
from mamushi.io.copies import HUB, display_url, local_path, receipt_path, unsigned
from mamushi.io.files import DISK_FULL, read_json, write_json
from mamushi.running.locks import exclusive

COPIES = Path("results/remote")
OUTGOING = COPIES / "outgoing"
CLIENTS = {"s3": "s3fs", "gs": "gcsfs"}
"""The package that each of these needs beside fsspec."""
TRANSFER = 1 << 20
TIMEOUT = 60
"""Seconds in which a web server has to say something."""
AGAIN = "run the same command again: it goes on where it stopped"


class RemoteFile(NamedTuple):
    """A file elsewhere: its name below what the URL names, its own URL, which content it has, as
    its server tells, its bytes where they are told, and what opens it from a byte on."""

    name: str
    url: str
    revision: str
    size: int | None
    opened: Callable[[int], Any]


def pinned(url: str) -> str:
    """Return a URL as ``unsigned`` and, on the hub, with the commit that its branch has now. Raises
    ``UserError`` as that, and where the hub does not answer."""
    match = HUB.fullmatch(unsigned(url))
    if match is None or re.fullmatch("[0-9a-f]{40}", match["revision"] or ""):
        return unsigned(url)
    with _explained(url):
        from huggingface_hub import HfApi

        commit = HfApi().dataset_info(match["name"], revision=match["revision"]).sha
    query = f"?{match['query']}" if match["query"] else ""
    return f"hf://datasets/{match['name']}@{commit}{match['path'] or query}"


def fetch_copy(url: str, *, refresh: bool = False, table: bool = True) -> Path:
    """Return the copy of what a URL names: a file, a folder, the files of a pattern or a split.

    It is fetched where there is none or it was changed and, with ``refresh``, where its original
    was; what came already of a fetch that broke off stays. Only what is read as a whole ``table``
    is fetched. Raises ``UserError`` as ``unsigned`` and ``tabular.find``, for what is not there or
    not allowed, and for a server that does not answer.
    """
    target, receipt = local_path(unsigned(url)), receipt_path(unsigned(url))
    if not refresh and _recorded(receipt):
        return target
    folder = receipt.parent
    lock = folder.with_suffix(".lock")
    with exclusive(lock, f"fetches {display_url(url)}"), _explained(url):
        source = pinned(url) if url.startswith("hf:") else url
        files = _listed(source, target.name)
        revisions = {file.name: file.revision for file in files}
        if _recorded(receipt) == revisions:
            return target
        if table:
            _check_table(url, target, files)
        part = _download(url, folder, files)
        if {file.name: file.revision for file in _listed(source, target.name)} != revisions:
            raise UserError("has changed while it was fetched", where=display_url(url), do=AGAIN)
        content = {
            file.name: {
                **{"url": file.url, "revision": file.revision},
                "sha256": digests.of(part / file.name),
            }
            for file in files
        }
        record = {"url": display_url(url), "name": target.name, "files": content}
        write_json(part / COPY_RECEIPT, record)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return target


def _recorded(receipt: Path) -> dict[str, str] | None:
    """Return what revision each file of a copy has; None without one, or of one that changed."""
    with contextlib.suppress(UserError):
        if digests.content_digests([str(receipt)]):
            files = read_json(receipt)["files"]
            return {name: file["revision"] for name, file in files.items()}
    return None


def _listed(url: str, last: str) -> list[RemoteFile]:
    """Return the files that a URL names, by their names from the ``last`` part of it on."""
    if url.startswith("http"):
        return [_of_web(url, last)]
    files, path = _filesystem(url)
    if (match := HUB.fullmatch(url)) and not match["path"]:
        entries = {name: files.info(name) for name in _split_files(url)}
        names = {name: f"{last}/{short}" for name, short in _short_names([*entries]).items()}
    else:
        entries = _entries(files, path, url)
        names = {
            name: Path(name).name if "*" in path else last + name[len(path) :] for name in entries
        }
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
            local_name(names[name], url),
            f"{url.partition(':')[0]}://{name}",
            _revision(info),
            info["size"],
            opened(name, info["size"]),
        )
        for name, info in sorted(entries.items())
        if info["type"] == "file"
    ]


def _entries(files: Any, path: str, url: str) -> dict[str, dict[str, Any]]:
    """Return what a path names, and of a folder what is in it, by full names."""
    if "*" in path.rpartition("/")[0]:
        do = "put * in the names of files alone"
        raise UserError("has a pattern of folders in it", where=display_url(url), do=do)
    if "*" in path:
        return dict(files.glob(path, detail=True))
    info = files.info(path)
    return {path: info} if info["type"] == "file" else dict(files.find(path, detail=True))


def _short_names(paths: list[str]) -> dict[str, str]:
    """Return a name for each of several files, as short as they differ."""
    names = {path: path.rpartition("/")[2] for path in paths}
    if len({*names.values()}) < len(paths):
        names = {path: path.split("/", 3)[3].replace("/", "-") for path in paths}
    return names


def _split_files(url: str) -> list[str]:
    """Return the files of a split of a data set, as `datasets` tells them, which runs no code of
    the hub. Raises ``UserError`` for a split or a configuration that is not there, or is one of
    several and not named."""
    if not importlib.util.find_spec("datasets"):
        raise UserError("needs the package datasets", where=display_url(url), do=extra("remote"))
    import datasets

    match = HUB.fullmatch(url)
    assert match
    chosen = {key: values[0] for key, values in parse_qs(match["query"] or "").items()}
    at = {"path": f"hf://datasets/{match['name']}", "revision": match["revision"]}
    configs = datasets.get_dataset_config_names(**at)
    config = chosen.get("config") or datasets.get_dataset_default_config_name(**at)
    if config not in configs:
        raise _choose("configuration", chosen.get("config"), configs, url)
    parts = datasets.load_dataset_builder(name=config, **at).config.data_files or {}
    split = chosen.get("split") or (next(iter(parts)) if len(parts) == 1 else None)
    if split not in parts:
        raise _choose("split", chosen.get("split"), [*map(str, parts)], url)
    return [name.removeprefix("hf://") for name in parts[split]]


def _choose(kind: str, wrong: str | None, names: list[str], url: str) -> UserError:
    option = "--config" if kind == "configuration" else "--split"
    problem = f"has no {kind} {wrong!r}" if wrong else f"has several {kind}s"
    do = f"name one in {option}: {', '.join(names)}"
    return UserError(problem, where=display_url(url), do=do)


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

    content = f"{revision} {size}"
    return RemoteFile(last, display_url(url), content, size and int(size), opened)


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


def _download(url: str, folder: Path, files: list[RemoteFile]) -> Path:
    """Return a folder beside ``folder`` with the files, all of them whole. It goes by what they
    hold: what is there of others is of no use."""
    content = repr([(file.name, file.revision) for file in files])
    state = hashlib.sha256(content.encode()).hexdigest()[:8]
    part = folder.with_name(f"{folder.name}.{state}.part")
    for stale in part.parent.glob(f"{folder.name}.*.part"):
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
    return OUTGOING / local_path(url.rstrip("/")).relative_to(COPIES)


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
    place = url.partition("?")[0] if HUB.fullmatch(url) else url
    files, path = fsspec.url_to_fs(place.rstrip("/"), skip_instance_cache=True)
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
        if name == "RepositoryNotFoundError":
            # The hub says no more of what is private.
            problem, do = "no such data set there, or no access", "check its name, or log in"
        elif number in DISK_FULL:
            problem, do = "no space left for it", "free some, and run the same command again"
        elif status in (401, 403) or isinstance(error, PermissionError) or "Credential" in name:
            problem, do = "no access", "log in as its library does, or ask for access"
            problem += f" ({status or name})"
        elif status in (404, 410) or isinstance(error, FileNotFoundError):
            problem, do = "no such file there", "check the path"
        raise UserError(problem, where=display_url(url), do=do) from None
