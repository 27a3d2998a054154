# Perplexity of the models that are kept, on the static held-out sets of both domains. Retrained
# models are measured where they are trained: see retrain.smk.


rule evaluate:
    input:
        trained=tensors_of,
        examples=made(paths.EXAMPLES),
        tokens=of_endpoint(paths.TOKENS),
        model_card=of_endpoint(paths.MODEL_CARD),
    output:
        out=paths.PERPLEXITY_ENDPOINT,
    log:
        "results/logs/evaluate/{dataset}/{model}/seed{seed}/{endpoint}.log",
    benchmark:
        "results/benchmarks/evaluate/{dataset}/{model}/seed{seed}/{endpoint}.tsv"
    group:
        packed("evaluate", "endpoint", ["base", "contaminated", "gold", "beta0"])
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=1,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5),
    params:
        settings=params(settings.evaluate, "model", "endpoint"),
    shell:
        command("evaluate")
