# The inference section in the representation space of the contaminated model: the one table that
# every selector reads. A model that is declared contaminated embeds as it is.
rule embed:
    input:
        arm_files("examples", "model_card", "tokens", "trained", arm="contaminated"),
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/embed/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("embed"),
    params:
        settings=settings("embed", "model"),
    shell:
        "exec python -m mamushi embed --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q}"
        " --out {output.out:q} --settings {params.settings:q} > {log:q} 2>&1"
