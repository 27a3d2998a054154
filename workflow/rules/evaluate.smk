# Perplexity of the models that are kept, on the static held-out sets of both domains. Retrained
# models are measured where they are trained: see retrain.smk.


rule evaluate:
    input:
        trained=tensors_of(),
        examples=made(paths.EXAMPLES),
        tokens=of_arm(paths.TOKENS),
        model_card=of_arm(paths.MODEL_CARD),
    output:
        out=paths.PERPLEXITY,
        nll=paths.NLL,
    log:
        "results/logs/evaluate/{dataset}/{model}/seed{seed}/{arm}.log",
    wildcard_constraints:
        arm=only(arms.ENDPOINTS),
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.evaluate_minutes,
    params:
        settings=params("evaluate", "model", "arm"),
    shell:
        command("evaluate")
