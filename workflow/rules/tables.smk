# What jobs have measured -> result tables: SAD against the gold-standard model, half-gap budgets, what
# models say. A stage finds the files of its cells by path.

# Rule -> the part of the report, the tables that it makes, and of what.
TABLES = {
    "tables": ("Tables", grid.STUDY_TABLES, tables.sad_files),
    "half_gap": ("Unlearning", ["unlearning", "half_gap"], tables.gap_files),
    "probes": ("Unlearning", ["generations"], tables.probe_files),
    "evidence_tables": ("Evidence", grid.EVIDENCE_TABLES, tables.evidence_files),
    **EXTRA_TABLES,
}

for rule_name, (category, table_names, files_of) in TABLES.items():

    rule:
        name:
            rule_name
        input:
            partial(lambda files, wildcards: explained(files, config), files_of),
        output:
            **{
                name: report(
                    paths.TABLE_CSV.replace("{table}", name),
                    caption=f"../report/tables/{name}.rst",
                    category=category,
                    labels={"table": name.replace("_", " ")},
                )
                for name in table_names
            },
            parquet=expand(paths.TABLE, table=table_names),
        log:
            f"results/logs/{rule_name}.log",
        localrule: True
        conda:
            "../../envs/mamushi.yaml"
        params:
            # Not in the command, which is put together when the loop is over.
            stage=(stage := rule_name.removesuffix("_tables").replace("_", "-")),
            settings=settings(stage),
        shell:
            'exec python -m mamushi {params.stage} --out-folder "$(dirname {output.parquet[0]:q})"'
            " --settings {params.settings:q} > {log:q} 2>&1"


use rule tables as study_tables with:
    input:
        lambda wildcards: explained(tables.sad_files, config, wildcards.study),
    output:
        parquet=expand(paths.STUDY_TABLE, table=grid.STUDY_TABLES, allow_missing=True),
    log:
        "results/logs/study_tables/{study}.log",
    params:
        stage="tables",
        settings=settings("tables", "study"),
