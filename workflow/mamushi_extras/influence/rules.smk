# Influence on other texts along the training of beta 0, which is done again, or at the weights of a
# model that was contaminated before, and the rankings of texts and of tokens by it.
from mamushi_extras.influence.adds import by_influence

BY_INFLUENCE = by_influence(config)


rule influence:
    input:
        **arm_files("model_card", "tokens", arm="contaminated"),
        examples=texts_of_seed,
    output:
        out=paths.INFLUENCE,
    log:
        "results/logs/influence/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("influence"),
    params:
        settings=settings("influence", *CELL, role="beta0"),
    shell:
        "exec python -m mamushi influence --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule influence_scores:
    input:
        examples=texts_of_seed,
        embeddings=paths.EMBEDDINGS,
        influence=paths.INFLUENCE,
    output:
        out=paths.SCORES,
    log:
        paths.SCORE_LOG,
    wildcard_constraints:
        selector=only(BY_INFLUENCE),
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("influence-scores", "selector", "seed"),
    shell:
        "exec python -m mamushi influence-scores --examples {input.examples:q}"
        " --embeddings {input.embeddings:q} --influence {input.influence:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


ruleorder: influence_scores > score
