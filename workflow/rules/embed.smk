# The inference section in the representation space of the contaminated model: the one table that
# every selector reads. A model that is declared contaminated embeds as it is.


EMBED, EMBED_LAYERS = (params(name, "model") for name in ("embed", "embed_layers"))


rule embed:
    input:
        shards=shards(paths.EMBEDDINGS, EMBED),
        trained=tensors_of("contaminated"),
        examples=made(paths.EXAMPLES),
        tokens=paths.TOKENS,
        model_card=paths.MODEL_CARD,
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/embed/{dataset}/{model}/seed{seed}.log",
    wildcard_constraints:
        model=only(LANGUAGE),
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.embed_memory,
        runtime=RESOURCES.embed_minutes,
    params:
        settings=EMBED,
        shard=SHARD,
    shell:
        command("embed", shards="{input.shards:q}")


use rule embed as embed_shard with:
    output:
        out=temp(paths.SHARD.replace("{table}", "embeddings")),
    log:
        "results/logs/embed/{dataset}/{model}/seed{seed}/{scatteritem}.log",


# The same table, of vectors that another program made of the texts.
rule import_embeddings:
    input:
        examples=made(paths.EXAMPLES),
        duplicates=made(paths.DUPLICATES),
        vectors=ancient(
            lambda wildcards: config["models"][wildcards.model]["embeddings"]["path"]
            or []
        ),
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/import_embeddings/{dataset}/{model}/seed{seed}.log",
    wildcard_constraints:
        model=only(VECTORS),
    priority: LOOK_FIRST
    resources:
        # Vectors of width 4096 in float16, twice.
        mem_mb=RESOURCES.of_model(4000, 16000, texts=20000),
        runtime=RESOURCES.of_model(30, 60, texts=20),
    params:
        settings=params("import_embeddings", "model"),
        data_card=lambda wildcards: paths.DATA_CARD.format(dataset=wildcards.dataset),
    shell:
        command("import-embeddings")


# Apart from it, since no ranking by the last layer depends on which others one asks for.
rule embed_layers:
    input:
        shards=shards(paths.LAYERS, EMBED_LAYERS),
        trained=tensors_of("contaminated"),
        examples=made(paths.EXAMPLES),
        tokens=paths.TOKENS,
        model_card=paths.MODEL_CARD,
    output:
        out=paths.LAYERS,
    log:
        "results/logs/embed_layers/{dataset}/{model}/seed{seed}.log",
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.embed_memory,
        runtime=RESOURCES.embed_minutes,
    params:
        settings=EMBED_LAYERS,
        shard=SHARD,
    shell:
        command("embed-layers", shards="{input.shards:q}")


use rule embed_layers as embed_layers_shard with:
    output:
        out=temp(paths.SHARD.replace("{table}", "layers")),
    log:
        "results/logs/embed_layers/{dataset}/{model}/seed{seed}/{scatteritem}.log",
