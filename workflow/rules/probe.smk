# What models say, what the gold model makes of it, and how fast they learn the domain anew.


rule generate:
    input:
        trained=trained_of(),
        unlearned=unlearned_of,
        model_card=of_arm(paths.MODEL_CARD),
    output:
        out=paths.GENERATIONS,
    log:
        "results/logs/generate/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.minutes("generate"),
    params:
        settings=settings("generate", "model", "arm"),
    shell:
        "exec python -m mamushi generate --model-card {input.model_card:q}"
        " --trained {input.trained:q} --unlearned {input.unlearned:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule judge:
    input:
        generations=lambda wildcards: grid.generations(
            config, {**wildcards, "seed": int(wildcards.seed)}
        ),
        trained=paths.TRAINED.replace("{arm}", "gold"),
        model_card=of_arm(paths.MODEL_CARD, "gold"),
    output:
        out=paths.JUDGED,
    log:
        "results/logs/judge/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.minutes("judge"),
    params:
        settings=settings("judge", *CELL, arm="gold"),
    shell:
        "exec python -m mamushi judge --generations {input.generations:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule relearn:
    input:
        trained=trained_of(),
        unlearned=unlearned_of,
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS),
        model_card=of_arm(paths.MODEL_CARD),
    output:
        out=paths.RELEARNING,
        texts=paths.RELEARNED,
    log:
        "results/logs/relearn/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.minutes("relearn"),
    params:
        settings=settings("relearn", "model", "seed", "arm"),
    shell:
        "exec python -m mamushi relearn --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q}"
        " --unlearned {input.unlearned:q} --out {output.out:q}"
        " --texts {output.texts:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
