# Sample-level unlearning of what a removal list names, from a model that has seen it. As with
# retraining, a job also measures and asks, so that an unlearned model reaches the disk only where
# `keep_checkpoints` or a list of one's own asks for it.


# What enters the first trained block depends on none of unlearner, selector and budget. The first
# job of a run keeps it in a folder that is no output: see `stages/unlearn.py`.
for ending, sections in questions.VARIANTS.items():
    asked = questions.asked("unlearn", sections)

    rule:
        name:
            f"unlearn{ending}"
        input:
            trained=tensors_of(arms.UNLEARNED),
            examples=made(paths.EXAMPLES),
            tokens=of_arm(paths.TOKENS, arms.UNLEARNED),
            model_card=of_arm(paths.MODEL_CARD, arms.UNLEARNED),
            removal=paths.REMOVAL,
        output:
            **answers_of(arms.UNLEARNED, asked),
            perplexity=paths.PERPLEXITY.replace("{arm}", arms.UNLEARNED),
            log_table=paths.TRAIN_LOG.replace("{arm}", arms.UNLEARNED),
            card=paths.CARD.replace("{arm}", arms.UNLEARNED),
        log:
            f"results/logs/unlearn{ending}/{{dataset}}/{{model}}/seed{{seed}}/{{unlearner}}/{{selector}}/beta{{beta}}.log",
        wildcard_constraints:
            **only_asked(sections),
        threads: RESOURCES.cores(8)
        resources:
            gpu=RESOURCES.gpus,
            mem_mb=RESOURCES.model_memory,
            runtime=RESOURCES.and_asked(RESOURCES.of_model(60, 40, 10), asked),
        params:
            settings=params("unlearn", *CELL, "unlearner", asked=asked),
            trunk=paths.TRUNK,
            tensors=kept_tensors,
        shell:
            command("unlearn", tensors="{params.tensors:q}")


ruleorder: unlearn_and_probe_and_left > unlearn_and_probe > unlearn_and_left > unlearn


# All of the forget set: the end that the curves of every selector share.
use rule unlearn as unlearn_whole with:
    input:
        trained=tensors_of(arms.WHOLE),
        examples=made(paths.EXAMPLES),
        tokens=of_arm(paths.TOKENS, arms.WHOLE),
        model_card=of_arm(paths.MODEL_CARD, arms.WHOLE),
        removal=[],
    output:
        **answers_of(arms.WHOLE, []),
        perplexity=paths.PERPLEXITY.replace("{arm}", arms.WHOLE),
        log_table=paths.TRAIN_LOG.replace("{arm}", arms.WHOLE),
        card=paths.CARD.replace("{arm}", arms.WHOLE),
    log:
        "results/logs/unlearn_whole/{dataset}/{model}/seed{seed}/{unlearner}.log",


# A removal list of one's own, whose model is the product.
use rule unlearn as unlearn_list with:
    input:
        trained=tensors_of(arms.LISTED),
        examples=made(paths.EXAMPLES),
        tokens=of_arm(paths.TOKENS, arms.LISTED),
        model_card=of_arm(paths.MODEL_CARD, arms.LISTED),
        removal=lambda wildcards: config["unlearning"]["lists"][wildcards.list],
    output:
        **answers_of(arms.LISTED, []),
        tensors=paths.TRAINED.replace("{arm}", arms.LISTED),
        perplexity=paths.PERPLEXITY.replace("{arm}", arms.LISTED),
        log_table=paths.TRAIN_LOG.replace("{arm}", arms.LISTED),
        card=paths.CARD.replace("{arm}", arms.LISTED),
    log:
        "results/logs/unlearn_list/{dataset}/{model}/seed{seed}/{unlearner}/{list}.log",
    params:
        settings=params("unlearn", *CELL, "unlearner", "list"),
        trunk=paths.TRUNK,
        tensors=kept_tensors,


# The budgets at which a pair of unlearner and selector is measured: the configured ones and, once
# these show between which two the curve first reaches the target, finer ones there.
checkpoint refine:
    input:
        lambda wildcards: first_sweep(wildcards),
    output:
        out=paths.SWEEP,
    log:
        "results/logs/refine/{dataset}/{model}/{unlearner}/{selector}.log",
    localrule: True
    params:
        settings=params("refine", "dataset", "model", "unlearner", "selector"),
    shell:
        command("refine")
