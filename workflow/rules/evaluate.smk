# Perplexity of the models that are kept, on the static held-out sets of both domains. Retrained
# models are measured where they are trained: see retrain.smk.


EVALUATE = params("evaluate", "model", "arm")


rule evaluate:
    input:
        shards=shards(paths.NLL, EVALUATE),
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
        settings=EVALUATE,
        shard=SHARD,
    shell:
        command("evaluate", shards="{input.shards:q}")


use rule evaluate as evaluate_shard with:
    output:
        out=[],
        nll=temp(paths.SHARD.replace("{table}", "{arm}")),
    log:
        "results/logs/evaluate/{dataset}/{model}/seed{seed}/{arm}/{scatteritem}.log",
