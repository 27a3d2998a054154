"""Tables in a bucket, by moto's S3 on loopback: read, ranked from, and written back."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.data import remote

moto = pytest.importorskip("moto.server", reason="moto[s3] and flask are not installed")
s3fs = pytest.importorskip("s3fs", reason="the extra remote is not installed")

ROWS = [f"a text of number {n},{n % 2}" for n in range(60)]
TABLE = "\n".join(["text,bad", *ROWS, ""])


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    """A bucket with a table and a folder of two parts."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "someone")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        files = s3fs.S3FileSystem(skip_instance_cache=True)
        files.mkdir("lab")
        files.pipe("lab/texts.csv", TABLE.encode())
        for number, part in enumerate((ROWS[:30], ROWS[30:])):
            files.pipe(f"lab/parts/{number}.csv", "\n".join(["text,bad", *part, ""]).encode())
        yield files
    server.stop()


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ids.txt").write_text("2\n40\n")


def test_init_reads_a_bucket_and_names_it(bucket: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert not main(["init", "s3://lab/texts.csv", "--text", "text", "--forget", "bad == 1"])
    assert "s3://lab/texts.csv: 60 rows" in capsys.readouterr().out
    written = Path("mine.yaml").read_text()
    assert "path: s3://lab/texts.csv" in written
    assert not [p for p in Path().rglob("*.*") if "s3cret" in p.read_text()]


def test_apply_writes_back_whole_and_once(bucket: Any, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = "s3://lab/texts.csv", "s3://lab/new/a.csv"
    command = ["apply", "ids.txt", "--rows", "--data", data, "--out", out]
    assert not main(command)
    kept = [row for n, row in enumerate(ROWS, 1) if n not in (2, 40)]
    bucket.invalidate_cache()
    assert bucket.cat("lab/new/a.csv").decode() == "\n".join(["text,bad", *kept, ""])
    receipt = json.loads(bucket.cat("lab/new/a.csv.receipt.json"))
    assert receipt["data"]["path"] == "s3://lab/texts.csv"
    assert receipt["written"]["path"] == "s3://lab/new/a.csv"
    assert not [p for p in remote.OUTGOING.rglob("*") if p.is_file()]
    assert not main(command)
    assert "there already, by the same command" in capsys.readouterr().out
    Path("ids.txt").write_text("3\n")
    assert main(command)
    assert "s3://lab/new/a.csv: exists already" in capsys.readouterr().err


def test_a_folder_goes_on_where_sending_broke_off(
    bucket: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["apply", "ids.txt", "--rows", "--data", "s3://lab/parts"]
    command += ["--out", "s3://lab/fewer"]
    put = s3fs.S3FileSystem.put_file

    def breaks(self: Any, local: str, to: str) -> None:
        if to.endswith("fewer/1.csv"):
            raise ConnectionResetError
        put(self, local, to)

    with monkeypatch.context() as patch:
        patch.setattr(s3fs.S3FileSystem, "put_file", breaks)
        assert main(command)
    assert "s3://lab/fewer: did not answer, or broke off" in capsys.readouterr().err
    assert not main(command)
    bucket.invalidate_cache()
    names = {os.path.basename(path) for path in bucket.ls("lab/fewer")}
    assert names == {"0.csv", "1.csv"}
    rows = [row for n in "01" for row in bucket.cat(f"lab/fewer/{n}.csv").decode().split("\n")]
    kept = [row for n, row in enumerate(ROWS, 1) if n not in (2, 40)]
    assert [row for row in rows if row not in ("", "text,bad")] == kept


def test_a_bucket_that_is_not_there_is_one_line(
    bucket: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["init", "s3://lab/none.csv", "--text", "text", "--forget", "bad == 1"]
    assert main(asked)
    assert "s3://lab/none.csv: no such file there" in capsys.readouterr().err
