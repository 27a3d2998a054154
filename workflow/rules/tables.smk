# What jobs have measured -> result tables: SAD against the gold-standard model, half-gap budgets, what
# models say. A stage finds the files of its cells by path.

# Rule -> the part of the report, the tables that it makes, of what, and texts for the report.
TABLES = {
    "tables": ("Tables", grid.STUDY_TABLES, tables.sad_files, "sad_differences"),
    "effects": ("Tables", ["effects"], tables.effect_files),
    "subgroups": ("Tables", ["subgroups"], tables.subgroup_files),
    "half_gap": ("Unlearning", ["unlearning", "half_gap"], tables.gap_files, "synergy"),
    "probes": (
        *("Unlearning", ["generations", "relapse"]),
        *(tables.probe_files, "generations"),
    ),
    "evidence_tables": (
        *("Evidence", grid.EVIDENCE_TABLES),
        *(tables.evidence_files, "qualitative_ranking"),
    ),
    **EXTRA_TABLES,
}

for made, (category, made_tables, made_of, *texts) in TABLES.items():

    rule:
        name:
            made
        input:
            partial(lambda made_of, wildcards: explained(made_of, config), made_of),
        output:
            **{name: in_report(name, category) for name in made_tables},
            pages=expand(paths.TEXT, text=texts),
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
    input:
        lambda wildcards: explained(tables.sad_files, config, wildcards.study),
    output:
        pages=paths.STUDY_TABLE.replace("{table}.parquet", "sad_differences.rst"),
        parquet=expand(paths.STUDY_TABLE, table=grid.STUDY_TABLES, allow_missing=True),
    log:
        "results/logs/study_tables/{study}.log",
    params:
        stage="tables",
        settings=settings("tables", "study"),
