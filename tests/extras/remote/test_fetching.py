"""Files elsewhere, on servers of their own kinds on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi_extras.remote import urls
from mamushi_extras.remote.urls import fetch_copy, local_path, receipt_path, unsigned_url
from tests.support.servers import COMMIT, Hub, Site, serving

TABLE = b"text,bad\n" + b"".join(b"a text of number %d,%d\n" % (n, n % 2) for n in range(500))
SECRET = "X-Amz-Signature=s3cret"


@pytest.fixture
def site() -> Iterator[Site]:
    """A web server with a table, seen from a folder of results."""
    with serving(Site({"/data/texts.csv": TABLE})) as served:
        yield served


def test_a_file_is_fetched_once_and_known_again(site: Site) -> None:
    url = f"{site.url}/data/texts.csv"
    copy = fetch_copy(url)
    assert (copy.name, copy.read_bytes()) == ("texts.csv", TABLE)
    asked = len(site.asked)
    assert fetch_copy(url) == copy
    assert len(site.asked) == asked, "a job must not ask the server"
    assert json.loads(receipt_path(url).read_text())["url"] == url
    site.files["/data/texts.csv"] = TABLE + b"one more,1\n"
    assert fetch_copy(url).read_bytes() == TABLE
    assert fetch_copy(url, refresh=True).read_bytes().endswith(b"one more,1\n")
    copy.write_bytes(b"text,bad\nby hand,1\n")
    assert fetch_copy(url).read_bytes().endswith(b"one more,1\n")


def test_a_signature_is_no_part_of_a_name(site: Site) -> None:
    url = f"{site.url}/data/texts.csv"
    signed = f"{url}?page=2&{SECRET}&se=2026"
    assert unsigned_url(signed) == f"{url}?page=2"
    assert fetch_copy(signed) == local_path(f"{url}?page=2") != local_path(url)
    assert (f"/data/texts.csv?page=2&{SECRET}&se=2026", None) in site.asked
    assert "s3cret" not in "".join(p.read_text() for p in Path().rglob("*.json"))
    site.files.clear()
    with pytest.raises(UserError, match="cannot be fetched") as caught:
        fetch_copy(signed, refresh=True)
    assert "s3cret" not in str(caught.value)


FETCH = """
import sys
from mamushi_extras.remote.urls import UserError, fetch_copy, pin_commit
for url in sys.argv[1:]:
    try:
        url = pin_commit(url)
        print(url, fetch_copy(url, refresh=True))
    except UserError as error:
        print(error)
"""


def fetched(hub: Site, folder: Path, *urls: str) -> list[str]:
    """What a process says that fetches URLs of the hub, a line each."""
    told = subprocess.run(
        [sys.executable, "-c", FETCH, *urls],
        env=os.environ
        | {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "s3cret"}
        | {"HF_HOME": str(folder / "home")},
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert "s3cret" not in told.stdout + told.stderr
    return told.stdout.splitlines()


def test_the_hub_is_asked_by_its_own_protocol(tmp_path: Path) -> None:
    parts = {f"/data/train-{n}.csv": b"text,bad\ntext %d,%d\n" % (n, n) for n in range(2)}
    base = "hf://datasets/org/texts"
    urls = [f"{base}/data/train-*.csv", f"{base}/data/train-1.csv", f"{base}/data"]
    urls.append("hf://datasets/org/none/data")
    with serving(Hub({**parts, "/README.md": b"about"})) as hub:
        *copies, none = fetched(hub, tmp_path, *urls)
    (of_pattern, pattern), (of_file, file), (_, folder) = map(str.split, copies)
    assert "cannot be fetched (RepositoryNotFoundError 404)" in none
    assert of_pattern == f"{base}@{COMMIT}/data/train-*.csv"
    assert [p.read_bytes() for p in sorted(tmp_path.glob(pattern))] == [*parts.values()]
    assert (tmp_path / file).read_bytes() == parts["/data/train-1.csv"]
    assert sorted(p.name for p in (tmp_path / folder).iterdir()) == ["train-0.csv", "train-1.csv"]
    assert of_file.endswith("/data/train-1.csv")


@pytest.mark.parametrize("name", ["data/../../.bashrc", "a\0b"])
def test_no_server_says_where_outside_of_its_copy_a_file_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/evil", TABLE)
    monkeypatch.setattr(urls, "_remote_files", lambda *_: (files, {"/evil": name}))
    with pytest.raises(UserError, match="cannot be fetched"):
        fetch_copy("s3://bucket/data")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_a_bucket_is_read_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moto = pytest.importorskip("moto.server", reason="moto[s3] and flask are not installed")
    s3fs = pytest.importorskip("s3fs", reason="the extra remote is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    names = {"ACCESS_KEY_ID": "someone", "SECRET_ACCESS_KEY": "s3cret"}
    for name, value in {**names, "ENDPOINT_URL": f"http://{host}:{port}"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    files = s3fs.S3FileSystem(skip_instance_cache=True)
    files.mkdir("lab")
    files.pipe("lab/texts.csv", TABLE)
    words = ["--text", "text", "--forget", "bad == 1"]
    assert main(["init", "s3://lab/texts.csv", *words]) == 0
    assert "s3://lab/texts.csv\n  forget: 250 rows" in capsys.readouterr().out
    assert "path: s3://lab/texts.csv" in Path("mine.yaml").read_text()
    assert not [p for p in Path().rglob("*.*") if "s3cret" in p.read_text()]
    assert main(["init", "s3://lab/none.csv", *words]) == 2
    assert "s3://lab/none.csv: cannot be fetched (FileNotFound" in capsys.readouterr().err
    server.stop()
