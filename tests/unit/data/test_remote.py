"""A table in an S3 bucket, on a server of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mamushi.artifacts import remote
from mamushi.configuration.complete import ConfigError, complete
from mamushi.data import head
from mamushi.data.loaders import table
from mamushi.stages import examples

URL = "s3://lab/texts/mine.csv"
TEXTS = b"text,score\n" + b"".join(b"text %d,0.%d\n" % (i, i) for i in range(1, 9))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    moto = pytest.importorskip("moto.server")
    started = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    yield "http://{}:{}".format(*started.get_host_and_port())
    started.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The bucket `lab` with the table in it, where the environment points to."""
    boto3 = pytest.importorskip("boto3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    remote.identity.cache_clear()
    found = boto3.resource("s3").Bucket("lab")
    found.create()
    found.put_object(Key="texts/mine.csv", Body=TEXTS)
    return found


def config(url: str) -> dict[str, Any]:
    own = {"kind": "table", "path": url, "forget": {"where": "score > 0.5"}}
    return complete(
        {
            "grid": {"datasets": ["own"], "models": ["lab"]},
            "datasets": {"own": {**own, "sections": {"inference": 1}}},
            "models": {"lab": {"source": None, "contaminated": True}},
        }
    )


def test_a_table_in_a_bucket_is_read_as_one_on_disk(bucket: Any, tmp_path: Path) -> None:
    given = config(URL)
    head.check(given)
    raw = table.load(given["datasets"]["own"], tmp_path / "downloads")
    assert raw.texts == [f"text {i}" for i in range(1, 9)]
    assert raw.forget.tolist() == [False] * 5 + [True] * 3
    assert list(raw.sources) == ["mine.csv"]
    # The copy is not kept.
    assert list((tmp_path / "downloads").iterdir()) == []


def test_another_content_is_another_input(bucket: Any) -> None:
    before = examples.settings(config(URL), "own")
    assert list(before.inputs) == [URL]
    assert examples.settings(config(URL), "own") == before
    bucket.put_object(Key="texts/mine.csv", Body=TEXTS.replace(b"text 3", b"text x"))
    remote.identity.cache_clear()
    assert examples.settings(config(URL), "own").inputs != before.inputs


def test_what_is_not_there_or_out_of_reach_is_one_line(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"^datasets.own: s3://lab/none.csv: no such object; "):
        head.check(config("s3://lab/none.csv"))
    with pytest.raises(ConfigError, match=r"path: 's3://lab/a.txt' is not allowed; its ending"):
        config("s3://lab/a.txt")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    remote.identity.cache_clear()
    with pytest.raises(ConfigError, match=f"^datasets.own: {URL}: cannot be read") as caught:
        head.check(config(URL))
    assert len(caught.value.lines) == 1
