# The inference section in the representation space of the contaminated model: the one table that
# every selector reads. A model that is declared contaminated embeds as it is.


EMBED, EMBED_LAYERS, ENCODE = (
    params(made_with, "model") for made_with in ("embed", "embed_layers", "encode")
)


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
            lambda wildcards: stages.module("import_embeddings").vector_files(
                config, wildcards.model
            )[0]
            or []
        ),
        ids=ancient(
            lambda wildcards: stages.module("import_embeddings").vector_files(
                config, wildcards.model
            )[1]
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
        mem_mb=RESOURCES.memory(4000, 16000, texts=20000),
        runtime=RESOURCES.minutes(30, 60, texts=20),
    params:
        settings=params("import_embeddings", "model"),
        data_card=lambda wildcards: paths.DATA_CARD.format(dataset=wildcards.dataset),
    shell:
        command("import-embeddings")


# The same table, by a sentence encoder.
rule encode:
    input:
        ancient(
            lambda wildcards: stages.module("encode").encoder_files(
                config, wildcards.model
            )
        ),
        shards=shards(paths.EMBEDDINGS, ENCODE),
        examples=made(paths.EXAMPLES),
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/encode/{dataset}/{model}/seed{seed}.log",
    wildcard_constraints:
        model=only(ENCODERS),
    threads: RESOURCES.cores(8)
    resources:
        gpu=1,
        mem_mb=RESOURCES.encode_memory,
        runtime=RESOURCES.encode_minutes,
    params:
        settings=ENCODE,
        shard=SHARD,
    shell:
        command("encode", shards="{input.shards:q}")


use rule encode as encode_shard with:
    output:
        out=temp(paths.SHARD.replace("{table}", "embeddings")),
    log:
        "results/logs/encode/{dataset}/{model}/seed{seed}/{scatteritem}.log",


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
