"""Damaged tables: a line says what is wrong, and nothing is written; never a traceback.

The odd files are changed by chance. `MAMUSHI_FUZZ=20000` tries more than the test does by itself.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi.errors import error_line
from mamushi_curate.tables import readers
from tests.support.odd_files import COLUMNS, LINES

TRIES = int(os.environ.get("MAMUSHI_FUZZ", "300"))
SEED = int(os.environ.get("MAMUSHI_FUZZ_SEED", "0"))


def changed(content: bytes, chance: random.Random) -> bytes:
    """Bytes with a few of them flipped, cut off, put in, taken out, or said twice."""
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 3, 9))):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(6):
            case 0 | 1 if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            case 2:
                del found[at : at + chance.randrange(1, 9)]
            case 3:
                found[at:at] = chance.randbytes(chance.randrange(1, 5))
            case 4:
                found[at:at] = found[max(0, at - 30) : at]
            case 5:
                found[at:at] = chance.choice(
                    (b'"', b",", b"\n", b"\r", b"\0", b"{", b"\xff", b"\\")
                )
    return bytes(found[: chance.randrange(len(found) + 1)] if not chance.randrange(9) else found)


def sources(folder: Path) -> Iterator[tuple[str, bytes]]:
    for lines in LINES:
        # Not those whose names or rows are what is odd of them.
        if len(lines.without([])) < 2000 and "\n" not in lines.name:
            yield lines.name, lines.pack(lines.without([]))
    for number, (name, write) in enumerate(COLUMNS):
        path = folder / f"{number}-{name}"
        write(path)
        yield name, path.read_bytes()


def attempt(do: Callable[[], object], count: Counter[str]) -> bool:
    """Whether something went well; a line that says why not is right as well."""
    try:
        do()
    except Exception as error:
        assert "\n" not in error_line(error).replace(str(getattr(error, "where", "")), "")
        count["refused"] += 1
        return False
    count["read"] += 1
    return True


def test_damaged_tables_are_read_or_refused_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, count = random.Random(SEED), Counter[str]()
    (tmp_path / "made").mkdir()
    known, work = [*sources(tmp_path / "made")], tmp_path / "work"
    for _ in range(TRIES):
        name, content = chance.choice(known)
        work.mkdir()
        data, listed, out = work / name, work / "l.txt", work / "out" / name
        data.write_bytes(changed(content, chance))
        listed.write_text(chance.choice("12ab"))
        attempt(lambda data=data: readers.read_file_columns(data, ["id", "text"]), count)  # type: ignore[misc]
        status = main(["apply", str(listed), "--data", str(data), "--out", str(out)])
        said = capsys.readouterr().err
        assert status in (0, 1, 2) and said.count("\n") <= 1, said
        assert status == 0 or not out.parent.exists() or not [*out.parent.iterdir()]
        count[f"exit {min(status, 1)}"] += 1
        shutil.rmtree(work)
    print(count)
    assert min(count.values()) > TRIES / 50 and len(count) == 4
