# Cross-entropies of a model that has learned the domain and of its clean twin, which is trained here:
# once for all budgets, and for the rankings of texts and of tokens.


# Where no other texts have contaminated a model, it is trained on folds of the ranked ones.
rule cross_entropy:
    input:
        arm_files("examples", "model_card", "tokens", arm="gold"),
        trained=lambda wildcards: (
            files_of_arm(wildcards.model, "contaminated").get("trained", [])
            if "contamination" in DATASETS[wildcards.dataset]["sections"]
            else []
        ),
    output:
        out=paths.CROSS_ENTROPY,
    log:
        "results/logs/cross_entropy/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("cross_entropy"),
    params:
        settings=settings("cross-entropy", *CELL),
    shell:
        "exec python -m mamushi cross-entropy --examples {input.examples:q}"
        " --tokens {input.tokens:q} --model-card {input.model_card:q} --trained {input.trained:q}"
        " --out {output.out:q} --settings {params.settings:q} > {log:q} 2>&1"
