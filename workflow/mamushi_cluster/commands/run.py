"""Make what the configuration asks for: a target of the workflow, such as `removals`.

It takes the configuration `mine.yaml` of the folder in which it is started, and runs nothing again
that is current. Targets: data (the texts as they are read), removals (the lists), evidence (how
many to remove), all (the default: lists and, where it can retrain, what they buy), unlearning (what
unlearners buy), unlearned (a list of your own, unlearned), left (what models still know of single
texts), studies (comparisons of the configuration), or a file of results.
"""

from typing import Any

from mamushi_cluster.commands import _run


def run(
    *targets: str, configfile: _run.Files = None, how: _run.How = _run.How()
) -> tuple[int, Any]:
    """Return the exit status of the workflow. Raises ``UserError`` as ``_run.run_configs``.

    :param targets: What to make, else all.
    """
    status = _run.run(targets, _run.run_configs(configfile, how.profile), how)
    return status, {"targets": targets or ["all"], "made": not (status or how.dry_run)}
