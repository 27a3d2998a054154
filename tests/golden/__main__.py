"""Record the numbers of the small demo: ``python -m tests.golden``.

Refuses where a stage's numbers changed and no `VERSION` did, or the other way round.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from tests.golden import FOLDER, Arithmetic, problems, record, stored
from tests.support.demo import run_all


def main() -> int:
    """Run the demo in a folder of its own and write the record of this arithmetic. Those of other
    versions go, since they can be made by their processors alone."""
    with tempfile.TemporaryDirectory() as folder:
        run_all(Path(folder))
        stages, here = record(Path(folder)), Arithmetic.here()
    if lines := problems(stored(here) or {}, stages):
        print("\n".join(lines), file=sys.stderr)
        return 1
    versions = {name: stage.version for name, stage in stages.items()}
    for path in FOLDER.glob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        is_current = {name: stage["version"] for name, stage in found["stages"].items()} == versions
        if not is_current or Arithmetic(**found["arithmetic"]).is_of(here):
            path.unlink()
    by_stage = {name: stage._asdict() for name, stage in stages.items()}
    text = json.dumps({"arithmetic": here._asdict(), "stages": by_stage}, indent=1)
    # A name and its numbers on a line.
    text = re.sub(r"\[\s+([^\[\]]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    slug = re.sub(r"[^a-z0-9]+", "-", here.processor.lower()).strip("-")
    (FOLDER / f"{slug}-{here.bits}.json").write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
