# What jobs have measured -> result tables: SAD against the gold-standard model, half-gap budgets, what
# models say and what is left in them. Each stage finds the files of its cells by path.


# Every cell's perplexities -> SAD, its mean over seeds, which selectors differ, and how well each
# one's scores tell the domains apart.
rule tables:
    input:
        measurements=lambda wildcards: measured(GRID, grid.measurements(GRID)),
        scores=lambda wildcards: grid.scores(config, GRID),
    output:
        **table_reports(settings.TABLES, "Tables"),
        verdict=paths.SAD_VERDICT,
        parquet=expand(paths.TABLE, table=settings.TABLES),
    log:
        "results/logs/tables.log",
    localrule: True
    params:
        settings=params("tables"),
    shell:
        command("tables", out_folder="$(dirname {output.sad:q})")


use rule tables as study_tables with:
    input:
        measurements=lambda wildcards: measured(
            axes := grid.comparison(config, wildcards.study), grid.measurements(axes)
        ),
        scores=lambda wildcards: grid.scores(
            config, grid.comparison(config, wildcards.study)
        ),
    output:
        sad=paths.STUDY_TABLE_CSV.replace("{table}", "sad"),
        verdict=paths.STUDY_SAD_VERDICT,
        parquet=expand(paths.STUDY_TABLE, table=settings.TABLES, allow_missing=True),
    log:
        "results/logs/study_tables/{study}.log",
    params:
        settings=params("tables", "study"),


# Rules of one form: the stage of each, its place in the report, its tables, what it waits for.
COLLECTED = {
    # What removals change, with errors over seeds and texts.
    "effects": (
        *("effects", "Tables", ["effects"]),
        lambda: examples_of(GRID["datasets"])
        + grid.measurements(GRID, paths.NLL)
        + grid.measurements(GRID, paths.CARD),
    ),
    # Who pays, and who is removed, by what is known of the texts.
    "subgroups": (
        *("subgroups", "Tables", ["subgroups"]),
        lambda: examples_of(GRID["datasets"])
        + grid.measurements(GRID, paths.NLL)
        + grid.removals(grid.of_texts(config, GRID)),
    ),
    # The budgets that recover half of the gap.
    "half_gap": (
        *("half-gap", "Unlearning", settings.UNLEARNING_TABLES),
        lambda: [
            *(paths.SWEEP.format(**pair) for pair in grid.sweeps(config)),
            *refined_sweeps(),
            *retrained_curves(),
        ],
    ),
    # What the models said, and how fast they relearned.
    "probes": (
        *("probes", "Unlearning", settings.PROBE_TABLES),
        lambda: measured(config["probe"], grid.probes(config)),
    ),
    # What is left of single forget texts.
    "left_tables": (
        *("left", "What is left", settings.LEFT_TABLES),
        lambda: measured(config["left"], grid.left(config)),
    ),
    "qualitative": (
        *("qualitative", "Rankings", ["qualitative_ranking"]),
        lambda: examples_of(run["dataset"] for run in grid.shown(config))
        + [paths.SCORES.format(**run, selector=RATIO) for run in grid.shown(config)],
    ),
    "evidence_tables": (
        *("evidence", "Evidence", settings.EVIDENCE_TABLES),
        tables_of_runs,
    ),
}
for name, (stage, category, names, waits) in COLLECTED.items():

    rule:
        name:
            name
        input:
            partial(lambda wildcards, waits: waits(), waits=waits),
        output:
            **table_reports(names, category),
            parquet=expand(paths.TABLE, table=names),
        log:
            f"results/logs/{name}.log",
        localrule: True
        params:
            # Not in the command, which is put together when the loop is over.
            stage=stage,
            settings=params(stage),
        shell:
            command("tables", out_folder="$(dirname {output.parquet[0]:q})").replace(
                " tables ", " {params.stage} "
            )
