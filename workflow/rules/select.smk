# A selector ranks the forget set once; every budget takes the top of that one ranking, so that
# removal lists are nested.


rule score:
    input:
        base=scored_before,
        examples=paths.EXAMPLES,
        embeddings=paths.EMBEDDINGS,
    output:
        paths.SCORES,
    log:
        "results/logs/score/{dataset}/{model}/seed{seed}/{selector}.log",
    benchmark:
        "results/benchmarks/score/{dataset}/{model}/seed{seed}/{selector}.tsv"
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=memory(4000, 16000),
        runtime=minutes(30, 60),
    params:
        settings=params(settings.score, "selector", "seed"),
    shell:
        "python -m mamushi score --examples {input.examples:q} --embeddings {input.embeddings:q}"
        " --base {input.base:q} --out {output:q} --settings {params.settings:q} > {log:q} 2>&1"


# The product: the ids to remove at a budget, and a manifest that says what they were derived from
# and what their removal is expected to do.
rule remove:
    input:
        scores=paths.SCORES,
        ratio=paths.SCORES.replace("{selector}", config["removal"]["ratio"]),
    output:
        removal=paths.REMOVAL,
        manifest=paths.MANIFEST,
    log:
        "results/logs/remove/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.remove, "dataset", "model", "seed", "selector", "beta"),
    shell:
        "python -m mamushi remove --scores {input.scores:q} --ratio {input.ratio:q}"
        " --out {output.removal:q} --manifest {output.manifest:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
