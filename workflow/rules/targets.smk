# What can be asked for: by `all` what is measured of the grid, and the targets beside it.


def figures_of(kind):
    """The figures that declare to be of the grid, evidence, unlearning or one cell."""
    return [name for name, figure in plugins("figure").items() if figure.of == kind]


def tables_of(category):
    """The result tables of a part of the report."""
    every = [made.names for made in published().values() if made.category == category]
    return expand(paths.TABLE, table=[name for names in every for name in names])


def tables_and_figures(wildcards):
    """What is measured of the grid, where all of it can be; else says what hinders it. Refused is a
    model that is none."""
    explained(refuse, [grid.no_language_model(config, name) for name in GRID["models"]])
    if hindrances := grid.hindrances(config, GRID):
        logger.warning("\n".join(["Nothing is retrained or measured.", *hindrances]))
        return []
    return tables_of("Tables") + expand(paths.FIGURE, figure=figures_of("grid"))


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
