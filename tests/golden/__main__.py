"""Record the numbers of the small demo: ``python -m tests.golden``.

Refuses where a stage's numbers changed and no `VERSION` did, or the other way round.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from tests.golden import FILE, problems, record, stored
from tests.support.demo import run_all


def main() -> int:
    """Run the demo in a folder of its own and write ``numbers.json``."""
    with tempfile.TemporaryDirectory() as folder:
        run_all(Path(folder))
        stages = record(Path(folder))
    if lines := problems(stored(), stages):
        print("\n".join(lines), file=sys.stderr)
        return 1
    text = json.dumps({name: stage._asdict() for name, stage in stages.items()}, indent=1)
    # A name and its numbers on a line.
    text = re.sub(r"\[\s+([^\[\]]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    FILE.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
