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
            path
            for study in config["studies"]
            for path in labelled(grid.comparison(config, study))
        ],
        expand(paths.STUDY_FIGURE, study=config["studies"]),
        [
            grid.manifests(config, grid.comparison(config, study))
            for study in config["studies"]
        ],


# What scores and embeddings tell before any retraining: diagnostics, geometry, frontier, advice.
rule evidence:
    input:
        lambda wildcards: labelled(GRID),
        expand(paths.TABLE, table=[*settings.EVIDENCE_TABLES, "qualitative_ranking"]),
        expand(paths.FIGURE, figure=settings.figures("evidence")),
        [
            paths.CELL_FIGURE.format(figure=figure, **run)
            for run in grid.shown(config)
            for figure in settings.figures("cell")
        ],
        [paths.RANKING.format(**run) for run in grid.shown(config)],


# What each unlearner needs to recover half of the gap, what its models say, how fast they relearn.
rule unlearning:
    input:
        # Asked for by themselves: a table that reads what a checkpoint has chosen is not looked at
        # before the checkpoint is, and so would not notice that a sweep is missing.
        [paths.SWEEP.format(**pair) for pair in grid.sweeps(config)],
        expand(paths.TABLE, table=[*settings.UNLEARNING_TABLES, *settings.PROBE_TABLES]),


# What is left of single forget texts in the models after a deletion, beside gold.
rule left:
    input:
        expand(paths.TABLE, table=settings.LEFT_TABLES),


# Removal lists of one's own, unlearned.
rule unlearned:
    input:
        lambda wildcards: explained(grid.require_lists, config) or grid.listed(config),


# The raw files, cleaned and split: what can be checked before any GPU time is spent.
rule data:
    input:
        expand(paths.EXAMPLES, dataset=GRID["datasets"]),
