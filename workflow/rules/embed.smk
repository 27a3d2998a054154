# The inference section in the representation space of the contaminated model: the one table that
# every selector reads. A model that is declared contaminated embeds as it is.


rule embed:
    input:
        trained=embedder,
        examples=made(paths.EXAMPLES),
        tokens=paths.TOKENS,
        model_card=paths.MODEL_CARD,
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/embed/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/embed/{dataset}/{model}/seed{seed}.tsv"
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=1,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5),
    params:
        settings=params(settings.embed, "model"),
    shell:
        command("embed")


# Apart from it, since no ranking by the last layer depends on which others one asks for.
rule embed_layers:
    input:
        trained=embedder,
        examples=made(paths.EXAMPLES),
        tokens=paths.TOKENS,
        model_card=paths.MODEL_CARD,
    output:
        out=paths.LAYERS,
    log:
        "results/logs/embed_layers/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/embed_layers/{dataset}/{model}/seed{seed}.tsv"
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=1,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5),
    params:
        settings=params(settings.embed_layers, "model"),
    shell:
        command("embed-layers")
