"""``snakemake``, which asks SLURM for its jobs every second: the plug-in waits for ten seconds more
each time that none has ended, and most jobs of a test take less."""

import asyncio
import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(executor: RemoteExecutor) -> None:
    """Wait until jobs are asked for again."""
    await asyncio.sleep(1)


if __name__ == "__main__":
    RemoteExecutor.sleep = sleep
    sys.exit(main())
