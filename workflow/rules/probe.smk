# What models say, and what the gold model makes of it.


rule generate:
    input:
        arm_files("model_card", "trained", "unlearned"),
    output:
        out=paths.GENERATIONS,
    log:
        "results/logs/generate/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("generate"),
    params:
        settings=settings("generate", "model", "arm"),
    shell:
        "exec python -m mamushi generate --model-card {input.model_card:q}"
        " --trained {input.trained:q} --unlearned {input.unlearned:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule judge:
    input:
        arm_files("model_card", "trained", arm="gold"),
        generations=lambda wildcards: judged_files(
            config, {**wildcards, "seed": int(wildcards.seed)}
        ),
    output:
        out=paths.JUDGED,
    log:
        "results/logs/judge/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("judge"),
    params:
        settings=settings("judge", *CELL, arm="gold"),
    shell:
        "exec python -m mamushi judge --generations {input.generations:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
