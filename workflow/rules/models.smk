# The models, and what is made of a text for a model, once: its token ids.


# A model that exists, in a folder or on the hub: looked at before anything is spent on it.
rule model_card:
    input:
        ancient(lambda wildcards: explained(model_files, config, wildcards.model)),
    output:
        out=paths.MODEL_CARD,
    log:
        "results/logs/model_card/{model}.log",
    wildcard_constraints:
        model=only(name for name in MODELS if name not in TINY),
    priority: LOOK_FIRST
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 8000 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        settings=settings("model-card", "model"),
    shell:
        "exec python -m mamushi model-card --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# A tiny model of a real architecture, with a tokenizer of its own, pretrained here.
rule base_model:
    input:
        examples=lambda wildcards: expand(
            paths.EXAMPLES,
            dataset=config["models"][wildcards.model]["pretraining"]["datasets"],
        ),
    output:
        # With the model's files beside it, whose digests it has.
        card=paths.MODEL_CARD,
    log:
        "results/logs/base_model/{model}.log",
    wildcard_constraints:
        model=only(TINY),
    conda:
        "../../envs/mamushi.yaml"
    resources:
        **on_gpu(
            "base_model",
            mem_mb=lambda wildcards, attempt: 8000 * attempt,
            runtime=lambda wildcards, attempt: 60 * attempt,
        ),
    params:
        settings=settings("base-model", "model"),
    shell:
        "exec python -m mamushi base-model --examples {input.examples:q}"
        ' --out "$(dirname {output.card:q})" --settings {params.settings:q} > {log:q} 2>&1'


rule tokens:
    input:
        examples=paths.EXAMPLES,
        model_card=paths.MODEL_CARD,
    output:
        out=paths.TOKENS,
    log:
        "results/logs/tokens/{dataset}/{model}.log",
    priority: LOOK_FIRST
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.amount(8000, texts=2000),
        runtime=RESOURCES.amount(60, texts=20),
    params:
        settings=settings("tokens"),
    shell:
        "exec python -m mamushi tokens --examples {input.examples:q}"
        " --model-card {input.model_card:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
