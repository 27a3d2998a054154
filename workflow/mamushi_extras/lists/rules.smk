from mamushi_extras.lists.files import unlearned_lists


# A removal list of the user's, whose model is the product.
use rule unlearn as unlearn_list with:
    input:
        arm_files(*OF_UNLEARNING, arm=arms.LISTED),
    output:
        **trained_files(arms.LISTED, is_kept=True),
    log:
        "results/logs/unlearn_list/{dataset}/{model}/seed{seed}/{unlearner}/{list}.log",
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("unlearn", *CELL, "unlearner", "list"),
        evaluation=[],


# Removal lists of the user's, unlearned.
rule unlearned:
    input:
        lambda wildcards: explained(unlearned_lists, config),
