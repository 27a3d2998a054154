# What jobs have measured -> result tables: SAD against the gold-standard model, half-gap budgets, what
# models say. A stage finds the files of its cells by path.

# Rule -> the part of the report, the tables that it makes, and of what.
TABLES = {
    "tables": ("Tables", grid.STUDY_TABLES, measured_of),
    "effects": (
        "Tables",
        ["effects"],
        lambda wildcards: measured_texts(grid.measurements(GRID, paths.CARD)),
    ),
    "subgroups": (
        "Tables",
        ["subgroups"],
        lambda wildcards: measured_texts(
            grid.removals(selectors.of_texts(config, GRID))
        ),
    ),
    "half_gap": ("Unlearning", ["unlearning", "half_gap"], curves_of),
    "probes": (
        "Unlearning",
        ["generations", "relapse"],
        lambda wildcards: measured(config["probe"], grid.probes(config)),
    ),
    "evidence_tables": (
        "Evidence",
        grid.EVIDENCE_TABLES,
        lambda wildcards: grid.evidence(config),
    ),
    **EXTRA_TABLES,
}
# Texts for the report that some rules make as well.
TEXTS = {
    "tables": "sad_differences",
    "half_gap": "synergy",
    "probes": "generations",
    "evidence_tables": "qualitative_ranking",
}

for made, (category, made_tables, made_of) in TABLES.items():

    rule:
        name:
            made
        input:
            made_of,
        output:
            **{name: in_report(name, category) for name in made_tables},
            pages=expand(paths.TEXT, text=TEXTS.get(made, [])),
            parquet=expand(paths.TABLE, table=made_tables),
        log:
            f"results/logs/{made}.log",
        localrule: True
        conda:
            "../../envs/mamushi.yaml"
        params:
            # Not in the command, which is put together when the loop is over.
            stage=(stage := made.removesuffix("_tables").replace("_", "-")),
            settings=settings(stage),
        shell:
            'exec python -m mamushi {params.stage} --out-folder "$(dirname {output.parquet[0]:q})"'
            " --settings {params.settings:q} > {log:q} 2>&1"


use rule tables as study_tables with:
    output:
        pages=paths.STUDY_TABLE.replace("{table}.parquet", "sad_differences.rst"),
        parquet=expand(paths.STUDY_TABLE, table=grid.STUDY_TABLES, allow_missing=True),
    log:
        "results/logs/study_tables/{study}.log",
    params:
        stage="tables",
        settings=settings("tables", "study"),
