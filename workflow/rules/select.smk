# Embeddings -> a ranking of the forget texts -> what to remove at each budget, with its manifests.


# A selector ranks the forget set once; every budget takes the top of that one ranking, so that
# removal lists are nested.
rule score:
    input:
        base=lambda wildcards: base_of(wildcards, paths.SCORES),
        examples=texts_of_seed,
        embeddings=paths.EMBEDDINGS,
    output:
        out=paths.SCORES,
    log:
        paths.SCORE_LOG,
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        mem_mb=RESOURCES.rank_memory,
        runtime=RESOURCES.amount(60, texts=600),
    params:
        settings=settings("score", "selector", "seed"),
    shell:
        "exec python -m mamushi score --examples {input.examples:q}"
        " --embeddings {input.embeddings:q} --base {input.base:q}"
        " --out {output.out:q} --settings {params.settings:q} > {log:q} 2>&1"


# The scores again, with other seeds: for the error of what is estimated from them. No list depends
# on them.
rule refits:
    input:
        base=lambda wildcards: base_of(wildcards, paths.REFITS),
        examples=texts_of_seed,
        embeddings=paths.EMBEDDINGS,
    output:
        out=paths.REFITS,
    log:
        "results/logs/refits/{dataset}/{model}/seed{seed}/{selector}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        mem_mb=RESOURCES.rank_memory,
        runtime=RESOURCES.amount(60, texts=3000),
    params:
        settings=settings("refits", "selector", "seed"),
    shell:
        "exec python -m mamushi refits --examples {input.examples:q}"
        " --embeddings {input.embeddings:q} --base {input.base:q}"
        " --out {output.out:q} --settings {params.settings:q} > {log:q} 2>&1"


# The product: the ids to remove at a budget, and the copies of their texts.
rule remove:
    input:
        examples=texts_of_seed,
        scores=paths.SCORES,
        duplicates=paths.DUPLICATES,
    output:
        out=paths.REMOVAL,
    log:
        "results/logs/remove/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("remove", "beta"),
    shell:
        "exec python -m mamushi remove --examples {input.examples:q} --scores {input.scores:q}"
        " --duplicates {input.duplicates:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule stability:
    input:
        examples=texts_of_seed,
        duplicates=paths.DUPLICATES,
        scores=paths.SCORES,
        ranked=[],
        refits=refits_of(),
    output:
        out=paths.STABILITY,
    log:
        "results/logs/stability/{dataset}/{model}/seed{seed}/{selector}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("stability"),
    shell:
        "exec python -m mamushi stability --examples {input.examples:q}"
        " --duplicates {input.duplicates:q} --scores {input.scores:q} --ranked {input.ranked:q}"
        " --refits {input.refits:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# What each list was derived from, and what it is expected to do. One job for all budgets, and apart
# from the lists: a new estimate of the density ratio tells more about a list and changes none. All
# of its outputs have to be asked for: with one that is missing, no change of the job is looked for.
rule manifests:
    input:
        examples=texts_of_seed,
        scores=paths.SCORES,
        calibrated=paths.CALIBRATED,
        stability=paths.STABILITY,
        duplicates=paths.DUPLICATES,
    output:
        out=expand(
            paths.MANIFEST,
            beta=[paths.beta(budget) for budget in grid.budgets(config)],
            allow_missing=True,
        ),
    log:
        "results/logs/manifests/{dataset}/{model}/seed{seed}/{selector}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("manifests", *CELL, "selector"),
    shell:
        "exec python -m mamushi manifests --examples {input.examples:q}"
        " --scores {input.scores:q} --calibrated {input.calibrated:q}"
        " --stability {input.stability:q} --duplicates {input.duplicates:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
