"""Files on the hub, in a bucket or on a web server: copied once into ``results``.

All that reads works on the copy, by its content: no job asks a server but that of the rule
``fetch``. Names and passwords are the libraries' own business, and none of them stands in a message
or a result.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from mamushi.errors import COPY_RECEIPT, UserError, extra
from mamushi.io import digests, tabular
from mamushi.io.copies import HUB, display_url, local_path, receipt_path, unsigned
from mamushi.io.files import DISK_FULL, read_json, write_json
from mamushi.running.locks import exclusive

CLIENTS = {"s3": "s3fs", "gs": "gcsfs"}
"""The package that each of these needs beside fsspec."""
TIMEOUT = 60
"""Seconds in which a web server has to say something."""
REVISION = ("ETag", "etag", "generation", "md5Hash", "VersionId", "blob_id", "LastModified", "size")
"""Keys by which servers tell content from another one."""


class RemoteFile(NamedTuple):
    """A file elsewhere: its name below what the URL names, its own URL, which content it has, as
    its server tells, and what copies it to a path."""

    name: str
    url: str
    revision: str
    copy: Callable[[Path], Any]


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
    was. Raises ``UserError`` as ``unsigned``, for what is no whole ``table`` where it has to be
    one, for what is not there or not allowed, and for a server that does not answer.
    """
    target, receipt = local_path(unsigned(url)), receipt_path(unsigned(url))
    if not refresh and _recorded(receipt):
        return target
    folder = receipt.parent
    part = folder.with_suffix(".part")
    with (
        exclusive(folder.with_suffix(".lock"), f"fetches {display_url(url)}"),
        _explained(url),
    ):
        files = _listed(url, target.name)
        revisions = {file.name: file.revision for file in files}
        if _recorded(receipt) == revisions:
            return target
        print(f"{display_url(url)}: fetching {len(files):,} files", file=sys.stderr)
        shutil.rmtree(part, ignore_errors=True)
        for file in files:
            (part / file.name).parent.mkdir(parents=True, exist_ok=True)
            file.copy(part / file.name)
        if {file.name: file.revision for file in _listed(url, target.name)} != revisions:
            do = "run the same command again"
            raise UserError("has changed while it was fetched", where=display_url(url), do=do)
        if table:
            _check_table(url, part / target.name)
        content = {
            name: {"url": at, "revision": revision, "sha256": digests.of(part / name)}
            for name, at, revision, _ in files
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


def _check_table(url: str, path: Path) -> None:
    try:
        tabular.find(path)
    except UserError as error:
        raise UserError(error.problem, where=display_url(url), do=error.do) from None


def _listed(url: str, last: str) -> list[RemoteFile]:
    """Return the files that a URL names, by their names from the ``last`` part of it on."""
    if url.startswith("http"):
        return [_of_web(url, last)]
    files, path = _filesystem(pinned(url) if url.startswith("hf:") else url)
    if (match := HUB.fullmatch(pinned(url))) and not match["path"]:
        names = {
            name: f"{last}/{name.split('/', 3)[3].replace('/', '-')}"
            for name in _split_files(match)
        }
        entries = {name: files.info(name) for name in names}
    else:
        info = {} if "*" in path else files.info(path)
        found = files.glob(path, detail=True) if "*" in path else files.find(path, detail=True)
        entries = {path: info} if info.get("type") == "file" else dict(found)
        names = {
            name: Path(name).name if "*" in path else last + name[len(path) :] for name in entries
        }
    if not entries:
        raise FileNotFoundError
    if len({*names.values()}) < len(names):
        problem = "has several files of one name, in several folders"
        raise UserError(problem, where=display_url(url), do="name them one by one")
    return [
        RemoteFile(
            local_name(names[name], url),
            f"{url.partition(':')[0]}://{name}",
            " ".join(str(info[key]) for key in REVISION if info.get(key) is not None),
            lambda to, name=name: files.get_file(name, str(to)),  # type: ignore[misc]
        )
        for name, info in sorted(entries.items())
        if info["type"] == "file"
    ]


def _split_files(match: re.Match[str]) -> list[str]:
    """Return the files of a split of a data set, as `datasets` tells them, which runs no code of
    the hub. Raises ``UserError`` for a split or a configuration that is not there, or is one of
    several and not named."""
    if not importlib.util.find_spec("datasets"):
        raise UserError("needs the package datasets", where=match[0], do=extra("remote"))
    import datasets

    chosen = {key: values[0] for key, values in parse_qs(match["query"] or "").items()}
    at = {"path": f"hf://datasets/{match['name']}", "revision": match["revision"]}
    configs = datasets.get_dataset_config_names(**at)
    config = chosen.get("config") or datasets.get_dataset_default_config_name(**at)
    if config not in configs:
        raise _choose("configuration", "--config", chosen.get("config"), configs, match[0])
    parts = datasets.load_dataset_builder(name=config, **at).config.data_files or {}
    split = chosen.get("split") or (next(iter(parts)) if len(parts) == 1 else None)
    if split not in parts:
        raise _choose("split", "--split", chosen.get("split"), [*map(str, parts)], match[0])
    return [name.removeprefix("hf://") for name in parts[split]]


def _choose(kind: str, option: str, wrong: str | None, names: list[str], url: str) -> UserError:
    problem = f"has no {kind} {wrong!r}" if wrong else f"has several {kind}s"
    return UserError(problem, where=url, do=f"name one in {option}: {', '.join(names)}")


def local_name(name: str, url: str) -> str:
    """Return the name that a file of a server has here. Raises ``UserError`` for one that would lie
    outside of its copy: a bucket may call a file anything."""
    if ".." in name.split("/") or "\0" in name:
        do = "copy what you need of it yourself"
        raise UserError(f"has a file that is called {name!r}", where=display_url(url), do=do)
    return name


def _of_web(url: str, last: str) -> RemoteFile:
    """Return a file on a web server, of which it may tell neither size nor revision."""
    import requests

    def answer() -> Any:
        headers = {"Accept-Encoding": "identity"}
        answer = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
        answer.raise_for_status()
        return answer

    def copy(to: Path) -> None:
        with answer() as source, to.open("wb") as handle:
            for block in source.iter_content(1 << 20):
                handle.write(block)

    with answer() as told:
        keys = ("ETag", "Last-Modified", "Content-Length")
        revision = " ".join(str(told.headers.get(key, "")) for key in keys)
    return RemoteFile(last, display_url(url), revision, copy)


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
    """Call what a library raises by its name: its words may have the whole URL in them."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if getattr(error, "errno", None) in DISK_FULL:
            raise
        status = getattr(getattr(error, "response", None), "status_code", "")
        problem = f"cannot be fetched ({type(error).__name__} {status}".rstrip() + ")"
        do = "check the path, log in as its library does, or run the same command again"
        raise UserError(problem, where=display_url(url), do=do) from None
