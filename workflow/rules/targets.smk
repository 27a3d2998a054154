# What can be asked for beside `all`.


# A lab's own case: the ranking and the removal lists, without any retraining.
rule removals:
    input:
        LISTS,


# The studies of the configuration, each a comparison of its own, with the manifests of its lists, for which
# its tables do not wait.
rule studies:
    input:
        lambda wildcards: [
            path for axes in config["studies"].values() for path in labelled(axes)
        ],
        expand(paths.STUDY_FIGURE, study=config["studies"]),
        [grid.manifest_files(config, axes) for axes in config["studies"].values()],


# What scores and embeddings tell before any retraining: diagnostics, geometry, frontier, advice.
rule evidence:
    input:
        lambda wildcards: labelled(GRID),
        expand(paths.TABLE, table=grid.EVIDENCE_TABLES),
        expand(paths.FIGURE, figure=figures_of("evidence")),
        [
            paths.CELL_FIGURE.format(figure=figure, **run)
            for run in grid.example_runs(config)
            for figure in figures_of("cell")
        ],
        [
            pattern.format(**run)
            for pattern in OF_EVIDENCE
            for run in grid.example_runs(config)
        ],


# What each unlearner needs to recover half of the gap, what its models say, how fast they relearn.
# The first run measures the configured budgets, and the same command once more the finer ones.
rule unlearning:
    input:
        [paths.SWEEP.format(**pair) for pair in grid.sweeps(config)],
        expand(paths.TABLE, table=grid.UNLEARNING_TABLES),
        expand(paths.FIGURE, figure=figures_of("unlearning")),


# Removal lists of the user's, unlearned.
rule unlearned:
    input:
        lambda wildcards: explained(grid.unlearned_lists, config),


# The raw files, cleaned and split: what can be checked before any GPU time is spent.
rule data:
    input:
        expand(paths.EXAMPLES, dataset=GRID["datasets"]),
