# A selector ranks the forget set once; every budget takes the top of that one ranking, so that
# removal lists are nested.


rule score:
    input:
        base=scored_before,
        examples=made(paths.EXAMPLES),
        embeddings=paths.EMBEDDINGS,
        layers=layers_read,
    output:
        out=paths.SCORES,
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
        command("score")


# The scores again, with other seeds: for the error of what is estimated from them. No list depends
# on them.
rule refits:
    input:
        base=refitted_before,
        examples=made(paths.EXAMPLES),
        embeddings=paths.EMBEDDINGS,
        layers=layers_read,
    output:
        out=paths.REFITS,
    log:
        "results/logs/refits/{dataset}/{model}/seed{seed}/{selector}.log",
    benchmark:
        "results/benchmarks/refits/{dataset}/{model}/seed{seed}/{selector}.tsv"
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        mem_mb=memory(4000, 16000),
        runtime=minutes(60, 480),
    params:
        settings=params(settings.refits, "selector", "seed"),
    shell:
        command("refits")


# The product: the ids to remove at a budget, and the copies of their texts.
rule remove:
    input:
        scores=paths.SCORES,
        duplicates=made(paths.DUPLICATES),
    output:
        out=paths.REMOVAL,
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
        command("remove")


rule stability:
    input:
        scores=paths.SCORES,
        refits=paths.REFITS,
    output:
        out=paths.STABILITY,
    log:
        "results/logs/stability/{dataset}/{model}/seed{seed}/{selector}.log",
    benchmark:
        "results/benchmarks/stability/{dataset}/{model}/seed{seed}/{selector}.tsv"
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.stability),
    shell:
        command("stability")


# What each list was derived from, and what it is expected to do. One job for all budgets, and apart
# from the lists: a new estimate of the density ratio tells more about a list and changes none. All
# of its outputs have to be asked for: with one that is missing, no change of the job is looked for.
rule manifests:
    input:
        scores=paths.SCORES,
        calibrated=paths.CALIBRATED,
        stability=paths.STABILITY,
        duplicates=made(paths.DUPLICATES),
    output:
        out=expand(
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
        command("manifests")
