# What jobs have measured -> result tables: SAD against the gold-standard model, half-gap budgets, what
# models say and what is left in them. Each stage finds the files of its cells by path.


# Every cell's perplexities -> SAD, its mean over seeds, which selectors differ, and how well each
# one's scores tell the domains apart.
rule tables:
    input:
        measurements=lambda wildcards: measured(GRID, grid.measurements(GRID)),
        scores=lambda wildcards: grid.scores(GRID),
        removals=lambda wildcards: grid.manifests(config, GRID),
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
        scores=lambda wildcards: grid.scores(grid.comparison(config, wildcards.study)),
        removals=lambda wildcards: grid.manifests(
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


# How much of SAD at budget 0 is the number of steps alone.
rule steps:
    input:
        lambda wildcards: grid.matched(config, GRID),
    output:
        **table_reports(["steps"], "Tables"),
        parquet=paths.TABLE.replace("{table}", "steps"),
    log:
        "results/logs/steps.log",
    localrule: True
    params:
        settings=params("steps"),
    shell:
        command("steps", out_folder="$(dirname {output.parquet:q})")


# Who pays: the change of the perplexity's parts, by what is known of the texts.
rule subgroups:
    input:
        examples=lambda wildcards: [
            made_of(paths.EXAMPLES, dataset) for dataset in GRID["datasets"]
        ],
        nll=lambda wildcards: grid.measurements(GRID, paths.NLL),
    output:
        **table_reports(["subgroups"], "Tables"),
        parquet=paths.TABLE.replace("{table}", "subgroups"),
    log:
        "results/logs/subgroups.log",
    localrule: True
    params:
        settings=params("subgroups"),
    shell:
        command("subgroups", out_folder="$(dirname {output.parquet:q})")


# Where the dataset knows the exact log-density ratio: what each ranking lacks of the best one.
rule truth:
    input:
        sad=paths.TABLE.replace("{table}", "sad"),
        examples=expand(paths.EXAMPLES, dataset=GRID["datasets"]),
        scores=grid.scores(GRID),
    output:
        **table_reports(["truth"], "Tables"),
        parquet=paths.TABLE.replace("{table}", "truth"),
    log:
        "results/logs/truth.log",
    localrule: True
    params:
        settings=params("truth"),
    shell:
        command("truth", out_folder="$(dirname {output.parquet:q})")


# The budgets that recover half of the gap.
rule half_gap:
    input:
        sweeps=lambda wildcards: [
            paths.SWEEP.format(**pair) for pair in grid.sweeps(config)
        ],
        curves=lambda wildcards: refined_sweeps(),
        retrained=lambda wildcards: retrained_curves(),
    output:
        **table_reports(settings.UNLEARNING_TABLES, "Unlearning"),
        parquet=expand(paths.TABLE, table=settings.UNLEARNING_TABLES),
    log:
        "results/logs/half_gap.log",
    localrule: True
    params:
        settings=params("half_gap"),
    shell:
        command("half-gap", out_folder="$(dirname {output.half_gap:q})")


# What the models said, and how fast they relearned.
rule probes:
    input:
        lambda wildcards: measured(config["probe"], grid.probes(config)),
    output:
        **table_reports(settings.PROBE_TABLES, "Unlearning"),
        parquet=expand(paths.TABLE, table=settings.PROBE_TABLES),
    log:
        "results/logs/probes.log",
    localrule: True
    params:
        settings=params("probes"),
    shell:
        command("probes", out_folder="$(dirname {output.generations:q})")


# What is left of single forget texts.
rule left_tables:
    input:
        lambda wildcards: measured(config["left"], grid.left(config)),
    output:
        **table_reports(settings.LEFT_TABLES, "What is left"),
        parquet=expand(paths.TABLE, table=settings.LEFT_TABLES),
    log:
        "results/logs/left_tables.log",
    localrule: True
    params:
        settings=params("left"),
    shell:
        command("left", out_folder="$(dirname {output.left:q})")


# What is left in a model after a deletion, told against gold.
rule left_models:
    input:
        examples=lambda wildcards: [
            made_of(paths.EXAMPLES, dataset)
            for dataset in dict.fromkeys(
                [*GRID["datasets"], *config["probe"]["datasets"]]
            )
        ],
        measured=lambda wildcards: grid.left_models(config),
    output:
        **table_reports(left_model_tables(), "What is left"),
        parquet=expand(paths.TABLE, table=left_model_tables()),
    log:
        "results/logs/left_models.log",
    localrule: True
    params:
        settings=params("left_models"),
    shell:
        command("left-models", out_folder="$(dirname {output.klom:q})")
