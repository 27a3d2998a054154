"""``python -m mamushi``, and the console command ``mamushi``."""

import atexit
import contextlib
import gc
import importlib
import os
import sys

# Importing torch and transformers makes hundreds of thousands of objects that live to the end, and
# collecting among them at every 700th costs a fifth of a stage's start.
gc.set_threshold(100_000, 50, 50)
statuses: list[int] = []  # The exit code, once it is known.


def main() -> int:
    """Run the command of the process, in the server of a run if it has one, and leave."""
    server = os.environ.get("MAMUSHI_WARM", "off")
    try:
        if server not in ("off", "server"):
            warm = importlib.import_module("mamushi_cluster.warm")
            if (answer := warm.run_in_server(sys.argv[1:], server)) is not None:
                return answer
        from mamushi.running.machine import limit_threads

        # Before anything imports numpy, whose libraries read it once.
        limit_threads()
        from mamushi import cli

        if server != "server":
            # What is registered first is called last.
            atexit.register(_exit_at_once)
        statuses.append(cli.main())
    except (KeyboardInterrupt, Exception) as error:
        # Before a command was found that says more. Whatever is imported may have wrapped it.
        from mamushi.errors import is_interrupt

        if not is_interrupt(error):
            raise
        print("\nmamushi: interrupted", file=sys.stderr)
        statuses.append(130)
    return statuses[0]


def _exit_at_once() -> None:
    """End the process at once. Taking apart what was imported takes a second with torch, and once
    in some thousand times a library's threads end it with "terminate called" when all is done."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if statuses:
        os._exit(statuses[0] & 255)


if __name__ == "__main__":
    sys.exit(main())
