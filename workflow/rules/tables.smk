# What jobs have measured -> result tables: SAD against the gold-standard model, half-gap budgets, what
# models say. `TABLES` in stages/tables.py, and in stages.py of rooms, names the module that makes each.
for rule_name, made in all_tables().items():

    rule:
        name:
            rule_name
        input:
            partial(lambda needs, wildcards: explained(needs, config)[0], made.needs),
        output:
            **{
                name: report(
                    paths.TABLE_CSV.replace("{table}", name),
                    caption=f"../report/tables/{name}.rst",
                    category=made.category,
                    labels={"table": name.replace("_", " ")},
                )
                for name in made.names
            },
            parquet=expand(paths.TABLE, table=made.names),
        log:
            f"results/logs/{rule_name}.log",
        localrule: True
        conda:
            "../../envs/mamushi.yaml"
        params:
            settings=settings("publish", name=rule_name),
        shell:
            'exec python -m mamushi publish --out-folder "$(dirname {output.parquet[0]:q})"'
            " --settings {params.settings:q} > {log:q} 2>&1"


use rule tables as study_tables with:
    input:
        lambda wildcards: explained(
            all_tables()["tables"].needs, config, wildcards.study
        )[0],
    output:
        parquet=expand(
            paths.STUDY_TABLE, table=all_tables()["tables"].names, allow_missing=True
        ),
    log:
        "results/logs/study_tables/{study}.log",
    params:
        settings=settings("publish", "study", name="tables"),
