# The fine-tunes that all selectors of a run share. Contaminated is trained on the contamination
# section and does the embedding; beta 0 and gold, the two ends of every curve, on the inference
# section with and without its forget texts.


for name, role in {
    "contaminate": "contaminated",
    "gold": "gold",
    "beta0": "beta0",
}.items():

    rule:
        name:
            name
        input:
            examples=made(paths.EXAMPLES),
            tokens=of_arm(paths.TOKENS, role),
            model_card=of_arm(paths.MODEL_CARD, role),
        output:
            tensors=paths.TRAINED.replace("{arm}", role),
            log_table=paths.TRAIN_LOG.replace("{arm}", role),
            card=paths.CARD.replace("{arm}", role),
        log:
            f"results/logs/{name}/{{dataset}}/{{model}}/seed{{seed}}.log",
        threads: RESOURCES.cores(8)
        resources:
            gpu=RESOURCES.gpus,
            mem_mb=RESOURCES.model_memory,
            runtime=RESOURCES.training_minutes,
        params:
            settings=params("finetune", *CELL, role=role),
            trunk=paths.BASE_TRUNK,
        shell:
            command("finetune")
