# The paper's figures, drawn from the tables. A caption's path takes no wildcards, so that each figure
# has a rule of its own: the first in full, the others by what differs.


rule figure_sad:
    input:
        sad=paths.TABLE.replace("{table}", "sad"),
        others=expand(paths.TABLE, table=settings.TABLES),
    output:
        pdf=paths.FIGURE.replace("{figure}", "sad"),
        png=report(
            paths.FIGURE_PNG.replace("{figure}", "sad"),
            caption="../report/sad.rst",
            category="Figures",
            labels={"figure": "SAD"},
        ),
    log:
        "results/logs/figure/sad.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(lambda config: settings.figure(config, GRID, "sad")),
    shell:
        "python -m mamushi figure --tables $(dirname {input.sad:q}) --out {output.pdf:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule figure_sad as figure_perplexity with:
    output:
        pdf=paths.FIGURE.replace("{figure}", "perplexity"),
        png=report(
            paths.FIGURE_PNG.replace("{figure}", "perplexity"),
            caption="../report/perplexity.rst",
            category="Figures",
            labels={"figure": "Perplexity"},
        ),
    log:
        "results/logs/figure/perplexity.log",
    params:
        settings=params(lambda config: settings.figure(config, GRID, "perplexity")),


use rule figure_sad as figure_study with:
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
        "results/logs/figure/study/{study}.log",
    params:
        settings=params(
            lambda config, study: settings.figure(
                config, grid.comparison(config, study), "sad"
            ),
            "study",
        ),
