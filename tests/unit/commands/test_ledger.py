"""The ledger of deletions: each request from the state before it, and no byte changes unnoticed."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from scipy.stats import t

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256, write_json
from mamushi.artifacts.tables import write_table
from mamushi.commands import _removal_list
from mamushi.errors import UserError
from mamushi.evidence import ledger
from mamushi.running import locks
from tests.support.removal_files import CELL, command, removal_list

RETRAINED, LISTED = "retrained/mamushi/beta0.50", "neggrad/lists/agreed"


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plain(name: str, *ids: str) -> Path:
    path = Path(f"{name}.txt")
    path.write_text("\n".join(ids), encoding="utf-8")
    return path


def table(column: str = "key") -> Path:
    data = Path("comments.csv")
    rows = "".join(f"c{i},text {i}\n" for i in range(1, 9))
    data.write_text(f"{column},text\n{rows}", encoding="utf-8")
    return data


def entry(number: int) -> dict[str, Any]:
    found: dict[str, Any] = read_json(f"ledger/{number:06}.json")
    return found


def perplexity(forget: float, retain: float, pattern: str, **wildcards: Any) -> None:
    values = {"forget": forget, "retain": retain}
    columns = {
        "domain": list(values),
        "texts": [2, 2],
        "tokens": [9, 9],
        "nll": [1.0, 1.0],
        "perplexity": list(values.values()),
    }
    write_table(pattern.format(**wildcards), schemas.PERPLEXITY, columns, metadata={})


def test_a_request_starts_from_the_state_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    data = table()
    made = removal_list(Path("results"), {"c2": ["c5"], "c4": []}, data=data, column="key")
    command("ledger", "add", made, "--data", data)
    command("ledger", "add", plain("second", "c5", "c7", "c8"), plain("third", "c8"))
    assert entry(1)["removed"] == {"new": ["c2", "c4", "c5"], "again": []}
    assert entry(2)["removed"] == {"new": ["c7", "c8"], "again": ["c5"]}
    assert entry(2)["previous"] == entry(1)["sha256"]
    assert entry(1)["data"]["comments.csv"] == sha256(data)
    assert entry(1)["manifests"] == {
        made.with_suffix(".json").as_posix(): sha256(made.with_suffix(".json"))
    }
    assert "5 ids are removed" not in capsys.readouterr().out
    command("ledger", "show")
    said = capsys.readouterr().out
    assert "entry 2: 2 ids removed, 1 removed before" in said
    assert f"5 ids are removed; the last digest is {entry(2)['sha256']}" in said
    # The data that remain after each of them: by the column of the run whose list came first.
    for number, rest in ((1, "136 78"), (2, "1 3 6")):
        command("apply", f"ledger/{number:06}.json", "--data", data, "--out", f"{number}.csv")
        rows = Path(f"{number}.csv").read_text().splitlines()[1:]
        assert [row[1] for row in rows] == [*rest.replace(" ", "")]
    # The same request again, as after a kill that came too late, is no second one.
    command("ledger", "add", made, "--data", data)
    assert "recorded before" in capsys.readouterr().out
    assert len(ledger.entries(Path("ledger"))) == 2
    assert command("ledger", "verify") == 0


def with_models(root: Path, seeds: Sequence[int] = (0, 1, 2)) -> Path:
    """A list, the model retrained without it and an unlearned one, with those of other seeds."""
    made = removal_list(root, {"c2": ["c5"], "c4": []}, data=table())
    for seed in seeds:
        cell = {**CELL, "seed": seed}
        perplexity(30.0 + seed, 20.0, paths.PERPLEXITY, **cell, arm=RETRAINED)
        perplexity(35.0, 18.0 - seed, paths.PERPLEXITY, **cell, arm="gold")
    card = {"inputs": {"removal": sha256(made)}}
    write_json(paths.CARD.format(**CELL, arm=RETRAINED), card)
    Path(paths.TRAINED.format(**CELL, arm=RETRAINED)).write_bytes(b"weights")
    # Of another list, although in its place.
    other = RETRAINED.replace("retrained", "salun")
    write_json(paths.CARD.format(**CELL, arm=other), {"inputs": {"removal": "0" * 64}})
    write_json(paths.CARD.format(**CELL, arm=LISTED), card)
    perplexity(33.0, 19.0, paths.PERPLEXITY, **CELL, arm=LISTED)
    return made


def test_it_names_models_and_their_distance_from_gold(capsys: pytest.CaptureFixture[str]) -> None:
    made = with_models(Path("results"))
    Path("model/sub").mkdir(parents=True)
    Path("model/sub/weights").write_bytes(b"ours")
    command("ledger", "add", made, "--model", "model")
    own = paths.CARD.format(**CELL, arm=LISTED)
    retrained = [p.format(**CELL, arm=RETRAINED) for p in (paths.CARD, paths.TRAINED)]
    assert entry(1)["models"] == {p: sha256(p) for p in ("model/sub/weights", own, *retrained)}
    second, first = entry(1)["measured"]
    assert len(first["tables"]) == 6 and len(second["tables"]) == 2
    # |30 + s - 35| + |20 - 18 + s| is 7 whatever s; the forget perplexity is 30, 31, 32.
    same = {"value": 7.0, "mean": 7.0, "low": 7.0, "high": 7.0, "seeds": 3}
    assert first["numbers"]["sad"] == same
    half = float(t.ppf(0.975, 2)) * (1 / 3) ** 0.5
    told = first["numbers"]["ppl_forget"]
    assert (told["value"], told["mean"], told["seeds"]) == (30.0, 31.0, 3)
    assert [told["low"], told["high"]] == pytest.approx([31 - half, 31 + half])
    one = {"value": 3.0, "mean": 3.0, "low": None, "high": None, "seeds": 1}
    assert second["numbers"]["sad"] == one
    said = capsys.readouterr().out
    assert "30.000   mean over 3 seeds 31.000 [28.516, 33.484]" in said
    assert "3.000   one seed, whose error is unknown" in said
    # Without gold of its own seed there is no distance, whatever other seeds have.
    gold = paths.PERPLEXITY.format(**CELL, arm="gold")
    others = [Path(name).absolute() for name in first["tables"] if name != gold]
    found = ledger.numbers_of(Path(first["perplexity"]).absolute(), others)
    assert (len(others), set(found)) == (5, {"ppl_forget", "ppl_retain"})
    # More seeds later, and a number that does not follow from the tables.
    perplexity(30.0, 20.0, paths.PERPLEXITY, **{**CELL, "seed": 9}, arm=RETRAINED)
    assert command("ledger", "verify") == 0
    path = Path("ledger/000001.json")
    fields = {k: v for k, v in entry(1).items() if k not in ("digests", "sha256")}
    fields["measured"][1]["numbers"]["sad"]["value"] = 2.0
    path.write_bytes(ledger._written(ledger.sealed(fields)))
    with pytest.raises(UserError, match="1 differences"):
        command("ledger", "verify")
    assert "entry 1, measured: " in capsys.readouterr().out


def flipped(rng: random.Random, path: Path, place: int, told: Callable[[], Any]) -> Any:
    """What is told while a bit of this byte is another."""
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[place] ^= 1 << rng.randrange(8)
    path.write_bytes(changed)
    try:
        return told()
    finally:
        path.write_bytes(whole)


def test_every_changed_byte_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = with_models(Path("results"))
    command("ledger", "add", made, "--data", "comments.csv")
    command("ledger", "add", plain("b", "c7", "ü"))
    command("ledger", "add", plain("c", "c7", "c8"))
    rng = random.Random(0)

    def verified() -> list[str]:
        capsys.readouterr()
        with pytest.raises(UserError, match="differences"):
            command("ledger", "verify")
        return capsys.readouterr().out.splitlines()

    previous = None
    for path in ledger.entries(Path("ledger")):
        number = int(path.stem)
        links = {"entry": number, "previous": previous}
        whole = path.read_bytes()
        for place in range(len(whole)):
            changed = bytearray(whole)
            changed[place] ^= 1 << rng.randrange(8)
            monkeypatch.setattr(Path, "read_bytes", lambda _, changed=changed: bytes(changed))
            _, found = ledger.opened(path, links)
            assert found and all(each.entry == number for each in found), (path, place)
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        for place in rng.sample(range(len(whole)), 10):
            # Those after it link to what it was.
            said = flipped(rng, path, place, verified)
            assert said and all(line.startswith(f"entry {number}, ") for line in said)
        # In a field, it is that field.
        path.write_bytes(whole.replace(b'"lists": {\n  "', b'"lists": {\n  "x'))
        (said,) = verified()
        path.write_bytes(whole)
        assert said.startswith(f"entry {number}, lists: ledger/{path.name}: ")
        previous = entry(number)["sha256"]
    first = entry(1)
    named = [(field, name) for field in ledger.NAMED for name in first[field]]
    named += [("measured", name) for each in first["measured"] for name in each["tables"]]
    assert len(named) == 1 + 1 + 3 + 3 + 8
    for field, name in named:
        place = rng.randrange(Path(name).stat().st_size)
        # Gold's table is behind the numbers of two models.
        (said,) = {*flipped(rng, Path(name), place, verified)}
        assert said.startswith(f"entry 1, {field}: {Path(name).absolute()}: has another content")
    # Another place, with all that is named; then without one of the files, and without an entry.
    shutil.copytree(Path.cwd(), Path.cwd().with_name("moved"))
    assert command("ledger", "verify", "--ledger", "../moved/ledger") == 0
    os.chdir("../moved")
    Path("b.txt").unlink()
    assert [line.split(": ")[::2] for line in verified()] == [["entry 2, lists", "no such file"]]
    Path("ledger/000002.json").unlink()
    assert [line.split(": ")[::2] for line in verified()] == [["entry 2, whole", "no such file"]]


def test_an_entry_that_is_forged_whole_is_not_what_the_next_one_links_to() -> None:
    for name in "abc":
        command("ledger", "add", plain(name, name, "z"))
    fields = {k: v for k, v in entry(2).items() if k not in ("digests", "sha256")}
    fields["removed"] = {"new": [], "again": ["z"]}
    Path("ledger/000002.json").write_bytes(ledger._written(ledger.sealed(fields)))
    found = list(ledger.differences(Path("ledger"), lambda lists: ([lists[0].stem, "z"], None)))
    assert [(each.entry, each.field) for each in found] == [(2, "removed"), (3, "previous")]
    with pytest.raises(UserError, match="entry 3, previous"):
        command("ledger", "add", plain("d", "d"))


def forked(does: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            does()
            status = 0
        finally:
            os._exit(status)
    return child


@pytest.mark.slow
def test_fifty_requests_under_random_kills_are_a_valid_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kill at a random line of what locks and writes, whatever the speed of the machine; the
    same request again until it is through."""
    monkeypatch.setattr(ledger, "versions", dict)
    folder, rng, kills = Path("ledger"), random.Random(0), 0
    watched = {locks.__file__, sys.modules["mamushi.artifacts.files"].__file__}

    def add(number: int, line: int) -> None:
        count = 0

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal count
            if frame.f_code.co_filename not in watched:
                return None
            count += event == "line"
            if count == line:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        ids = [f"own{number}", f"both{number // 2}"]
        content = {"lists": {f"{number}.txt": "0" * 64}, "named_by": None}
        ledger.append(folder, content, ids)

    for number in range(1, 51):
        status = -1
        while status:
            line = rng.randrange(1, 100)
            status = os.waitpid(forked(partial(add, number, line)), 0)[1]
            assert status in (0, signal.SIGKILL)
            kills += status != 0
            # Whole at every moment, with this request or without it.
            assert len(ledger.read(folder)) in (number - 1, number)
    found = ledger.read(folder)
    assert len(found) == 50 and kills > 25
    own, both = ({f"own{i}" for i in range(1, 51)}, {f"both{i // 2}" for i in range(1, 51)})
    assert ledger.after(found).ids == own | both
    assert sum(len(each["removed"]["again"]) for each in found) == 50 - len(both)
    assert {path.name for path in folder.iterdir()} == {
        *(f"{number:06}.json" for number in range(1, 51)),
        ledger.LOCK,
    }


def test_of_requests_at_the_same_time_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "POLL", 0.001)

    def adds(name: str) -> None:
        for number in range(8):
            content = {"lists": {f"{name}{number}": "0" * 64}, "named_by": None}
            ledger.append(Path("ledger"), content, [f"{name}{number}"])

    children = [forked(partial(adds, name)) for name in "abc"]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    found = ledger.read(Path("ledger"))
    assert ledger.after(found).ids == {f"{name}{number}" for name in "abc" for number in range(8)}
    assert len(found) == 24


def test_without_locks_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOLCK, "none")

    monkeypatch.setattr("fcntl.flock", refuses)
    with pytest.raises(UserError, match="ledger: its file system has no locks"):
        command("ledger", "add", plain("a", "a"))
    assert ledger.entries(Path("ledger")) == []


def test_ids_of_another_kind_are_refused() -> None:
    """Of rows that are numbers, those of the rest of a table are others."""
    made = removal_list(Path("first"), {"2": []}, data=table(), column=None)
    command("ledger", "add", made)
    Path("comments.csv").write_text("key,text\nc1,text 1\n")
    again = removal_list(Path("second"), {"2": []}, data=Path("comments.csv"), column=None)
    with pytest.raises(UserError, match="a ledger per training set"):
        command("ledger", "add", again)
    with pytest.raises(UserError, match="a ledger per training set"):
        command("ledger", "add", made, again, "--ledger", "other")
    with pytest.raises(UserError, match="is not the file that was ranked"):
        command("apply", "ledger/000001.json", "--data", "comments.csv", "--out", "x.csv")
    assert _removal_list.read(Path("ledger/000001.json")).ids == ["2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show"], "ledger: no ledger; add a request, or name another"),
        (["verify"], "ledger: no ledger; add a request, or name another"),
        (["add", "missing.txt"], "missing.txt: no such file"),
        (["add", "manifest.json"], "is no entry of a ledger; give the list itself"),
        (["add", "000001.json"], "entry 1, sha256: 000001.json: is not the digest of its"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], said: str) -> None:
    for name in ("manifest.json", "000001.json"):
        Path(name).write_text(json.dumps({"ids": 1}))
    with pytest.raises(UserError) as error:
        command("ledger", *words)
    assert said in str(error.value)
