# What is left of single forget texts in the models after a deletion, beside gold, and what these
# models can still do: tasks of lm-evaluation-harness.


rule membership:
    input:
        trained=trained_of(),
        unlearned=unlearned_of,
        examples=paths.EXAMPLES,
        tokens=of_arm(paths.TOKENS),
        model_card=of_arm(paths.MODEL_CARD),
    output:
        out=paths.MEMBERSHIP,
    log:
        "results/logs/membership/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.minutes("membership"),
    params:
        settings=settings("membership", "model", "arm"),
    shell:
        "exec python -m mamushi membership --examples {input.examples:q}"
        " --tokens {input.tokens:q} --model-card {input.model_card:q}"
        " --trained {input.trained:q} --unlearned {input.unlearned:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


EXTRA_TABLES["left_tables"] = (
    "What is left",
    ["membership"],
    lambda wildcards: measured(
        axes := config["left"],
        grid.of_models(axes, paths.MEMBERSHIP) + grid.removals(axes),
    ),
)


# The targets of this room.
rule left:
    input:
        paths.TABLE.replace("{table}", "membership"),


rule task_scores:
    input:
        trained=trained_of(),
        unlearned=unlearned_of,
        model_card=of_arm(paths.MODEL_CARD),
    output:
        out=paths.TASK_ANSWERS,
    log:
        "results/logs/task_scores/{dataset}/{model}/seed{seed}/{arm}.log",
    conda:
        "../../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        # As long as its tasks are, which nobody knows before.
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        settings=settings("task-scores", "model", "arm"),
    shell:
        "exec python -m mamushi task-scores --model-card {input.model_card:q}"
        " --trained {input.trained:q} --unlearned {input.unlearned:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


EXTRA_TABLES["task_table"] = (
    "What is left",
    ["tasks"],
    lambda wildcards: explained(
        refuse, [] if config["tasks"]["names"] else ["tasks.names: names no task"]
    )
    or measured(axes := config["tasks"], grid.of_models(axes, paths.TASK_ANSWERS)),
)


rule tasks:
    input:
        paths.TABLE.replace("{table}", "tasks"),
