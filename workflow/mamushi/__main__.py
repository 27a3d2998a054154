"""``python -m mamushi``, and the console command ``mamushi``."""

import gc
import sys

# Importing torch and transformers makes hundreds of thousands of objects that live to the end, and
# collecting among them at every 700th costs a fifth of a stage's start.
gc.set_threshold(100_000, 50, 50)

from mamushi.running.threads import one_for_arithmetic  # noqa: E402

# Before anything imports numpy, whose libraries read it once.
one_for_arithmetic()

from mamushi import cli  # noqa: E402


def main() -> int:
    """Run the command of the process, and leave."""
    try:
        return cli.main()
    finally:
        # Python looks through all objects several times when it ends: a second, with torch.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
