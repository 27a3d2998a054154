"""Which stage commands run in a folder, found out from /proc and not from the program's locks."""

import contextlib
from pathlib import Path


def commands(folder: Path) -> dict[int, list[str]]:
    """The stage commands that run in a folder: what follows ``python -m mamushi``, by pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # Processes end while they are looked at.
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                python = words[0].rpartition("/")[2].startswith("python")
                ours = words[1:3] == ["-m", "mamushi"]
                if python and ours and (entry / "cwd").samefile(folder):
                    found[int(entry.name)] = words[3:]
    return found
