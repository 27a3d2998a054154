# Every cell's perplexities -> SAD against the gold-standard model, its mean over seeds, which
# selectors differ, and how well each one's scores tell the domains apart.


rule tables:
    input:
        measurements=lambda wildcards: measurements(),
        scores=lambda wildcards: grid.scores(GRID),
        removals=lambda wildcards: grid.manifests(config, GRID),
    output:
        sad=report(
            paths.TABLE_CSV.replace("{table}", "sad"),
            caption="../report/sad_table.rst",
            category="Tables",
            labels={"table": "SAD by cell"},
        ),
        summary=report(
            paths.TABLE_CSV.replace("{table}", "sad_summary"),
            caption="../report/sad_summary.rst",
            category="Tables",
            labels={"table": "SAD, mean over seeds"},
        ),
        differences=report(
            paths.TABLE_CSV.replace("{table}", "sad_differences"),
            caption="../report/sad_differences.rst",
            category="Tables",
            labels={"table": "SAD, which selectors differ"},
        ),
        verdict=paths.SAD_VERDICT,
        selection=report(
            paths.TABLE_CSV.replace("{table}", "selection"),
            caption="../report/selection.rst",
            category="Tables",
            labels={"table": "Selectors"},
        ),
        parquet=expand(paths.TABLE, table=settings.TABLES),
    log:
        "results/logs/tables.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(lambda config: settings.tables(GRID)),
    shell:
        command("tables", out_folder="$(dirname {output.sad:q})")


# How much of SAD at budget 0 is the number of steps alone.
rule steps:
    input:
        measurements=lambda wildcards: grid.matched(config, GRID),
    output:
        csv=report(
            paths.TABLE_CSV.replace("{table}", "steps"),
            caption="../report/steps.rst",
            category="Tables",
            labels={"table": "SAD, what of it is steps"},
        ),
        parquet=paths.TABLE.replace("{table}", "steps"),
    log:
        "results/logs/steps.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(lambda config: settings.steps(config, GRID)),
    shell:
        command("steps", out_folder="$(dirname {output.csv:q})")


# Where the dataset knows the exact log-density ratio: what each ranking lacks of the best one.
rule truth:
    input:
        sad=paths.TABLE.replace("{table}", "sad"),
        examples=expand(paths.EXAMPLES, dataset=GRID["datasets"]),
        scores=grid.scores(GRID),
    output:
        csv=report(
            paths.TABLE_CSV.replace("{table}", "truth"),
            caption="../report/truth_table.rst",
            category="Tables",
            labels={"table": "Selectors beside the truth"},
        ),
        parquet=paths.TABLE.replace("{table}", "truth"),
    log:
        "results/logs/truth.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(lambda config: settings.truth(config, GRID)),
    shell:
        command("truth", out_folder="$(dirname {output.csv:q})")


use rule tables as study_tables with:
    input:
        measurements=lambda wildcards: measurements(wildcards.study),
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
    localrule: True
    params:
        settings=params(
            lambda config, study: settings.tables(grid.comparison(config, study)),
            "study",
        ),
