# What jobs have measured -> result tables: SAD against the gold-standard model, half-gap budgets, what
# models say. A stage finds the files of its cells by path.


# Every cell's perplexities -> SAD, its mean over seeds, which selectors differ, and how well each
# one's scores tell the domains apart.
rule tables:
    input:
        measurements=lambda wildcards: measured(GRID, grid.measurements(GRID)),
        scores=grid.rankings(config, GRID),
    output:
        sad=in_report("sad", "Tables"),
        sad_summary=in_report("sad_summary", "Tables"),
        sad_differences=in_report("sad_differences", "Tables"),
        selection=in_report("selection", "Tables"),
        verdict=paths.SAD_VERDICT,
        parquet=expand(paths.TABLE, table=grid.STUDY_TABLES),
    log:
        "results/logs/tables.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("tables"),
    shell:
        'exec python -m mamushi tables --out-folder "$(dirname {output.sad:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule tables as study_tables with:
    input:
        measurements=lambda wildcards: measured(
            axes := config["studies"][wildcards.study], grid.measurements(axes)
        ),
        scores=lambda wildcards: grid.rankings(
            config, config["studies"][wildcards.study]
        ),
    output:
        sad=paths.STUDY_TABLE_CSV.replace("{table}", "sad"),
        verdict=paths.STUDY_SAD_VERDICT,
        parquet=expand(paths.STUDY_TABLE, table=grid.STUDY_TABLES, allow_missing=True),
    log:
        "results/logs/study_tables/{study}.log",
    params:
        settings=settings("tables", "study"),


# What removals change, with errors over seeds and texts.
rule effects:
    input:
        lambda wildcards: [
            *expand(paths.EXAMPLES, dataset=GRID["datasets"]),
            *grid.measurements(GRID, paths.NLL),
            *grid.measurements(GRID, paths.CARD),
        ],
    output:
        csv=in_report("effects", "Tables"),
        parquet=paths.TABLE.replace("{table}", "effects"),
    log:
        "results/logs/effects.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("effects"),
    shell:
        'exec python -m mamushi effects --out-folder "$(dirname {output.csv:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"


# Who pays, and who is removed, by what is known of the texts.
rule subgroups:
    input:
        lambda wildcards: [
            *expand(paths.EXAMPLES, dataset=GRID["datasets"]),
            *grid.measurements(GRID, paths.NLL),
            *grid.removals(selectors.of_texts(config, GRID)),
        ],
    output:
        csv=in_report("subgroups", "Tables"),
        parquet=paths.TABLE.replace("{table}", "subgroups"),
    log:
        "results/logs/subgroups.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("subgroups"),
    shell:
        'exec python -m mamushi subgroups --out-folder "$(dirname {output.csv:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"


# The budgets that recover half of the gap.
rule half_gap:
    input:
        lambda wildcards: measured(
            config["unlearning"],
            with_nll([*grid.all_sweeps(config), *grid.retrained_curves(config)]),
        ),
        expand(paths.EXAMPLES, dataset=config["unlearning"]["datasets"]),
    output:
        unlearning=in_report("unlearning", "Unlearning"),
        half_gap=in_report("half_gap", "Unlearning"),
        synergy=paths.SYNERGY,
        parquet=expand(paths.TABLE, table=["unlearning", "half_gap"]),
    log:
        "results/logs/half_gap.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("half-gap"),
    shell:
        'exec python -m mamushi half-gap --out-folder "$(dirname {output.half_gap:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"


# What the models said, and how fast they relearned.
rule probes:
    input:
        lambda wildcards: measured(config["probe"], grid.probes(config)),
    output:
        generations=in_report("generations", "Unlearning"),
        relapse=in_report("relapse", "Unlearning"),
        page=paths.GENERATIONS_PAGE,
        parquet=expand(paths.TABLE, table=["generations", "relapse"]),
    log:
        "results/logs/probes.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("probes"),
    shell:
        'exec python -m mamushi probes --out-folder "$(dirname {output.relapse:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"


rule qualitative:
    input:
        expand(paths.EXAMPLES, dataset=GRID["datasets"]),
        [
            paths.SCORES.format(**run, selector=RATIO)
            for run in grid.example_runs(config)
        ],
    output:
        csv=in_report("qualitative_ranking", "Rankings"),
        page=paths.RANKING_ENDS_PAGE,
        parquet=paths.TABLE.replace("{table}", "qualitative_ranking"),
    log:
        "results/logs/qualitative.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("qualitative"),
    shell:
        'exec python -m mamushi qualitative --out-folder "$(dirname {output.csv:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"


rule evidence_tables:
    input:
        lambda wildcards: grid.evidence(config),
    output:
        **{table: in_report(table, "Evidence") for table in grid.EVIDENCE_TABLES},
        parquet=expand(paths.TABLE, table=grid.EVIDENCE_TABLES),
    log:
        "results/logs/evidence_tables.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("evidence"),
    shell:
        'exec python -m mamushi evidence --out-folder "$(dirname {output.advice:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"


# What the paper proves, on the texts whose exact ratio is known.
rule theory_tables:
    input:
        lambda wildcards: grid.truths(config),
    output:
        theory=in_report("theory", "Theory"),
        parquet=expand(paths.TABLE, table="theory"),
    log:
        "results/logs/theory_tables.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("theory"),
    shell:
        'exec python -m mamushi theory --out-folder "$(dirname {output.theory:q})"'
        " --settings {params.settings:q} > {log:q} 2>&1"
