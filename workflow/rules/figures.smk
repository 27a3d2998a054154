# The paper's figures, drawn from the tables.


rule figure:
    input:
        sad=paths.TABLE.replace("{table}", "sad"),
        others=expand(paths.TABLE, table=settings.TABLES),
    output:
        pdf=paths.FIGURE,
        png=report(
            paths.FIGURE_PNG,
            caption="../report/{figure}.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        "results/logs/figure/{figure}.log",
    wildcard_constraints:
        figure=only(settings.FIGURES),
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=lambda wildcards: settings.as_json(
            settings.figure(config, GRID, wildcards.figure)
        ),
    shell:
        "python -m mamushi figure --name {wildcards.figure:q} --tables $(dirname {input.sad:q})"
        " --out {output.pdf:q} --settings {params.settings:q} > {log:q} 2>&1"


rule study_figure:
    input:
        sad=paths.STUDY_TABLE.replace("{table}", "sad"),
        others=expand(paths.STUDY_TABLE, table=settings.TABLES, allow_missing=True),
    output:
        pdf=paths.STUDY_FIGURE,
        png=report(
            paths.STUDY_FIGURE_PNG,
            caption="../report/study.rst",
            category="Studies",
            labels={"study": "{study}"},
        ),
    log:
        "results/logs/study_figure/{study}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=lambda wildcards: settings.as_json(
            settings.figure(config, grid.comparison(config, wildcards.study), "sad")
        ),
    shell:
        "python -m mamushi figure --name sad --tables $(dirname {input.sad:q})"
        " --out {output.pdf:q} --settings {params.settings:q} > {log:q} 2>&1"
