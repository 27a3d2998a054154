# Tokens in the place of texts: a selector of tokens scores every token of the forget set once, and
# every budget masks the highest of them.
rule token_scores:
    input:
        arm_files("examples", "tokens", arm="gold"),
        measured=lambda wildcards: (
            selectors.measured_table(config, wildcards.selector) or []
        ),
    output:
        out=paths.TOKEN_SCORES,
    log:
        "results/logs/token_scores/{dataset}/{model}/seed{seed}/{selector}.log",
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("token-scores", "model", "selector", "seed"),
    shell:
        "exec python -m mamushi token-scores --examples {input.examples:q}"
        " --tokens {input.tokens:q} --measured {input.measured:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# Of texts that are ranked by their tokens, as a model sees them.
rule measured_scores:
    input:
        examples=texts_of_seed,
        embeddings=paths.EMBEDDINGS,
        measured=lambda wildcards: selectors.measured_table(config, wildcards.selector),
    output:
        out=paths.SCORES,
    log:
        paths.SCORE_LOG,
    wildcard_constraints:
        selector=only(
            filter(partial(selectors.measured_table, config), config["selectors"])
        ),
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("measured-scores", "selector", "seed"),
    shell:
        "exec python -m mamushi measured-scores --examples {input.examples:q}"
        " --embeddings {input.embeddings:q} --measured {input.measured:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


ruleorder: measured_scores > score


rule spans:
    input:
        scores=paths.TOKEN_SCORES,
    output:
        out=paths.SPANS,
    log:
        "results/logs/spans/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("spans", "beta"),
    shell:
        "exec python -m mamushi spans --scores {input.scores:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# As the manifests of lists.
rule token_manifests:
    input:
        arm_files("examples", "tokens", arm="gold"),
        duplicates=paths.DUPLICATES,
        scores=paths.TOKEN_SCORES,
    output:
        out=expand(
            paths.SPANS_MANIFEST,
            beta=[paths.beta(budget) for budget in grid.budgets(config)],
            allow_missing=True,
        ),
    log:
        "results/logs/token_manifests/{dataset}/{model}/seed{seed}/{selector}.log",
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("token-manifests", *CELL, "selector"),
    shell:
        "exec python -m mamushi token-manifests --examples {input.examples:q}"
        " --tokens {input.tokens:q} --duplicates {input.duplicates:q}"
        " --scores {input.scores:q} --out {output.out:q} --settings {params.settings:q} > {log:q} 2>&1"
