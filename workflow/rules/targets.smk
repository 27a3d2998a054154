# What can be asked for: by `all` what is measured of the grid, and the targets beside it.


# A lab's own case: the ranking and the removal lists, without any retraining.
rule removals:
    input:
        grid.lists(config, GRID),


# The studies of the configuration, each a comparison of its own, and their lists.
rule studies:
    input:
        expand(paths.STUDY_FIGURE, study=config["studies"]),
        [grid.lists(config, axes) for axes in config["studies"].values()],


# The first seed's cells, which figures of a cell show.
FIRST = {**GRID, "seeds": GRID["seeds"][:1], "figures": figures_of("cell")}


# What scores and embeddings tell before any retraining: diagnostics, geometry, frontier, advice.
rule evidence:
    input:
        tables_of("Evidence"),
        expand(paths.FIGURE, figure=figures_of("evidence")),
        [grid.expand(FIRST, file) for file in (paths.CELL_FIGURE, *OF_EVIDENCE)],


# What each unlearner needs to recover half of the gap, and what its models say.
# The first run measures the configured budgets, and the same command once more the finer ones.
rule unlearning:
    input:
        tables_of("Unlearning"),
        expand(paths.FIGURE, figure=figures_of("unlearning")),


# The raw files, cleaned and split: what can be checked before any GPU time is spent.
rule data:
    input:
        grid.expand(GRID, paths.EXAMPLES),
