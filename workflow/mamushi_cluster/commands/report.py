"""Write a report on what was made, one page that opens offline: tables, figures and how they came.

It is Snakemake's report on the configuration of the folder in which it is started. Of what a target
asks for, all must have been made: see `mamushi run`.
"""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from mamushi_cluster import hooks
from mamushi_cluster.commands import _run

PAGE = Path("results/report.html")


def run(
    *targets: str, configfile: _run.Files = None, out: Path = PAGE, how: _run.How = _run.How()
) -> tuple[int, Any]:
    """Write a page on results. Return Snakemake's exit status. Raises as ``_run.run_configs``.

    :param targets: What to report on, else all.
    :param out: The page to write.
    """
    configfiles = _run.run_configs(configfile, how.profile)
    options = f"{how.snakemake_args} --report {shlex.quote(str(out))}"
    status = _run.run(targets, configfiles, replace(how, snakemake_args=options))
    is_made = status == 0 and not how.dry_run
    if is_made:
        # It links the report.
        hooks.print_start_page(configfiles)
        print(out)
    return status, {"report": out if is_made else None}
