# The fine-tunes that all selectors of a run share. Contaminated is trained on the contamination
# section and does the embedding; beta 0 and gold, the two ends of every curve, on the inference
# section with and without its forget texts. Gold matched, where it is asked for, sees what gold
# does in as many steps as beta 0.


rule contaminate:
    input:
        examples=made(paths.EXAMPLES),
        tokens=paths.TOKENS,
        model_card=paths.MODEL_CARD,
    output:
        tensors=paths.TRAINED.replace("{endpoint}", "contaminated"),
        log_table=paths.TRAIN_LOG.replace("{endpoint}", "contaminated"),
        card=paths.TRAIN_CARD.replace("{endpoint}", "contaminated"),
    log:
        "results/logs/contaminate/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=TRAINING_MINUTES,
    params:
        settings=params(
            partial(settings.endpoint, role="contaminated"), "dataset", "model", "seed"
        ),
    shell:
        command("finetune")


use rule contaminate as gold with:
    input:
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
    output:
        tensors=paths.TRAINED.replace("{endpoint}", "gold"),
        log_table=paths.TRAIN_LOG.replace("{endpoint}", "gold"),
        card=paths.TRAIN_CARD.replace("{endpoint}", "gold"),
    log:
        "results/logs/gold/{dataset}/{model}/seed{seed}.log",
    params:
        settings=params(
            partial(settings.endpoint, role="gold"), "dataset", "model", "seed"
        ),


use rule gold as beta0 with:
    output:
        tensors=paths.TRAINED.replace("{endpoint}", "beta0"),
        log_table=paths.TRAIN_LOG.replace("{endpoint}", "beta0"),
        card=paths.TRAIN_CARD.replace("{endpoint}", "beta0"),
    log:
        "results/logs/beta0/{dataset}/{model}/seed{seed}.log",
    params:
        settings=params(
            partial(settings.endpoint, role="beta0"), "dataset", "model", "seed"
        ),


use rule gold as gold_matched with:
    output:
        tensors=paths.TRAINED.replace("{endpoint}", "gold_matched"),
        log_table=paths.TRAIN_LOG.replace("{endpoint}", "gold_matched"),
        card=paths.TRAIN_CARD.replace("{endpoint}", "gold_matched"),
    log:
        "results/logs/gold_matched/{dataset}/{model}/seed{seed}.log",
    params:
        settings=params(
            partial(settings.endpoint, role="gold_matched"), "dataset", "model", "seed"
        ),
