"""Check whether this machine and this folder can run the workflow, and say what would go wrong.

One line each: `ok`, `note` for what a run lives with, `FAIL` for what would stop it. The exit code
is 1 where something would fail, else 0.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mamushi.registry import tree
from mamushi.running import locks

GROUP = "check"
OK, NOTE, FAIL = "ok", "note", "FAIL"
PACKAGES = ("numpy", "pyarrow", "scikit-learn", "snakemake", "tokenizers", "transformers")
NEEDED, WANTED = 1e9, 20e9
"""Bytes of free disk below which nothing can be made, and below which a model may not fit."""
SECONDS = 20.0
"""That a command of the machine may take to answer."""

Finding = tuple[str, str]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "where the workflow is to run (default: this folder)"
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help=about)


def run(args: argparse.Namespace) -> int:
    """Print the findings; return 1 where something would fail."""
    checks: dict[str, Callable[[], Finding]] = {
        "packages": packages,
        "GPU": gpu,
        "SLURM": slurm,
        "disk": lambda: disk(args.folder),
        "locks": lambda: file_locks(args.folder),
    }
    failed = False
    for name, check in checks.items():
        kind, finding = check()
        failed |= kind == FAIL
        print(f"{kind:<5} {name:<12} {finding}", flush=True)
    return int(failed)


def packages() -> Finding:
    """Check the versions of what a run imports."""
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        do = "pip install mamushi-unlearn, or make setup in a clone"
        return FAIL, f"not installed: {', '.join(missing)}; {do}"
    return OK, ", ".join(found)


def gpu() -> Finding:
    """Check torch, the GPUs of the machine, its driver, and whether torch computes on them."""
    listed = answer("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv")
    present = "; ".join((listed or "").splitlines()[1:])
    try:
        import torch

        for place in range(torch.cuda.device_count()):
            torch.zeros(1, device=f"cuda:{place}")
    except (ImportError, OSError) as error:
        return FAIL, f"torch cannot be imported: {error}"
    except RuntimeError as error:
        return FAIL, f"torch cannot compute on GPU {place}: {str(error).splitlines()[0]}"
    if torch.cuda.is_available():
        said = present or torch.cuda.get_device_name()
        return OK, f"{said}; torch {torch.__version__}"
    if present and os.environ.get("CUDA_VISIBLE_DEVICES", "0") != "":
        why = "torch is built for the CPU" if not torch.version.cuda else "the driver is too old"
        return FAIL, f"{present}: not seen by torch ({why} or the driver is not loaded)"
    return NOTE, "none here: tiny models and rankings of thousands of texts run on the CPU"


def slurm() -> Finding:
    """Check whether jobs can be submitted from here."""
    if shutil.which("sbatch") is None:
        return NOTE, "not on this machine: the profile slurm is for a node from which one submits"
    if answer("squeue", "--noheader", "--me") is None:
        return FAIL, "sbatch is here and squeue does not answer: no run could start on the cluster"
    partitions = (answer("sinfo", "--noheader", "--format=%P %G") or "").split("\n")
    found = ", ".join(filter(None, partitions)) or "none"
    return OK, f"answers; partitions and GPUs: {found}; profile: {tree() / 'profiles' / 'slurm'}"


def disk(folder: Path) -> Finding:
    """Check the free space where the results will be."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return FAIL, f"{folder}: {error.strerror}"
    said = f"{free / 1e9:.1f} GB free in {folder.resolve()}"
    if free < NEEDED:
        return FAIL, f"{said}; free at least {NEEDED / 1e9:.0f} GB"
    return (NOTE, f"{said}; mamushi plan says what a run takes") if free < WANTED else (OK, said)


def file_locks(folder: Path) -> Finding:
    """Check that the file system locks: two runs, or two jobs, then do not write one result."""
    path = folder / f".mamushi-doctor-{os.getpid()}.lock"
    try:
        lock = locks.attempt(path, "doctor")
        if lock is not None:
            lock.release()
    except OSError as error:
        if error.errno not in locks.UNSUPPORTED:
            return FAIL, f"cannot lock a file in {folder.resolve()}: {error.strerror}"
        return NOTE, f"none on this file system ({error.strerror}): start no two runs in one folder"
    finally:
        path.unlink(missing_ok=True)
    return OK, "work"


def answer(*command: str) -> str | None:
    """Return what a command says; None where it is not there, fails or does not answer."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=True, errors="replace"
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
