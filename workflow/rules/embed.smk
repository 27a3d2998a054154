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
    wildcard_constraints:
        model=only(LANGUAGE),
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


# The same table, of vectors that another program made of the texts.
rule import_embeddings:
    input:
        examples=made(paths.EXAMPLES),
        duplicates=made(paths.DUPLICATES),
        vectors=ancient(
            lambda wildcards: settings.vector_files(config, wildcards.model)[0] or []
        ),
        ids=ancient(
            lambda wildcards: settings.vector_files(config, wildcards.model)[1] or []
        ),
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/import_embeddings/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/import_embeddings/{dataset}/{model}/seed{seed}.tsv"
    wildcard_constraints:
        model=only(VECTORS),
    priority: LOOK_FIRST
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=memory(4000, 16000),
        runtime=minutes(30, 60),
    params:
        settings=params(settings.import_embeddings, "model"),
        data_card=lambda wildcards: paths.DATA_CARD.format(dataset=wildcards.dataset),
    shell:
        command("import-embeddings")


# The same table, by a sentence encoder.
rule encode:
    input:
        ancient(lambda wildcards: settings.encoder_files(config, wildcards.model)),
        examples=made(paths.EXAMPLES),
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/encode/{dataset}/{model}/seed{seed}.log",
    benchmark:
        "results/benchmarks/encode/{dataset}/{model}/seed{seed}.tsv"
    wildcard_constraints:
        model=only(ENCODERS),
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=1,
        mem_mb=memory(4000, 16000),
        runtime=minutes(60, 120),
    params:
        settings=params(settings.encode, "model"),
    shell:
        command("encode")


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
