# The models and what is made of a text for each of them, once: its token ids.


# A model that exists, in a folder or on the hub: looked at before anything is spent on it.
rule model_card:
    input:
        ancient(lambda wildcards: settings.model_files(config, wildcards.model)),
    output:
        paths.MODEL_CARD,
    log:
        "results/logs/model_card/{model}.log",
    benchmark:
        "results/benchmarks/model_card/{model}.tsv"
    wildcard_constraints:
        model=only(READY),
    priority: LOOK_FIRST
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 8000 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        settings=params(settings.model_card, "model"),
    shell:
        "exec python -m mamushi model-card --out {output:q} --settings {params.settings:q}"
        " > {log:q} 2>&1"


# A tiny model of a real architecture, with a tokenizer of its own, pretrained here.
rule base_model:
    input:
        lambda wildcards: [
            made_of(paths.EXAMPLES, dataset)
            for dataset in config["models"][wildcards.model]["pretraining"]["datasets"]
        ],
    output:
        card=paths.MODEL_CARD,
        files=multiext(
            "results/base/{model}/",
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "generation_config.json",
            "train_log.parquet",
        ),
    log:
        "results/logs/base_model/{model}.log",
    benchmark:
        "results/benchmarks/base_model/{model}.tsv"
    wildcard_constraints:
        model=only(TINY),
    conda:
        "../../envs/mamushi.yaml"
    resources:
        gpu=1,
        mem_mb=lambda wildcards, attempt: 8000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        settings=params(settings.base_model, "model"),
    shell:
        "exec python -m mamushi base-model --examples {input:q} --out $(dirname {output.card:q})"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule tokens:
    input:
        examples=made(paths.EXAMPLES),
        card=paths.MODEL_CARD,
    output:
        paths.TOKENS,
    log:
        "results/logs/tokens/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/tokens/{dataset}/{model}.tsv"
    priority: LOOK_FIRST
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 8000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        settings=params(lambda config: settings.tokens(config)),
    shell:
        "exec python -m mamushi tokens --examples {input.examples:q} --model-card {input.card:q}"
        " --out {output:q} --settings {params.settings:q} > {log:q} 2>&1"
