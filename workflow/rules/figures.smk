# The paper's figures, drawn from the tables. A caption's path takes no wildcards, so that each figure
# has a rule of its own: the first in full, the others by what differs.


rule figure_sad:
    input:
        table=paths.TABLE.replace("{table}", "sad"),
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
    benchmark:
        "results/benchmarks/figure/sad.tsv"
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(lambda config: settings.figure(config, GRID, "sad")),
    shell:
        "exec python -m mamushi figure --tables $(dirname {input.table:q}) --out {output.pdf:q}"
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
    benchmark:
        "results/benchmarks/figure/perplexity.tsv"
    params:
        settings=params(lambda config: settings.figure(config, GRID, "perplexity")),


use rule figure_sad as figure_half_gap with:
    input:
        table=paths.TABLE.replace("{table}", "half_gap"),
        others=expand(paths.TABLE, table=settings.UNLEARNING_TABLES),
    output:
        pdf=paths.FIGURE.replace("{figure}", "half_gap"),
        png=report(
            paths.FIGURE_PNG.replace("{figure}", "half_gap"),
            caption="../report/half_gap.rst",
            category="Unlearning",
            labels={"figure": "Half-gap budgets"},
        ),
    log:
        "results/logs/figure/half_gap.log",
    benchmark:
        "results/benchmarks/figure/half_gap.tsv"
    params:
        settings=params(
            lambda config: settings.figure(config, settings.swept(config), "half_gap")
        ),


use rule figure_sad as figure_relearning with:
    input:
        table=paths.TABLE.replace("{table}", "relearning"),
        others=expand(paths.TABLE, table=settings.PROBE_TABLES),
    output:
        pdf=paths.FIGURE.replace("{figure}", "relearning"),
        png=report(
            paths.FIGURE_PNG.replace("{figure}", "relearning"),
            caption="../report/relearning.rst",
            category="Unlearning",
            labels={"figure": "Relearning"},
        ),
    log:
        "results/logs/figure/relearning.log",
    benchmark:
        "results/benchmarks/figure/relearning.tsv"
    params:
        settings=params(
            lambda config: settings.figure(
                config, settings.probed(config), "relearning"
            )
        ),


use rule figure_sad as figure_frontier with:
    input:
        table=paths.TABLE.replace("{table}", "frontier"),
        others=[],
    output:
        pdf=paths.FIGURE.replace("{figure}", "frontier"),
        png=report(
            paths.FIGURE_PNG.replace("{figure}", "frontier"),
            caption="../report/frontier.rst",
            category="Evidence",
            labels={"figure": "Frontier"},
        ),
    log:
        "results/logs/figure/frontier.log",
    benchmark:
        "results/benchmarks/figure/frontier.tsv"
    params:
        settings=params(lambda config: settings.figure(config, GRID, "frontier")),


rule figure_diagnostics:
    input:
        scores=paths.SCORES.replace("{selector}", config["removal"]["ratio"]),
    output:
        pdf=paths.RUN_FIGURE.replace("{figure}", "diagnostics"),
        png=report(
            paths.RUN_FIGURE_PNG.replace("{figure}", "diagnostics"),
            caption="../report/diagnostics.rst",
            category="Evidence",
            labels={"figure": "Diagnostics", "run": "{dataset}, {model}, {seed}"},
        ),
    log:
        "results/logs/figure/diagnostics/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/figure/diagnostics/{dataset}/{model}/seed{seed}.tsv"
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(
            lambda config, *run: settings.run_figure(config, "diagnostics", *run),
            *RUN,
        ),
    shell:
        "exec python -m mamushi figure --tables results --out {output.pdf:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule figure_diagnostics as figure_variance with:
    input:
        paths.GEOMETRY,
    output:
        pdf=paths.RUN_FIGURE.replace("{figure}", "variance"),
        png=report(
            paths.RUN_FIGURE_PNG.replace("{figure}", "variance"),
            caption="../report/variance.rst",
            category="Evidence",
            labels={"figure": "Variance", "run": "{dataset}, {model}, {seed}"},
        ),
    log:
        "results/logs/figure/variance/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/figure/variance/{dataset}/{model}/seed{seed}.tsv"
    params:
        settings=params(
            lambda config, *run: settings.run_figure(config, "variance", *run),
            *RUN,
        ),


use rule figure_variance as figure_discrimination with:
    output:
        pdf=paths.RUN_FIGURE.replace("{figure}", "discrimination"),
        png=report(
            paths.RUN_FIGURE_PNG.replace("{figure}", "discrimination"),
            caption="../report/discrimination.rst",
            category="Evidence",
            labels={"figure": "Discrimination", "run": "{dataset}, {model}, {seed}"},
        ),
    log:
        "results/logs/figure/discrimination/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/figure/discrimination/{dataset}/{model}/seed{seed}.tsv"
    params:
        settings=params(
            lambda config, *run: settings.run_figure(config, "discrimination", *run),
            *RUN,
        ),


use rule figure_variance as figure_subspaces with:
    output:
        pdf=paths.RUN_FIGURE.replace("{figure}", "subspaces"),
        png=report(
            paths.RUN_FIGURE_PNG.replace("{figure}", "subspaces"),
            caption="../report/subspaces.rst",
            category="Evidence",
            labels={"figure": "Subspaces", "run": "{dataset}, {model}, {seed}"},
        ),
    log:
        "results/logs/figure/subspaces/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/figure/subspaces/{dataset}/{model}/seed{seed}.tsv"
    params:
        settings=params(
            lambda config, *run: settings.run_figure(config, "subspaces", *run),
            *RUN,
        ),


use rule figure_sad as figure_study with:
    input:
        table=paths.STUDY_TABLE.replace("{table}", "sad"),
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
    benchmark:
        "results/benchmarks/figure/study/{study}.tsv"
    params:
        settings=params(
            lambda config, study: settings.figure(
                config, grid.comparison(config, study), "sad"
            ),
            "study",
        ),
