# Unlearning of the texts that a removal list names, or of tokens, from a model that has seen them.


rule unlearn:
    input:
        trained=trained_of(arms.UNLEARNED),
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS, arms.UNLEARNED),
        model_card=of_arm(paths.MODEL_CARD, arms.UNLEARNED),
        removal=removed_from(paths.REMOVAL, tokens=False),
        spans=removed_from(paths.SPANS, tokens=True),
    output:
        tensors=unless_kept(paths.TRAINED.replace("{arm}", arms.UNLEARNED)),
        log_table=paths.TRAIN_LOG.replace("{arm}", arms.UNLEARNED),
        card=paths.CARD.replace("{arm}", arms.UNLEARNED),
    log:
        "results/logs/unlearn/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    group:
        "arm"
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.minutes("unlearn"),
    params:
        settings=settings("unlearn", *CELL, "unlearner"),
    shell:
        "exec python -m mamushi unlearn --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q}"
        " --removal {input.removal:q} --spans {input.spans:q}"
        " --tensors {output.tensors:q} --log-table {output.log_table:q} --card {output.card:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# All of the forget set: the end that the curves of every selector share.
use rule unlearn as unlearn_whole with:
    input:
        trained=trained_of(arms.UNLEARNED_WHOLE),
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS, arms.UNLEARNED_WHOLE),
        model_card=of_arm(paths.MODEL_CARD, arms.UNLEARNED_WHOLE),
        removal=[],
        spans=[],
    output:
        tensors=unless_kept(paths.TRAINED.replace("{arm}", arms.UNLEARNED_WHOLE)),
        log_table=paths.TRAIN_LOG.replace("{arm}", arms.UNLEARNED_WHOLE),
        card=paths.CARD.replace("{arm}", arms.UNLEARNED_WHOLE),
    log:
        "results/logs/unlearn_whole/{dataset}/{model}/seed{seed}/{unlearner}.log",


# A removal list of the user's, whose model is the product.
use rule unlearn as unlearn_list with:
    input:
        trained=trained_of(arms.LISTED),
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS, arms.LISTED),
        model_card=of_arm(paths.MODEL_CARD, arms.LISTED),
        removal=lambda wildcards: config["unlearning"]["lists"][wildcards.list],
        spans=[],
    output:
        tensors=paths.TRAINED.replace("{arm}", arms.LISTED),
        log_table=paths.TRAIN_LOG.replace("{arm}", arms.LISTED),
        card=paths.CARD.replace("{arm}", arms.LISTED),
    log:
        "results/logs/unlearn_list/{dataset}/{model}/seed{seed}/{unlearner}/{list}.log",
    params:
        settings=settings("unlearn", *CELL, "unlearner", "list"),


# The budgets at which a pair of unlearner and selector is measured: the configured ones and, once
# these show between which two the curve first reaches the target, finer ones there. These are read
# when the workflow is read: what a dry run shows is what runs, and the next run measures them.
rule refine:
    input:
        lambda wildcards: grid.sweep_files(config, wildcards),
    output:
        out=paths.SWEEP,
    log:
        "results/logs/refine/{dataset}/{model}/{unlearner}/{selector}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("refine", "dataset", "model", "unlearner", "selector"),
    shell:
        "exec python -m mamushi refine --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
