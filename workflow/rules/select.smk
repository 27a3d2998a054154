# Embeddings -> a ranking of the forget texts -> what to remove at each budget, with its manifests.


# A selector ranks the forget set once; every budget takes the top of that one ranking, so that
# removal lists are nested.
rule score:
    input:
        base=base_of(paths.SCORES),
        examples=made(paths.EXAMPLES),
        embeddings=paths.EMBEDDINGS,
        layers=layers_read,
        tokens=tokens_read,
    output:
        out=paths.SCORES,
    log:
        SCORE_LOG,
    threads: RESOURCES.cores(8)
    resources:
        mem_mb=RESOURCES.rank_memory,
        runtime=RESOURCES.rank_minutes,
    params:
        settings=params("score", "model", "selector", "seed"),
    shell:
        command("score")


# The scores again, with other seeds: for the error of what is estimated from them. No list depends
# on them.
rule refits:
    input:
        base=base_of(paths.REFITS),
        examples=made(paths.EXAMPLES),
        embeddings=paths.EMBEDDINGS,
        layers=layers_read,
        tokens=tokens_read,
    output:
        out=paths.REFITS,
    log:
        "results/logs/refits/{dataset}/{model}/seed{seed}/{selector}.log",
    threads: RESOURCES.cores(8)
    resources:
        mem_mb=RESOURCES.rank_memory,
        runtime=RESOURCES.refit_minutes,
    params:
        settings=params("refits", "model", "selector", "seed"),
    shell:
        command("refits")


# A corpus that nobody labelled: examples were scored against it, and its own texts are ranked.
rule posterior:
    input:
        examples=made(paths.EXAMPLES),
        scores=paths.SCORES,
    output:
        out=paths.POSTERIOR,
    log:
        "results/logs/posterior/{dataset}/{model}/seed{seed}/{selector}.log",
    wildcard_constraints:
        dataset=only(CORPORA),
    localrule: True
    params:
        settings=params("posterior", "dataset"),
    shell:
        command("posterior")


# The product: the ids to remove at a budget, and the copies of their texts.
rule remove:
    input:
        examples=made(paths.EXAMPLES),
        scores=ranking_of,
        duplicates=made(paths.DUPLICATES),
    output:
        out=paths.REMOVAL,
    log:
        "results/logs/remove/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    localrule: True
    params:
        settings=params("remove", "beta"),
    shell:
        command("remove")


# Tokens in the place of texts: a selector of tokens scores every token of the forget set once, like one of texts.
rule token_scores:
    input:
        examples=made(paths.EXAMPLES),
        tokens=of_arm(paths.TOKENS, "gold"),
    output:
        out=paths.TOKEN_SCORES,
    log:
        "results/logs/token_scores/{dataset}/{model}/seed{seed}/{selector}.log",
    localrule: True
    params:
        settings=params("token_scores", "model", "selector", "seed"),
    shell:
        command("token-scores")


rule spans:
    input:
        scores=paths.TOKEN_SCORES,
    output:
        out=paths.SPANS,
    log:
        "results/logs/spans/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    localrule: True
    params:
        settings=params("spans", "beta"),
    shell:
        command("spans")


# As the manifests of lists, and what the page shows of a ranking of tokens.
rule token_manifests:
    input:
        examples=made(paths.EXAMPLES),
        tokens=of_arm(paths.TOKENS, "gold"),
        duplicates=made(paths.DUPLICATES),
        model_card=of_arm(paths.MODEL_CARD, "gold"),
        scores=paths.TOKEN_SCORES,
    output:
        out=expand(
            paths.SPANS_MANIFEST,
            beta=[paths.beta(budget) for budget in grid.budgets(config)],
            allow_missing=True,
        ),
        shown=paths.TOKENS_SHOWN,
    log:
        "results/logs/token_manifests/{dataset}/{model}/seed{seed}/{selector}.log",
    localrule: True
    params:
        settings=params("token_manifests", *CELL, "selector"),
    shell:
        command("token-manifests")


rule stability:
    input:
        examples=made(paths.EXAMPLES),
        duplicates=made(paths.DUPLICATES),
        scores=paths.SCORES,
        ranked=corpus_ranking,
        refits=refits_of("{selector}"),
    output:
        out=paths.STABILITY,
    log:
        "results/logs/stability/{dataset}/{model}/seed{seed}/{selector}.log",
    localrule: True
    params:
        settings=params("stability"),
    shell:
        command("stability")


# What each list was derived from, and what it is expected to do. One job for all budgets, and apart
# from the lists: a new estimate of the density ratio tells more about a list and changes none. All
# of its outputs have to be asked for: with one that is missing, no change of the job is looked for.
rule manifests:
    input:
        examples=made(paths.EXAMPLES),
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
    wildcard_constraints:
        dataset=LABELLED,
    localrule: True
    params:
        settings=params("manifests", *CELL, "selector"),
    shell:
        command("manifests")


# The same of a list of a corpus, at any budget.
rule corpus_manifest:
    input:
        examples=made(paths.EXAMPLES),
        duplicates=made(paths.DUPLICATES),
        scores=paths.SCORES,
        refits=refits_of("{selector}"),
        posterior=paths.POSTERIOR,
    output:
        out=paths.MANIFEST,
    log:
        "results/logs/corpus_manifest/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    wildcard_constraints:
        dataset=only(CORPORA),
    localrule: True
    params:
        settings=params("corpus_manifest", *CELL, "selector", "beta"),
    shell:
        command("corpus-manifest")
