# The fine-tunes that all selectors of a run share. Contaminated is trained on the contamination
# section and does the embedding; beta 0 and gold, the two ends of every curve, on the inference
# section with and without its forget texts.


rule contaminate:
    input:
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS, "contaminated"),
        model_card=of_arm(paths.MODEL_CARD, "contaminated"),
    output:
        tensors=paths.TRAINED.replace("{arm}", "contaminated"),
        log_table=paths.TRAIN_LOG.replace("{arm}", "contaminated"),
        card=paths.CARD.replace("{arm}", "contaminated"),
    log:
        "results/logs/contaminate/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.minutes("beta0"),
    params:
        settings=settings("finetune", *CELL, role="contaminated"),
    shell:
        "exec python -m mamushi finetune --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --tensors {output.tensors:q}"
        " --log-table {output.log_table:q} --card {output.card:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule contaminate as gold with:
    input:
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS, "gold"),
        model_card=of_arm(paths.MODEL_CARD, "gold"),
    output:
        tensors=paths.TRAINED.replace("{arm}", "gold"),
        log_table=paths.TRAIN_LOG.replace("{arm}", "gold"),
        card=paths.CARD.replace("{arm}", "gold"),
    log:
        "results/logs/gold/{dataset}/{model}/seed{seed}.log",
    params:
        settings=settings("finetune", *CELL, role="gold"),


use rule contaminate as beta0 with:
    input:
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS, "beta0"),
        model_card=of_arm(paths.MODEL_CARD, "beta0"),
    output:
        tensors=paths.TRAINED.replace("{arm}", "beta0"),
        log_table=paths.TRAIN_LOG.replace("{arm}", "beta0"),
        card=paths.CARD.replace("{arm}", "beta0"),
    log:
        "results/logs/beta0/{dataset}/{model}/seed{seed}.log",
    params:
        settings=settings("finetune", *CELL, role="beta0"),
