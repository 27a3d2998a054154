# What is left of forget texts: what each model makes of single ones, whether it completes them, and
# the same of gold. Models that were retrained or unlearned are those of left_models.smk.


rule membership:
    input:
        trained=tensors_of,
        unlearned=[],
        examples=made(paths.EXAMPLES),
        tokens=of_endpoint(paths.TOKENS),
        model_card=of_endpoint(paths.MODEL_CARD),
    output:
        out=paths.MEMBERSHIP_ENDPOINT,
    log:
        "results/logs/membership/{dataset}/{model}/seed{seed}/{endpoint}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5),
    params:
        settings=params(settings.membership, "model", "endpoint"),
    shell:
        command("membership")


use rule membership as membership_retrained with:
    input:
        trained=paths.LEFT_TENSORS.replace("{unlearner}", "retraining"),
        unlearned=[],
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.MEMBERSHIP,
    log:
        "results/logs/membership_retrained/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    params:
        settings=params(partial(settings.membership, endpoint="retrained"), "model"),


use rule membership as membership_unlearned with:
    input:
        trained=start_tensors,
        unlearned=paths.LEFT_TENSORS,
        examples=made(paths.EXAMPLES),
        tokens=of_start(paths.TOKENS),
        model_card=of_start(paths.MODEL_CARD),
    output:
        out=paths.MEMBERSHIP_UNLEARNED,
    log:
        "results/logs/membership_unlearned/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    params:
        settings=params(partial(settings.membership, endpoint=None), "model"),


rule extraction:
    input:
        trained=tensors_of,
        unlearned=[],
        examples=made(paths.EXAMPLES),
        tokens=of_endpoint(paths.TOKENS),
        model_card=of_endpoint(paths.MODEL_CARD),
    output:
        out=paths.EXTRACTION_ENDPOINT,
    log:
        "results/logs/extraction/{dataset}/{model}/seed{seed}/{endpoint}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 60, 20),
    params:
        settings=params(settings.extraction, "model", "endpoint"),
    shell:
        command("extraction")


use rule extraction as extraction_retrained with:
    input:
        trained=paths.LEFT_TENSORS.replace("{unlearner}", "retraining"),
        unlearned=[],
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.EXTRACTION,
    log:
        "results/logs/extraction_retrained/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    params:
        settings=params(partial(settings.extraction, endpoint="retrained"), "model"),


use rule extraction as extraction_unlearned with:
    input:
        trained=start_tensors,
        unlearned=paths.LEFT_TENSORS,
        examples=made(paths.EXAMPLES),
        tokens=of_start(paths.TOKENS),
        model_card=of_start(paths.MODEL_CARD),
    output:
        out=paths.EXTRACTION_UNLEARNED,
    log:
        "results/logs/extraction_unlearned/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    params:
        settings=params(partial(settings.extraction, endpoint=None), "model"),


rule left_tables:
    input:
        lambda wildcards: left_results(),
    output:
        membership=report(
            paths.TABLE_CSV.replace("{table}", "membership"),
            caption="../report/membership.rst",
            category="What is left",
            labels={"table": "Membership inference"},
        ),
        memorization=report(
            paths.TABLE_CSV.replace("{table}", "memorization"),
            caption="../report/memorization.rst",
            category="What is left",
            labels={"table": "Memorization"},
        ),
        left=report(
            paths.TABLE_CSV.replace("{table}", "left"),
            caption="../report/left_table.rst",
            category="What is left",
            labels={"table": "What is left, on a page"},
        ),
        parquet=expand(paths.TABLE, table=settings.LEFT_TABLES),
    log:
        "results/logs/left_tables.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.left),
    shell:
        command("left", out_folder="$(dirname {output.left:q})")
