"""What the pages of the documentation tell whoever installed a wheel to do."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

from tests.support.workflow import ROOT

OF_THE_ROOT = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")]
PAGES = [*OF_THE_ROOT, ROOT / "profiles/slurm/README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def module_of(path: Path) -> ModuleType:
    """A file of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"of_the_docs_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def commands() -> list[list[str]]:
    """The words after ``mamushi`` in the pages' blocks, in their order and each once; not those for
    a clone of the repository."""
    found: list[str] = []
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
            if not block.startswith("# in a clone"):
                found += block.replace("\\\n", " ").splitlines()
    words = (shlex.split(line, comments=True) for line in found)
    lines = dict.fromkeys(shlex.join(each[1:]) for each in words if each[:1] == ["mamushi"])
    return [*map(shlex.split, lines)]
