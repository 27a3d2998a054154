"""Files elsewhere, on servers of their own kinds on loopback."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi.config.complete import complete
from mamushi.errors import UserError
from mamushi.running import remote
from tests.support.servers import COMMIT, Hub, Site, serving

TABLE = b"text,bad\n" + b"".join(b"a text of number %d,%d\n" % (n, n % 2) for n in range(500))
SECRET = "X-Amz-Signature=s3cret"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A web server with a table, seen from a folder of results."""
    monkeypatch.chdir(tmp_path)
    with serving(Site({"/data/texts.csv": TABLE})) as served:
        yield served


def test_a_file_is_fetched_once_and_known_again(site: Site) -> None:
    url = f"{site.url}/data/texts.csv"
    copy = remote.fetch_copy(url)
    assert (copy.name, copy.read_bytes()) == ("texts.csv", TABLE)
    asked = len(site.asked)
    assert remote.fetch_copy(url) == copy
    assert len(site.asked) == asked, "a job must not ask the server"
    receipt = json.loads(copy.parent.with_suffix(".json").read_text())
    assert receipt["url"] == url
    site.files["/data/texts.csv"] = TABLE + b"one more,1\n"
    assert remote.fetch_copy(url).read_bytes() == TABLE
    assert remote.fetch_copy(url, refresh=True).read_bytes().endswith(b"one more,1\n")
    copy.write_bytes(b"text,bad\nby hand,1\n")
    assert remote.fetch_copy(url).read_bytes().endswith(b"one more,1\n")


@pytest.mark.parametrize("tags", [True, False])
def test_what_broke_off_goes_on(site: Site, tags: bool) -> None:
    url, site.tags = f"{site.url}/data/texts.csv", tags
    site.breaks_after = 2000
    with pytest.raises(UserError, match=r"texts.csv: did not answer, or broke off \(\w+\); run"):
        remote.fetch_copy(url)
    assert not remote.copy_path(url).exists()
    site.breaks_after = None
    assert remote.fetch_copy(url).read_bytes() == TABLE
    assert (("/data/texts.csv", "bytes=2000-") in site.asked) is tags


@pytest.mark.parametrize(
    ("status", "line"),
    [(403, r"no access \(403\)"), (404, "no such file there"), (500, "did not answer, or broke")],
)
def test_each_failure_is_one_line_without_secrets(site: Site, status: int, line: str) -> None:
    site.status = status
    with pytest.raises(UserError, match=f"^{site.url}/data/texts.csv: {line}") as caught:
        remote.fetch_copy(f"{site.url}/data/texts.csv?{SECRET}")
    assert "s3cret" not in str(caught.value)


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x.csv: did not answer, or broke off \(ConnectionErr"):
        remote.fetch_copy("http://127.0.0.1:9/x.csv")


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("https://me:s3cret@host/x.csv", "https://host/x.csv: has a name or a password in it"),
        ("http://example.org/x.csv", "http://example.org/x.csv: is not encrypted"),
        ("hf://org/model/x.csv", "is no data set of the hub"),
        ("s3://bucket/*/x.csv", "has a pattern of folders in it"),
    ],
)
def test_what_is_no_place_for_data_is_refused(url: str, line: str) -> None:
    if url.startswith("s3"):
        pytest.importorskip("s3fs", reason="the extra remote is not installed")
    with pytest.raises(UserError, match=line.replace("*", r"\*")) as caught:
        remote.fetch_copy(url)
    assert "s3cret" not in str(caught.value)


def test_without_its_package_a_bucket_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"needs the package gcsfs; pip install '.*\[remote\]'"):
        remote.fetch_copy("gs://bucket/x.csv")


def test_a_signature_is_no_part_of_a_name(site: Site) -> None:
    url = f"{site.url}/data/texts.csv"
    signed = f"{url}?page=2&{SECRET}&se=2026"
    assert remote.unsigned(signed) == f"{url}?page=2"
    assert remote.fetch_copy(signed) == remote.copy_path(f"{url}?page=2") != remote.copy_path(url)
    assert (f"/data/texts.csv?page=2&{SECRET}&se=2026", None) in site.asked
    assert "s3cret" not in "".join(p.read_text() for p in Path().rglob("*.json"))


def test_an_unknown_ending_is_refused_before_it_is_fetched(site: Site) -> None:
    site.files["/x.xlsx"] = b"x" * 100
    with pytest.raises(UserError, match=r"/x.xlsx: cannot tell the format"):
        remote.fetch_copy(f"{site.url}/x.xlsx")


def test_a_configuration_names_urls_and_jobs_read_copies(site: Site) -> None:
    url = f"{site.url}/data/texts.csv"
    config = {
        "grid": {"datasets": ["d"], "models": ["m"], "selectors": ["stack"], "budgets": [0.1]},
        "datasets": {
            "d": {
                "kind": "table",
                "path": url,
                "forget": {"where": "bad == 1"},
                "sections": {"inference": 1.0},
            }
        },
        "models": {"m": {"embeddings": {"words": 16}}},
    }
    full = complete(config)
    assert full["datasets"]["d"]["path"] == str(remote.copy_path(url))
    site.status = 403
    assert complete(config) == full
    shutil.rmtree("results")
    with pytest.raises(UserError, match=r"datasets.d.path: http.*texts.csv: no access \(403\)"):
        complete(config)


def test_check_fetches_what_has_changed(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{site.url}/data/texts.csv"
    Path("mine.yaml").write_text(
        "grid: {datasets: [d], models: [m], seeds: [0], selectors: [stack], budgets: [0.1]}\n"
        f"datasets: {{d: {{kind: table, path: '{url}', forget: {{where: bad == 1}}, "
        "sections: {inference: 1.0}}}\nmodels: {m: {embeddings: {words: 16}}}\n"
    )
    assert main(["check", "--configfile", "mine.yaml"]) == 0
    assert "250 forget texts" in capsys.readouterr().out
    site.files["/data/texts.csv"] = TABLE + b"one more,1\n"
    assert main(["check", "--configfile", "mine.yaml"]) == 0
    assert "251 forget texts" in capsys.readouterr().out


def test_the_hub_is_asked_by_its_own_protocol(tmp_path: Path) -> None:
    parts = {f"/data/train-{n}.csv": b"text,bad\ntext %d,%d\n" % (n, n) for n in range(2)}
    with serving(Hub({**parts, "/README.md": b"about"})) as hub:
        code = (
            "import sys; from mamushi.running import remote\n"
            "for url in sys.argv[1:]:\n"
            "    url = remote.pinned(url); print(url)\n"
            "    print(remote.fetch_copy(url, refresh=True))\n"
        )
        base = "hf://datasets/org/texts"
        urls = [f"{base}/data/train-*.csv", f"{base}/data/train-1.csv", f"{base}/data"]
        told = subprocess.run(
            [sys.executable, "-c", code, *urls],
            env={**os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "s3cret"},
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
        )
    assert told.returncode == 0, told.stderr
    of_pattern, pattern, of_file, file, _, folder = told.stdout.splitlines()
    assert of_pattern == f"{base}@{COMMIT}/data/train-*.csv"
    assert [p.read_bytes() for p in sorted(tmp_path.glob(pattern))] == [*parts.values()]
    assert (tmp_path / file).read_bytes() == parts["/data/train-1.csv"]
    assert sorted(p.name for p in (tmp_path / folder).iterdir()) == ["train-0.csv", "train-1.csv"]
    assert of_file.endswith("/data/train-1.csv")
    assert "s3cret" not in told.stdout + told.stderr


@pytest.mark.parametrize("name", ["data/../../.bashrc", "..", "a/..", "a\0b"])
def test_no_server_says_where_outside_of_its_copy_a_file_lies(name: str) -> None:
    with pytest.raises(UserError, match="has a file that is called") as refused:
        remote.local_name(name, "s3://bucket/data?X-Amz-Signature=s3cret")
    assert "s3cret" not in str(refused.value)
    assert remote.local_name("data/a..b/..c.csv", "s3://bucket/data") == "data/a..b/..c.csv"
