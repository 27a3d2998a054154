# Influence on other texts along the training of beta 0, which is done again, or at the weights of a
# model that was contaminated before.


rule influence:
    input:
        arm_files("examples", "model_card", "tokens", arm="contaminated"),
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
