"""Make what the configuration asks for: a target of the workflow, such as `removals`.

It takes the configuration `mine.yaml` of the folder in which it is started, and runs nothing again
that is current. Targets: data (the texts as they are read), removals (the lists), evidence (how
many to remove), all (the default: lists and, where it can retrain, what they buy), unlearning (what
unlearners buy), unlearned (a list of your own, unlearned), left (what models still know of single
texts), studies (comparisons of the configuration), or a file of results.
"""

import argparse

from mamushi.commands import _as_json
from mamushi_cluster.commands import _run


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    _run.of_targets(parser, "what to make")


def run(args: argparse.Namespace) -> int:
    """Return the exit status of the workflow. Raises ``UserError`` as ``_run.required``."""
    status = _run.run(args.targets, _run.required(args), args)
    _as_json.put({"targets": args.targets or ["all"], "made": not (status or args.dry_run)})
    return status
