# Unlearning of the texts that a removal list names, or of tokens, from a model that has seen them.

OF_UNLEARNING = ("examples", "model_card", "tokens", "trained", "removal", "spans")


rule unlearn:
    input:
        arm_files(*OF_UNLEARNING, arm=arms.UNLEARNED),
    output:
        **trained_files(arms.UNLEARNED),
    log:
        "results/logs/unlearn/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("unlearn"),
    params:
        settings=settings("unlearn", *CELL, "unlearner"),
        evaluation=evaluation_of(arms.UNLEARNED),
    shell:
        "exec python -m mamushi unlearn --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q}"
        " --removal {input.removal:q} --spans {input.spans:q}"
        " --tensors {output.tensors:q} --log-table {output.log_table:q} --card {output.card:q}"
        " --evaluation {params.evaluation:q} --perplexity {output.perplexity:q}"
        " --nll {output.nll:q} --settings {params.settings:q} > {log:q} 2>&1"


# All of the forget set: the end that the curves of every selector share.
use rule unlearn as unlearn_whole with:
    input:
        arm_files(*OF_UNLEARNING, arm=arms.UNLEARNED_WHOLE),
    output:
        **trained_files(arms.UNLEARNED_WHOLE),
    log:
        "results/logs/unlearn_whole/{dataset}/{model}/seed{seed}/{unlearner}.log",
