"""Files on the hub, in a bucket or on a web server: copied once into ``results``.

All that reads works on the copy, by its content: no job asks a server but that of the rule
``fetch``. Names and passwords are the libraries' own business, and none of them stands in a message
or a result.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from mamushi.errors import COPY_RECEIPT, UserError
from mamushi.io import digests
from mamushi.io.copies import HUB, display_url, local_path, receipt_path, unsigned
from mamushi.io.files import DISK_FULL, read_json, write_json
from mamushi.running.locks import exclusive

TIMEOUT = 60
"""Seconds in which a web server has to say something."""
REVISION = ("ETag", "etag", "generation", "md5Hash", "VersionId", "blob_id", "LastModified", "size")
"""Keys by which servers tell content from another one."""


class RemoteFile(NamedTuple):
    """A file elsewhere: its own URL, which content it has, as its server tells, and what copies it
    to a path."""

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


def fetch_copy(url: str, *, refresh: bool = False) -> Path:
    """Return the copy of what a URL names: a file, a folder, the files of a pattern or a split.

    It is fetched where there is none or it was changed and, with ``refresh``, where its original
    was. Raises ``UserError`` as ``unsigned``, for what is not there or not allowed, and for a
    server that does not answer; ``ImportError`` names the package that a kind of URL needs.
    """
    target, receipt = local_path(unsigned(url)), receipt_path(unsigned(url))
    if not refresh and _recorded(receipt):
        return target
    folder = receipt.parent
    part, lock = folder.with_suffix(".part"), folder.with_suffix(".lock")
    with exclusive(lock, f"fetches {display_url(url)}"), _explained(url):
        files = _remote_files(url, target.name)
        if _recorded(receipt) == {name: file.revision for name, file in files.items()}:
            return target
        print(f"{display_url(url)}: fetching {len(files):,} files", file=sys.stderr)
        shutil.rmtree(part, ignore_errors=True)
        content = {}
        for name, file in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            file.copy(part / name)
            content[name] = {"url": file.url, "revision": file.revision}
            content[name]["sha256"] = digests.of(part / name)
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


def _remote_files(url: str, last: str) -> dict[str, RemoteFile]:
    """Return the files that a URL names, by their names from the ``last`` part of it on."""
    if url.startswith("http"):
        return {last: _web_file(url)}
    import fsspec

    place = pinned(url) if url.startswith("hf:") else url
    match = HUB.fullmatch(place)
    bare = place.partition("?")[0] if match else place
    files, path = fsspec.url_to_fs(bare.rstrip("/"), skip_instance_cache=True)
    if match and not match["path"]:
        names = {
            name: f"{last}/{name.split('/', 3)[3].replace('/', '-')}"
            for name in _split_files(match)
        }
    elif "*" in path:
        names = {name: Path(name).name for name in files.glob(path)}
    else:
        is_file = files.info(path)["type"] == "file"
        names = {
            name: last + name[len(path) :] for name in ([path] if is_file else files.find(path))
        }
    if not names:
        raise FileNotFoundError
    if len({*names.values()}) < len(names):
        problem = "has several files of one name, in several folders"
        raise UserError(problem, where=display_url(url), do="name them one by one")
    infos = {name: files.info(name) for name in sorted(names)}
    return {
        local_name(names[name], url): RemoteFile(
            f"{url.partition(':')[0]}://{name}",
            " ".join(str(info[key]) for key in REVISION if info.get(key) is not None),
            lambda to, name=name: files.get_file(name, str(to)),  # type: ignore[misc]
        )
        for name, info in infos.items()
    }


def _split_files(match: re.Match[str]) -> list[str]:
    """Return the files of a split of a data set, as `datasets` tells them, which runs no code of
    the hub. Raises ``UserError`` for a split or a configuration that is not there, or is one of
    several and not named."""
    import datasets

    chosen = {key: values[0] for key, values in parse_qs(match["query"] or "").items()}
    at = {"path": f"hf://datasets/{match['name']}", "revision": match["revision"]}
    configs = datasets.get_dataset_config_names(**at)
    config = chosen.get("config") or datasets.get_dataset_default_config_name(**at)
    if config not in configs:
        raise _choose("configuration", "--config", chosen.get("config"), configs, match[0])
    splits = datasets.load_dataset_builder(name=config, **at).config.data_files or {}
    split = chosen.get("split") or (next(iter(splits)) if len(splits) == 1 else None)
    if split not in splits:
        raise _choose("split", "--split", chosen.get("split"), [*map(str, splits)], match[0])
    return [name.removeprefix("hf://") for name in splits[split]]


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


def _web_file(url: str) -> RemoteFile:
    """Return a file on a web server, which may tell neither size nor revision."""
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
    return RemoteFile(display_url(url), revision, copy)


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Call what a library raises by its name: its words may have the whole URL in them."""
    try:
        yield
    except (UserError, ImportError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) in DISK_FULL:
            raise
        status = getattr(getattr(error, "response", None), "status_code", "")
        problem = f"cannot be fetched ({type(error).__name__} {status}".rstrip() + ")"
        do = "check the path, log in as its library does, or run the same command again"
        raise UserError(problem, where=display_url(url), do=do) from None
