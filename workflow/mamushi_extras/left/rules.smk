# What is left of single forget texts in the models after a deletion, beside gold, and what these
# models can still do: tasks of lm-evaluation-harness.


rule membership:
    input:
        arm_files("examples", "model_card", "tokens", "trained", "unlearned"),
    output:
        out=paths.MEMBERSHIP,
    log:
        "results/logs/membership/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("membership"),
    params:
        settings=settings("membership", "model", "arm"),
    shell:
        "exec python -m mamushi membership --examples {input.examples:q}"
        " --tokens {input.tokens:q} --model-card {input.model_card:q}"
        " --trained {input.trained:q} --unlearned {input.unlearned:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule task_scores:
    input:
        arm_files("model_card", "trained", "unlearned"),
    output:
        out=paths.TASK_ANSWERS,
    log:
        "results/logs/task_scores/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        # As long as its tasks are, which nobody knows before.
        **on_gpu("tasks", runtime=lambda wildcards, attempt: 120 * attempt),
    params:
        settings=settings("task-scores", "model", "arm"),
    shell:
        "exec python -m mamushi task-scores --model-card {input.model_card:q}"
        " --trained {input.trained:q} --unlearned {input.unlearned:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule relearn:
    input:
        arm_files("examples", "model_card", "tokens", "trained", "unlearned"),
    output:
        out=paths.RELEARNING,
        texts=paths.RELEARNED,
    log:
        "results/logs/relearn/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("relearn"),
    params:
        settings=settings("relearn", "model", "seed", "arm"),
    shell:
        "exec python -m mamushi relearn --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q}"
        " --unlearned {input.unlearned:q} --out {output.out:q}"
        " --texts {output.texts:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
