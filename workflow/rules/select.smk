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
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        mem_mb=scaled(4000, 16000, 0, texts=memory_to_rank),
        runtime=minutes(30, 240, texts=minutes_to_rank),
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
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        mem_mb=scaled(4000, 16000, 0, texts=memory_to_rank),
        runtime=minutes(60, 480, texts=minutes_to_rank_again),
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
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.remove, "beta"),
    shell:
        command("remove")


# The same budget by degrees: the weight that each forget text keeps, for a selector that says so.
rule weigh:
    input:
        scores=paths.SCORES,
        duplicates=made(paths.DUPLICATES),
    output:
        out=paths.WEIGHTS,
    log:
        "results/logs/weigh/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.weigh, "beta"),
    shell:
        command("weigh")


# And by tokens: two models, of the contamination section's forget texts and of its retain texts,
# are trained and read in one job, which keeps neither.
rule token_ratio:
    input:
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.TOKEN_RATIO,
    log:
        "results/logs/token_ratio/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=TRAINING_MINUTES,
    params:
        settings=params(settings.token_ratio, "dataset", "model", "seed"),
    shell:
        command("token-ratio")


rule spans:
    input:
        ratio=paths.TOKEN_RATIO,
    output:
        out=paths.SPANS,
    log:
        "results/logs/spans/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.spans, "beta"),
    shell:
        command("spans")


rule stability:
    input:
        scores=paths.SCORES,
        refits=paths.REFITS,
    output:
        out=paths.STABILITY,
    log:
        "results/logs/stability/{dataset}/{model}/seed{seed}/{selector}.log",
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
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.manifests, "dataset", "model", "seed", "selector"),
    shell:
        command("manifests")
