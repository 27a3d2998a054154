"""Commands for people, one file each, found by its name: ``mamushi NAME``.

Each has a docstring whose first line is its help, ``arguments(parser)``, and ``run(args)``, which
returns the exit code or None for 0. Those that need Snakemake are in ``mamushi_cluster/commands``,
in the same form. What is heavy is imported inside ``run``.
"""
