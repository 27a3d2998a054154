from mamushi_curate.vectors.stages import vector_files


# The embeddings, of vectors that another program made of the texts, or of the words.
rule import_embeddings:
    input:
        vectors=ancient(lambda wildcards: vector_files(MODELS[wildcards.model])),
        examples=texts_of_seed,
        duplicates=paths.DUPLICATES,
    output:
        out=paths.EMBEDDINGS,
    log:
        "results/logs/import_embeddings/{dataset}/{model}/seed{seed}.log",
    wildcard_constraints:
        model=only(name for name in MODELS if "embeddings" in MODELS[name]),
    priority: LOOK_FIRST
    conda:
        "../../../envs/mamushi.yaml"
    resources:
        # Vectors of width 4096 in float16, twice.
        mem_mb=RESOURCES.amount(4000, 16000, texts=20000),
        runtime=RESOURCES.amount(30, 60, texts=20),
    params:
        settings=settings("import-embeddings", "model"),
        data_card=paths.DATA_CARD,
    shell:
        "exec python -m mamushi import-embeddings --examples {input.examples:q}"
        " --duplicates {input.duplicates:q} --vectors {input.vectors:q}"
        " --data-card {params.data_card:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


ruleorder: import_embeddings > embed
