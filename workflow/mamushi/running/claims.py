"""Nothing is computed twice at the same time, and nothing that was finished is lost.

When Snakemake is killed, its jobs live on, on a cluster for hours. Started again, it knows nothing
of them, deletes what they have written so far and submits the same commands again. So a command
first *claims* its primary output: it locks a file in results/claims and waits while another process
holds it. If that one finishes, and was the same command on the same inputs, what it made is taken
over; if it was killed, this one computes, from the checkpoint that it left.

A stage declares with literals what its options name: ``WRITES``, the outputs, of which the first
given one is the primary; and ``READS``, the inputs, or None where it reads more than its command
line names. Results of the latter are not taken over, since nobody could say that they are current.

Whatever is written through ``files.atomic`` is hard-linked into results/claims before it gets its
name, and a record of all of it is made when the command succeeds. The links are the same files
under further names: they take no space while the outputs are there, keep what was deleted until the
same command asks for it, and go when another command claims the output, or with all of
results/claims after a run that succeeded. At most one version per output is kept.

Without hard links or locks (some network file systems have none) all works as it would without
claims. So it does for outputs that lie elsewhere than in results, as in a command by hand.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from mamushi.artifacts import files, paths
from mamushi.errors import UserError
from mamushi.running import locks

NO_LINKS = {
    *(errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS),
    *(errno.EXDEV, errno.EMLINK, errno.EACCES),
}
"""What a file system answers that has no hard links, or none from here to there."""

RECORD, LOCK, QUEUE, WANTED = "record.json", "lock", "queue", "wanted.json"
"""In the folder of an output: what was finished; who writes; what all hold who want to; and what
the last one to come wants."""


class Claim:
    """The right to write a command's outputs, and the ledger of what it writes."""

    def __init__(
        self, folder: Path, stage: str, args: argparse.Namespace, argv: Sequence[str]
    ) -> None:
        self.folder, self.stage = folder, stage
        module: ModuleType = args.module
        self.outputs = _named(args, getattr(module, "WRITES", ()))
        reads: Sequence[str] | None = getattr(module, "READS", None)
        self.identity = None if reads is None else _identity(stage, argv, _named(args, reads))
        self.kept: dict[str, dict[str, Any]] = {}

    def taken_over(self) -> str | None:
        """Put back what the same command finished before, and say who made it and when.

        None if there is nothing of that kind; whatever else is there has then been deleted.
        """
        record = self._record()
        try:
            if record is not None:
                self._put_back(record)
                return f"{locks.spelled(record['by'])}, finished at {record['finished']}"
        except OSError as error:
            print(f"not taken over: {error}", file=sys.stderr, flush=True)
        self.clear()
        return None

    def _put_back(self, record: dict[str, Any]) -> None:
        for target, entry in record["files"].items():
            path = Path(target)
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = files.part_of(path)
            beside.unlink(missing_ok=True)
            os.link(self.folder / entry["link"], beside)
            os.replace(beside, path)
            # Renaming onto another name of the same file does nothing.
            beside.unlink(missing_ok=True)
            os.utime(path)

    def _record(self) -> dict[str, Any] | None:
        """The record of the same command, if what it names is all there and unharmed."""
        if self.identity is None:
            return None
        try:
            record: dict[str, Any] = files.read_json(self.folder / RECORD)
            if record["identity"] != self.identity:
                return None
            for entry in record["files"].values():
                if files.sha256(self.folder / entry["link"]) != entry["sha256"]:
                    return None
        except (UserError, OSError, KeyError, TypeError):
            return None
        return record

    def keep(self, part: Path, target: Path) -> None:
        """Link a whole file into the ledger, which is about to get the name ``target``."""
        if self.identity is None or not any(_within(target, path) for path in self.outputs):
            return
        known = self.kept.get(str(target))
        link = str(len(self.kept)) if known is None else known["link"]
        try:
            (self.folder / link).unlink(missing_ok=True)
            os.link(part, self.folder / link)
            self.kept[str(target)] = {"link": link, "sha256": files.sha256(part)}
        except OSError as error:
            self._without(error)

    def finish(self) -> None:
        """Record that all is written."""
        if self.identity is None:
            return
        written = [Path(target) for target in self.kept]
        if not all(any(_within(path, output) for path in written) for output in self.outputs):
            # Not through `files.atomic`: then there is nothing to take over.
            return
        record = {
            "identity": self.identity,
            "by": locks.myself(self.stage),
            "finished": time.strftime("%Y-%m-%d %H:%M:%S"),
            "files": self.kept,
        }
        try:
            files.write_json(self.folder / RECORD, record)
        except (UserError, OSError) as error:
            self._without(error)

    def _without(self, error: Exception) -> None:
        """Go on without a ledger; that costs nothing but time, and only after a kill."""
        self.identity = None
        if not (isinstance(error, OSError) and error.errno in NO_LINKS):
            print(f"no record of the results is kept: {error}", file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):
            self.clear()

    def clear(self) -> None:
        """Delete all that is kept."""
        _clear(self.folder)


@contextlib.contextmanager
def claimed(
    stage: str, args: argparse.Namespace, argv: Sequence[str], root: str = paths.CLAIMS
) -> Iterator[Claim | None]:
    """Within the block, no other process writes the outputs of this command.

    ``args`` are the options of ``argv`` with the stage's ``module``. Gives None where nothing is
    claimed: for a stage without ``WRITES``, outputs outside results, a file system without locks.
    Of several processes that `accelerate launch` starts, the first claims for all, and does not
    wait, because the others would in vain: raises ``UserError`` if another command is at work.
    """
    outputs = _named(args, getattr(args.module, "WRITES", ()))
    inside = bool(outputs) and _within(outputs[0], Path(root).parent)
    if not inside or int(os.environ.get("RANK", "0")) > 0:
        yield None
        return
    primary = os.path.relpath(outputs[0])
    # Several stages write to one folder of tables, each its own.
    folder = Path(root) / hashlib.sha256(f"{stage} {primary}".encode()).hexdigest()[:16]
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    command = hashlib.sha256(json.dumps([stage, list(argv)]).encode()).hexdigest()
    try:
        lock = _locked(folder, stage, primary, command, wait=not several)
    except OSError as error:
        if error.errno not in locks.UNSUPPORTED:
            raise
        print(f"no locks in {root} ({error.strerror}): going without", file=sys.stderr, flush=True)
        yield None
        return
    with lock:
        _raise_if_superseded(folder, primary, command)
        claim = Claim(folder, stage, args, argv)
        if several:
            claim.identity = None
        files.keepers.append(claim.keep)
        try:
            yield claim
        except BaseException:
            # What was written before the failure is in its place, and no whole result.
            with contextlib.suppress(OSError):
                claim.clear()
            raise
        finally:
            files.keepers.remove(claim.keep)


def _locked(folder: Path, stage: str, primary: str, command: str, *, wait: bool) -> locks.Lock:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        # The folder may be deleted under our feet: a run that ends clears what nobody holds.
        with contextlib.suppress(FileNotFoundError):
            if wait:
                queue = locks.attempt(folder / QUEUE, stage, shared=True)
                with queue or contextlib.nullcontext():
                    files.write_json(folder / WANTED, {"command": command})
                    return locks.acquire(folder / LOCK, stage, f"which writes the same {primary}")
            lock = locks.attempt(folder / LOCK, stage)
            if lock is not None:
                return lock
            who = locks.spelled(locks.holder(folder / LOCK))
            raise UserError(f"is being written by {who}", where=primary, do="wait until it ends")


def _raise_if_superseded(folder: Path, primary: str, command: str) -> None:
    """Raise ``UserError`` if another command for the same output came while this one waited.

    Then this one's Snakemake was killed, and the settings have changed since: its results would
    overwrite those that are wanted now.
    """
    try:
        wanted = files.read_json(folder / WANTED).get("command", command)
    except (UserError, OSError, AttributeError):
        return
    if wanted != command:
        raise UserError(
            "another command for it, with other settings, came after this one; nothing was written",
            where=primary,
        )


@contextlib.contextmanager
def alone(name: str, stage: str, reason: str, root: str = paths.CLAIMS) -> Iterator[None]:
    """Within the block, no other process is in the block of this ``name``; waits for its turn.

    ``reason`` ends the sentence that is said while waiting: see ``locks.acquire``. Where the file
    system has no locks, all go in.
    """
    folder = Path(root) / hashlib.sha256(name.encode()).hexdigest()[:16]
    lock: locks.Lock | None = None
    try:
        while lock is None:
            folder.mkdir(parents=True, exist_ok=True)
            # The folder may be deleted under our feet: see `clear`.
            with contextlib.suppress(FileNotFoundError):
                lock = locks.acquire(folder / LOCK, stage, reason)
    except OSError as error:
        if error.errno not in locks.UNSUPPORTED:
            raise
    with lock or contextlib.nullcontext():
        try:
            yield
        finally:
            if lock:
                with contextlib.suppress(OSError):
                    lock.path.unlink()
                    folder.rmdir()


def clear(root: str | os.PathLike[str] = paths.CLAIMS) -> None:
    """Forget all results but those that a living process writes, or waits for."""
    for folder in [path for path in Path(root).glob("*") if path.is_dir()]:
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for name in (LOCK, QUEUE):
                lock = locks.attempt(folder / name, "clear")
                if lock is None:
                    break
                held.enter_context(lock)
            else:
                _clear(folder)
                for name in (WANTED, QUEUE, LOCK):
                    (folder / name).unlink(missing_ok=True)
                folder.rmdir()
    with contextlib.suppress(OSError):
        Path(root).rmdir()


def _clear(folder: Path) -> None:
    """Delete all but the locks; the record first, which says that the rest is whole."""
    (folder / RECORD).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.name not in (LOCK, QUEUE, WANTED):
            path.unlink(missing_ok=True)


def _identity(stage: str, argv: Sequence[str], inputs: Sequence[Path]) -> str:
    """A digest of everything that a command's results depend on.

    Settings, among them the digest of the code, are in the command line. Inputs count by size and
    time, as they do in ``make``: reading them all would cost more than most commands.
    """
    stats = []
    for path in inputs:
        with contextlib.suppress(OSError):
            found = os.stat(path)
            stats.append([str(path), found.st_size, found.st_mtime_ns])
    return hashlib.sha256(json.dumps([stage, list(argv), stats]).encode()).hexdigest()


def _named(args: argparse.Namespace, options: Sequence[str]) -> list[Path]:
    """The paths that these options were given, in order; one option may have several or none."""
    found: list[Path] = []
    for option in options:
        value = getattr(args, option)
        found += value if isinstance(value, list) else [value] if value is not None else []
    return found


def _within(path: Path, folder: Path) -> bool:
    """Whether ``path`` is ``folder`` or in it, by name."""
    return Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder))
