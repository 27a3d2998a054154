# Sample-level unlearning of what a removal list names, from a model that has seen it. As with
# retraining, a job also measures, so that an unlearned model reaches the disk only where
# `keep_checkpoints` or a list of one's own asks for it.


# What enters the first trained block depends on none of unlearner, selector and budget. The first
# job of a run keeps it in a file that is no output: see `cached_trunk`.
rule unlearn:
    input:
        trained=start_tensors,
        examples=made(paths.EXAMPLES),
        tokens=of_start(paths.TOKENS),
        model_card=of_start(paths.MODEL_CARD),
        removal=paths.REMOVAL,
    output:
        perplexity=paths.PERPLEXITY_UNLEARNED,
        log_table=paths.UNLEARNED_LOG,
        card=paths.UNLEARNED_CARD,
        continuations=[],
        relearning=[],
    log:
        "results/logs/unlearn/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    group:
        packed(
            "unlearn", "beta", map(paths.beta, sorted(config["unlearning"]["budgets"]))
        )
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        pack=1,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(60, 40, 10),
    params:
        settings=params(settings.unlearn, "dataset", "model", "seed", "unlearner"),
        trunk=lambda wildcards: paths.TRUNK.format(**wildcards),
        tensors=kept_tensors,
    shell:
        command("unlearn", tensors="{params.tensors:q}")


# All of the forget set: the end that the curves of every selector share.
use rule unlearn as unlearn_whole with:
    input:
        trained=start_tensors,
        examples=made(paths.EXAMPLES),
        tokens=of_start(paths.TOKENS),
        model_card=of_start(paths.MODEL_CARD),
        removal=[],
    output:
        tensors=[],
        perplexity=paths.PERPLEXITY_WHOLE,
        log_table=paths.WHOLE_LOG,
        card=paths.WHOLE_CARD,
        continuations=[],
        relearning=[],
    log:
        "results/logs/unlearn_whole/{dataset}/{model}/seed{seed}/{unlearner}.log",
    group:
        packed("unlearn_whole", "unlearner", config["unlearning"]["unlearners"])


# A removal list of one's own, whose model is the product.
use rule unlearn as unlearn_list with:
    input:
        trained=start_tensors,
        examples=made(paths.EXAMPLES),
        tokens=of_start(paths.TOKENS),
        model_card=of_start(paths.MODEL_CARD),
        removal=lambda wildcards: config["unlearning"]["lists"][wildcards.list],
    output:
        tensors=paths.LISTED_TENSORS,
        perplexity=paths.LISTED_PERPLEXITY,
        log_table=paths.LISTED_LOG,
        card=paths.LISTED_CARD,
        continuations=[],
        relearning=[],
    log:
        "results/logs/unlearn_list/{dataset}/{model}/seed{seed}/{unlearner}/{list}.log",
    group:
        packed("unlearn_list", "list", config["unlearning"]["lists"])
    params:
        settings=params(
            settings.unlearn_list, "dataset", "model", "seed", "unlearner", "list"
        ),
        trunk=lambda wildcards: paths.TRUNK.format(**wildcards),
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
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.refine, "dataset", "model", "unlearner", "selector"),
    shell:
        command("refine")


rule half_gap:
    input:
        sweeps=lambda wildcards: [
            paths.SWEEP.format(**pair) for pair in grid.swept(config)
        ],
        curves=lambda wildcards: refined_sweeps(),
        retrained=lambda wildcards: retrained_curves(),
    output:
        half_gap=report(
            paths.TABLE_CSV.replace("{table}", "half_gap"),
            caption="../report/half_gap_table.rst",
            category="Unlearning",
            labels={"table": "Half-gap budgets"},
        ),
        unlearning=report(
            paths.TABLE_CSV.replace("{table}", "unlearning"),
            caption="../report/unlearning_table.rst",
            category="Unlearning",
            labels={"table": "Budgets and perplexities"},
        ),
        parquet=expand(paths.TABLE, table=settings.UNLEARNING_TABLES),
    log:
        "results/logs/half_gap.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.half_gap),
    shell:
        command("half-gap", out_folder="$(dirname {output.half_gap:q})")
