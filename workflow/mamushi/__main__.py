"""``python -m mamushi``, and the console command ``mamushi``."""

import gc
import importlib
import sys

# Importing torch and transformers makes hundreds of thousands of objects that live to the end, and
# collecting among them at every 700th costs a fifth of a stage's start.
gc.set_threshold(100_000, 50, 50)

from mamushi.running.threads import one_for_arithmetic  # noqa: E402

# Before anything imports numpy, whose libraries read it once.
one_for_arithmetic()

from mamushi import cli  # noqa: E402
from mamushi.running import warm  # noqa: E402


def main() -> int:
    """Run the command of the process, and leave."""
    if sys.argv[1:2] == [warm.SERVER]:
        words = warm.main(sys.argv[2], int(sys.argv[3]))
        if words is None:
            return 0
        # Each job imports the package as it finds it.
        warm.exit_with(lambda: importlib.import_module("mamushi.cli").main(words))
    try:
        return cli.main()
    finally:
        # Python looks through all objects several times when it ends: a second, with torch.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
