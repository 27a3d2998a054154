# A fresh base model, fine-tuned on the inference section less what the removal list names, and
# measured on the held-out sets before it is let go. Training and measuring share a process, because
# loading the base model and passing billions of trained weights through a file would cost more than
# the measurement; so a retrained model reaches the disk only where `keep_checkpoints` asks for it.


# A model that is asked more, by `probe` or `left`, answers in the job that makes it.
for ending, sections in questions.VARIANTS.items():
    asked = questions.asked("retrain", sections)

    rule:
        name:
            f"retrain{ending}"
        input:
            examples=made(paths.EXAMPLES),
            tokens=of_arm(paths.TOKENS, arms.RETRAINED),
            model_card=of_arm(paths.MODEL_CARD, arms.RETRAINED),
            removal=taken_out(paths.REMOVAL, tokens=False),
            spans=taken_out(paths.SPANS, tokens=True),
        output:
            **answers_of(arms.RETRAINED, asked),
            perplexity=paths.PERPLEXITY.replace("{arm}", arms.RETRAINED),
            nll=paths.NLL.replace("{arm}", arms.RETRAINED),
            log_table=paths.TRAIN_LOG.replace("{arm}", arms.RETRAINED),
            card=paths.CARD.replace("{arm}", arms.RETRAINED),
        log:
            f"results/logs/retrain{ending}/{{dataset}}/{{model}}/seed{{seed}}/{{selector}}/beta{{beta}}.log",
        wildcard_constraints:
            **only_asked(sections),
        threads: RESOURCES.cores(8)
        resources:
            gpu=RESOURCES.gpus,
            mem_mb=RESOURCES.model_memory,
            runtime=RESOURCES.and_asked(RESOURCES.training_minutes, asked),
        params:
            settings=params("retrain", *CELL, role="retrained", asked=asked),
            trunk=paths.BASE_TRUNK,
            tensors=kept_tensors,
        shell:
            command("retrain", tensors="{params.tensors:q}")


ruleorder: retrain_and_probe_and_left > retrain_and_probe > retrain_and_left > retrain
