# A selector ranks the forget set once; every budget takes the top of that one ranking, so that
# removal lists are nested.


rule score:
    input:
        base=scored_before,
        examples=made(paths.EXAMPLES),
        embeddings=paths.EMBEDDINGS,
    output:
        paths.SCORES,
    log:
        "results/logs/score/{dataset}/{model}/seed{seed}/{selector}.log",
    benchmark:
        "results/benchmarks/score/{dataset}/{model}/seed{seed}/{selector}.tsv"
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        mem_mb=memory(4000, 16000),
        runtime=minutes(30, 240),
    params:
        settings=params(settings.score, "selector", "seed"),
    shell:
        "exec python -m mamushi score --examples {input.examples:q}"
        " --embeddings {input.embeddings:q} --base {input.base:q} --out {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# The product: the ids to remove at a budget, and the copies of their texts.
rule remove:
    input:
        scores=paths.SCORES,
        duplicates=made(paths.DUPLICATES),
    output:
        paths.REMOVAL,
    log:
        "results/logs/remove/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    benchmark:
        "results/benchmarks/remove/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.tsv"
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.remove, "beta"),
    shell:
        "exec python -m mamushi remove --scores {input.scores:q} --duplicates {input.duplicates:q}"
        " --out {output:q} --settings {params.settings:q} > {log:q} 2>&1"


# What each list was derived from, and what it is expected to do. One job for all budgets, and apart
# from the lists: a new estimate of the density ratio tells more about a list and changes none. All
# of its outputs have to be asked for: with one that is missing, no change of the job is looked for.
rule manifests:
    input:
        scores=paths.SCORES,
        ratio=paths.SCORES.replace("{selector}", config["removal"]["ratio"]),
        duplicates=made(paths.DUPLICATES),
    output:
        expand(
            paths.MANIFEST,
            beta=[paths.beta(budget) for budget in grid.budgets(config)],
            allow_missing=True,
        ),
    log:
        "results/logs/manifests/{dataset}/{model}/seed{seed}/{selector}.log",
    benchmark:
        "results/benchmarks/manifests/{dataset}/{model}/seed{seed}/{selector}.tsv"
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.manifests, "dataset", "model", "seed", "selector"),
    shell:
        "exec python -m mamushi manifests --scores {input.scores:q} --ratio {input.ratio:q}"
        " --duplicates {input.duplicates:q} --out {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
