"""``python -m mamushi``, and the console command ``mamushi``."""

import gc
import os
import sys

# Importing torch and transformers makes hundreds of thousands of objects that live to the end, and
# collecting among them at every 700th costs a fifth of a stage's start.
gc.set_threshold(100_000, 50, 50)


def main() -> int:
    """Run the command of the process, and leave."""
    server = os.environ.get("MAMUSHI_WARM", "off")
    if server != "off":
        from mamushi.running import warm

        if (status := warm.run_in_server(sys.argv[1:], server)) is not None:
            return status
    from mamushi.running.threads import one_for_arithmetic

    # Before anything imports numpy, whose libraries read it once.
    one_for_arithmetic()
    from mamushi import cli

    try:
        return cli.main()
    finally:
        # Python looks through all objects several times when it ends: a second, with torch.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
